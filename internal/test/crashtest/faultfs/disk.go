//go:build linux && (amd64 || arm64)

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
	sector = 512  // bytes a disk writes atomically
	block  = 4096 // unit of disk usage
)

// disk is the durable content of a file system and its pending changes.
type disk struct {
	root         *node
	nodeCount    uint64       // nodes created so far
	usedBytes    int64        // disk usage
	pendingNames []nameChange // since the last sync of their directory, oldest first
}

// node is a file, a directory or a socket.
type node struct {
	ino   uint64
	mode  uint32
	links int

	// of a file
	durable       []byte
	current       []byte // what reads return
	pendingWrites []write
	blocks        map[int64]bool // numbers of the allocated blocks

	// of a directory
	children        map[string]*node
	durableChildren map[string]*node // as of the last sync
	parent          *node
}

// write is a change of a file's content. With nil data it sets the length to off.
type write struct {
	off  int64
	data []byte
}

// nameChange is an atomic change of one or two directory entries.
type nameChange []nameStep

// nameStep sets a directory entry to a node, or removes it.
type nameStep struct {
	dir  *node
	name string
	node *node // nil removes the entry
}

// newDisk returns a disk with an empty root directory.
func newDisk() *disk {
	d := &disk{}
	d.root = d.newNode(syscall.S_IFDIR | 0o700)
	return d
}

// newNode returns a node without a name and accounts for its block.
func (d *disk) newNode(mode uint32) *node {
	d.nodeCount++
	d.usedBytes += block
	return &node{ino: d.nodeCount, mode: mode, blocks: map[int64]bool{}, children: map[string]*node{}, durableChildren: map[string]*node{}}
}

func (n *node) isDir() bool  { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }
func (n *node) isFile() bool { return n.mode&syscall.S_IFMT == syscall.S_IFREG }

// load copies a directory to the disk, as durable.
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
		nodes[path], parent.children[e.Name()], parent.durableChildren[e.Name()] = n, n, n
		return nil
	})
}

// loadNode returns a durable node for a file or directory.
func (d *disk) loadNode(path string, e fs.DirEntry) (*node, error) {
	if e.IsDir() {
		return d.newNode(syscall.S_IFDIR | 0o700), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	n := d.newNode(syscall.S_IFREG | 0o600)
	d.write(n, data, 0)
	d.syncFile(n, false)
	return n, nil
}

// applyNames applies a change of names, which stays pending until a sync.
func (d *disk) applyNames(c nameChange) {
	for _, s := range c {
		if s.node == nil {
			d.unlink(s.dir.children[s.name])
			delete(s.dir.children, s.name)
			continue
		}
		s.dir.children[s.name], s.node.parent = s.node, s.dir
		s.node.links++
	}
	d.pendingNames = append(d.pendingNames, c)
}

// rename moves a node and replaces the node that has the new name.
func (d *disk) rename(from *node, name string, to *node, newName string, n *node) {
	if old := to.children[newName]; old != n {
		d.unlink(old)
	}
	delete(from.children, name)
	to.children[newName], n.parent = n, to
	d.pendingNames = append(d.pendingNames, nameChange{{dir: from, name: name}, {to, newName, n}})
}

// unlink removes one name of a node and frees its blocks with the last one.
func (d *disk) unlink(n *node) {
	if n == nil {
		return
	}
	if n.links--; n.links == 0 {
		d.usedBytes -= block * int64(1+len(n.blocks))
	}
}

// fittingBytes returns how many bytes of a write fit.
func (d *disk) fittingBytes(n *node, off int64, size int, capacity int64) int {
	left := (capacity - d.usedBytes) / block
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

// write changes a file's current content and allocates its blocks.
func (d *disk) write(n *node, data []byte, off int64) {
	w := write{off, slices.Clone(data)}
	if w.data == nil {
		w.data = []byte{}
	}
	n.pendingWrites = append(n.pendingWrites, w)
	n.current = w.applyTo(n.current)
	for at := off / block; at*block < off+int64(len(data)); at++ {
		if !n.blocks[at] {
			n.blocks[at] = true
			d.usedBytes += block
		}
	}
}

// truncate sets a file's length, freeing blocks or adding a hole.
func (d *disk) truncate(n *node, size int64) {
	w := write{off: size}
	n.pendingWrites = append(n.pendingWrites, w)
	n.current = w.applyTo(n.current)
	maps.DeleteFunc(n.blocks, func(at int64, _ bool) bool {
		gone := at*block >= size
		if gone {
			d.usedBytes -= block
		}
		return gone
	})
}

// applyTo returns the content after the write.
func (w write) applyTo(content []byte) []byte {
	if w.data == nil {
		return resized(content, w.off)
	}
	content = resized(content, max(int64(len(content)), w.off+int64(len(w.data))))
	copy(content[w.off:], w.data)
	return content
}

// resized returns the content with another length, padded with zeros.
func resized(content []byte, size int64) []byte {
	if more := size - int64(len(content)); more > 0 {
		return append(content, make([]byte, more)...)
	}
	return content[:size:size] // no capacity left: an append must not reveal what was cut off
}

// syncFile makes a file durable, and with names also the entries on its path.
func (d *disk) syncFile(n *node, names bool) {
	for _, w := range n.pendingWrites {
		n.durable = w.applyTo(n.durable)
	}
	n.pendingWrites = nil
	for up := n; names && up != nil; up = up.parent {
		d.persistNames(func(s nameStep) bool { return s.node == up })
	}
}

// syncDir makes a directory's entries durable.
func (d *disk) syncDir(n *node) {
	d.persistNames(func(s nameStep) bool { return s.dir == n })
}

// persistNames makes those changes durable that have a matching step.
func (d *disk) persistNames(match func(s nameStep) bool) {
	d.pendingNames = slices.DeleteFunc(d.pendingNames, func(c nameChange) bool {
		due := slices.ContainsFunc(c, match)
		if due {
			c.applyTo(func(dir *node) map[string]*node { return dir.durableChildren })
		}
		return due
	})
}

// applyTo applies the change to the entries that the function returns for a directory.
func (c nameChange) applyTo(names func(dir *node) map[string]*node) {
	for _, s := range c {
		if s.node == nil {
			delete(names(s.dir), s.name)
			continue
		}
		names(s.dir)[s.name] = s.node
	}
}
