package faultfs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const (
	sector = 512  // what a disk writes whole
	block  = 4096 // what a file takes room by
)

// disk is what is on it and what may be.
type disk struct {
	root  *node
	made  uint64   // nodes so far
	used  int64    // bytes taken
	names []change // since the last sync of their directory, in order
}

// node is a file, a directory or a socket.
type node struct {
	ino   uint64
	mode  uint32
	links int

	// of a file
	durable []byte
	current []byte // what readers see
	since   []write
	blocks  map[int64]bool // written, by number

	// of a directory
	children map[string]*node
	kept     map[string]*node // the durable ones
	parent   *node
}

// write is a change of a file's content; without data it sets the length.
type write struct {
	off  int64
	data []byte
}

// change is one step of a directory or two, done whole or not at all.
type change []dirEntryChange

// dirEntryChange gives a name to a node, or takes it from whoever has it.
type dirEntryChange struct {
	dir  *node
	name string
	node *node // nil takes it
}

func newDisk() *disk {
	d := &disk{}
	d.root = d.make(syscall.S_IFDIR | 0o700)
	return d
}

// make gives a node that has no name yet.
func (d *disk) make(mode uint32) *node {
	d.made++
	d.used += block
	return &node{ino: d.made, mode: mode, blocks: map[int64]bool{}, children: map[string]*node{}, kept: map[string]*node{}}
}

func (n *node) isDir() bool  { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }
func (n *node) isFile() bool { return n.mode&syscall.S_IFMT == syscall.S_IFREG }

// load takes a directory's files as durable.
func (d *disk) load(from string) error {
	nodes := map[string]*node{".": d.root}
	return fs.WalkDir(os.DirFS(from), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		parent := nodes[filepath.Dir(path)]
		n, err := d.loadNode(filepath.Join(from, path), e)
		if err != nil {
			return err
		}
		n.parent, n.links = parent, 1
		nodes[path], parent.children[e.Name()], parent.kept[e.Name()] = n, n, n
		return nil
	})
}

func (d *disk) loadNode(path string, e fs.DirEntry) (*node, error) {
	if e.IsDir() {
		return d.make(syscall.S_IFDIR | 0o700), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	n := d.make(syscall.S_IFREG | 0o600)
	d.write(n, data, 0)
	d.syncFile(n, false)
	return n, nil
}

// name does a change to the names.
func (d *disk) name(c change) {
	for _, s := range c {
		if s.node == nil {
			d.free(s.dir.children[s.name])
			delete(s.dir.children, s.name)
			continue
		}
		s.dir.children[s.name], s.node.parent = s.node, s.dir
		s.node.links++
	}
	d.names = append(d.names, c)
}

// move gives a node another name, in the place of whoever has it.
func (d *disk) move(from *node, name string, to *node, newName string, n *node) {
	if old := to.children[newName]; old != n {
		d.free(old)
	}
	delete(from.children, name)
	to.children[newName], n.parent = n, to
	d.names = append(d.names, change{{dir: from, name: name}, {to, newName, n}})
}

// free takes a name from a node; with the last one goes its room.
func (d *disk) free(n *node) {
	if n == nil {
		return
	}
	if n.links--; n.links == 0 {
		d.used -= block * int64(1+len(n.blocks))
	}
}

// room gives how many bytes of a write fit.
func (d *disk) room(n *node, off int64, size int, capacity int64) int {
	left := (capacity - d.used) / block
	for at := off / block; at*block < off+int64(size); at++ {
		if n.blocks[at] {
			continue
		}
		if left <= 0 {
			return int(max(0, at*block-off))
		}
		left--
	}
	return size
}

func (d *disk) write(n *node, data []byte, off int64) {
	w := write{off, slices.Clone(data)}
	if w.data == nil {
		w.data = []byte{}
	}
	n.since = append(n.since, w)
	n.current = w.on(n.current)
	for at := off / block; at*block < off+int64(len(data)); at++ {
		if !n.blocks[at] {
			n.blocks[at] = true
			d.used += block
		}
	}
}

// resize cuts a file off or adds a hole.
func (d *disk) resize(n *node, size int64) {
	w := write{off: size}
	n.since = append(n.since, w)
	n.current = w.on(n.current)
	maps.DeleteFunc(n.blocks, func(at int64, _ bool) bool {
		gone := at*block >= size
		if gone {
			d.used -= block
		}
		return gone
	})
}

// on gives a content after the write.
func (w write) on(content []byte) []byte {
	if w.data == nil {
		return sized(content, w.off)
	}
	content = sized(content, max(int64(len(content)), w.off+int64(len(w.data))))
	copy(content[w.off:], w.data)
	return content
}

// sized gives a content of another length.
func sized(content []byte, size int64) []byte {
	if more := size - int64(len(content)); more > 0 {
		return append(content, make([]byte, more)...)
	}
	return content[:size:size] // what is added later is not what was cut off
}

// syncFile makes a file durable, and with its names what leads to it.
func (d *disk) syncFile(n *node, names bool) {
	for _, w := range n.since {
		n.durable = w.on(n.durable)
	}
	n.since = nil
	for up := n; names && up != nil; up = up.parent {
		d.keep(func(s dirEntryChange) bool { return s.node == up })
	}
}

// syncDir makes a directory's names durable.
func (d *disk) syncDir(n *node) {
	d.keep(func(s dirEntryChange) bool { return s.dir == n })
}

// keep makes the changes durable that have a setting of a kind.
func (d *disk) keep(of func(s dirEntryChange) bool) {
	d.names = slices.DeleteFunc(d.names, func(c change) bool {
		due := slices.ContainsFunc(c, of)
		if due {
			c.on(func(dir *node) map[string]*node { return dir.kept })
		}
		return due
	})
}

// on does the change to the names that a directory has.
func (c change) on(names func(dir *node) map[string]*node) {
	for _, s := range c {
		if s.node == nil {
			delete(names(s.dir), s.name)
			continue
		}
		names(s.dir)[s.name] = s.node
	}
}
