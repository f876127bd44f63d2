package faultfs

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// faultRand chooses what of the things not synced is on disk.
type faultRand struct {
	r    *rand.Rand
	odds float64 // of each
	torn bool    // each sector for itself
}

// newLuck draws the odds too: nearly all and nearly nothing are what finds most.
func newLuck(r *rand.Rand) faultRand {
	odds := []float64{0, 0.05, 0.3, 0.7, 0.95, 1}
	return faultRand{r: r, odds: odds[r.IntN(len(odds))], torn: r.IntN(2) == 0}
}

func (l faultRand) has() bool { return l.r.Float64() < l.odds }

// image writes what the disk may hold to dir.
func (d *disk) image(dir string, r *rand.Rand) error {
	chosen, names := newLuck(r), map[*node]map[string]*node{}
	of := func(dir *node) map[string]*node {
		if names[dir] == nil {
			names[dir] = maps.Clone(dir.kept)
		}
		return names[dir]
	}
	for _, c := range d.names {
		if chosen.has() {
			c.on(of)
		}
	}
	return writeDir(dir, d.root, of, newLuck(r))
}

func writeDir(dir string, n *node, of func(*node) map[string]*node, l faultRand) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(of(n))) {
		child, path, err := of(n)[name], filepath.Join(dir, name), error(nil)
		switch {
		case child.isDir():
			err = writeDir(path, child, of, l)
		case child.isFile():
			err = os.WriteFile(path, child.survives(l), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// survives gives what a file may hold after a power cut.
func (n *node) survives(l faultRand) []byte {
	content := slices.Clone(n.durable)
	for _, w := range n.since {
		for _, piece := range w.pieces(l.torn) {
			if l.has() {
				content = piece.on(content)
			}
		}
	}
	return content
}

// pieces are what of a write is on disk whole or not at all.
func (w write) pieces(torn bool) []write {
	if !torn || w.data == nil {
		return []write{w}
	}
	var pieces []write
	for at := w.off; at < w.off+int64(len(w.data)); {
		end := min(at/sector*sector+sector, w.off+int64(len(w.data)))
		pieces = append(pieces, write{at, w.data[at-w.off : end-w.off]})
		at = end
	}
	return pieces
}

// lose is what a failed fsync does: a part is on disk, the rest never will be.
// Who reads gets what is on disk, unless the kernel still has what was written.
func (d *disk) lose(n *node, r *rand.Rand) {
	if r.IntN(2) == 0 {
		n.durable = n.survives(newLuck(r))
	}
	n.since = nil
	n.current = sized(slices.Clone(n.durable), int64(len(n.current)))
}
