//go:build linux && (amd64 || arm64)

package faultfs

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// faultRand chooses which unsynced changes are on disk.
type faultRand struct {
	r           *rand.Rand
	probability float64 // of each change
	tearSectors bool    // choose for each sector
}

// newFaultRand chooses the probability too: values near 0 and 1 find the most errors.
func newFaultRand(r *rand.Rand) faultRand {
	odds := []float64{0, 0.05, 0.3, 0.7, 0.95, 1}
	return faultRand{r: r, probability: odds[r.IntN(len(odds))], tearSectors: r.IntN(2) == 0}
}

func (l faultRand) pick() bool { return l.r.Float64() < l.probability }

// writeImage writes one possible content of the disk to dir.
func (d *disk) writeImage(dir string, r *rand.Rand) error {
	chosen, names := newFaultRand(r), map[*node]map[string]*node{}
	of := func(dir *node) map[string]*node {
		if names[dir] == nil {
			names[dir] = maps.Clone(dir.durableChildren)
		}
		return names[dir]
	}
	for _, c := range d.pendingNames {
		if chosen.pick() {
			c.applyTo(of)
		}
	}
	return writeDir(dir, d.root, of, newFaultRand(r))
}

// writeDir writes a directory with the entries that of returns.
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
			err = os.WriteFile(path, child.afterPowerCut(l), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// afterPowerCut returns one possible content of a file after a power cut.
func (n *node) afterPowerCut(l faultRand) []byte {
	content := slices.Clone(n.durable)
	for _, w := range n.pendingWrites {
		for _, piece := range w.pieces(l.tearSectors) {
			if l.pick() {
				content = piece.applyTo(content)
			}
		}
	}
	return content
}

// pieces splits a write into the parts that are on disk completely or not at all.
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

// loseUnsynced applies a failed fsync: a part of the data may be on disk, the rest is
// lost. Reads return what is on disk, unless the kernel still has the written pages.
func (d *disk) loseUnsynced(n *node, r *rand.Rand) {
	if r.IntN(2) == 0 {
		n.durable = n.afterPowerCut(newFaultRand(r))
	}
	n.pendingWrites = nil
	n.current = resized(slices.Clone(n.durable), int64(len(n.current)))
}
