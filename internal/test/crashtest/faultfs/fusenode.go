//go:build linux

package faultfs

import (
	"context"
	"maps"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// fuseNode is a node as the kernel sees it.
type fuseNode struct {
	fs.Inode
	f *FS
	n *node
}

var (
	_ fs.NodeLookuper  = (*fuseNode)(nil)
	_ fs.NodeGetattrer = (*fuseNode)(nil)
	_ fs.NodeSetattrer = (*fuseNode)(nil)
	_ fs.NodeReaddirer = (*fuseNode)(nil)
	_ fs.NodeCreater   = (*fuseNode)(nil)
	_ fs.NodeMkdirer   = (*fuseNode)(nil)
	_ fs.NodeMknoder   = (*fuseNode)(nil)
	_ fs.NodeLinker    = (*fuseNode)(nil)
	_ fs.NodeUnlinker  = (*fuseNode)(nil)
	_ fs.NodeRmdirer   = (*fuseNode)(nil)
	_ fs.NodeRenamer   = (*fuseNode)(nil)
	_ fs.NodeOpener    = (*fuseNode)(nil)
	_ fs.NodeReader    = (*fuseNode)(nil)
	_ fs.NodeWriter    = (*fuseNode)(nil)
	_ fs.NodeFsyncer   = (*fuseNode)(nil)
	_ fs.NodeStatfser  = (*fuseNode)(nil)
)

func (f *FS) newFuseNode(n *node) *fuseNode { return &fuseNode{f: f, n: n} }

// child returns the inode of a child and fills in its attributes.
func (e *fuseNode) child(ctx context.Context, n *node, out *fuse.EntryOut) *fs.Inode {
	out.Attr = n.attr()
	return e.NewInode(ctx, e.f.newFuseNode(n), fs.StableAttr{Mode: n.mode & syscall.S_IFMT, Ino: n.ino})
}

func (n *node) attr() fuse.Attr {
	return fuse.Attr{
		Ino: n.ino, Mode: n.mode, Nlink: uint32(n.links),
		Size: uint64(len(n.current)), Blocks: uint64(len(n.blocks)) * block / sector, Blksize: block,
	}
}

// Lookup implements fs.NodeLookuper.
func (e *fuseNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	errno = e.f.update(0, func(*disk) syscall.Errno {
		n, ok := e.n.children[name]
		if !ok {
			return syscall.ENOENT
		}
		child = e.child(ctx, n, out)
		return 0
	})
	return child, errno
}

// Getattr implements fs.NodeGetattrer.
func (e *fuseNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return e.f.update(0, func(*disk) syscall.Errno {
		out.Attr = e.n.attr()
		return 0
	})
}

// Setattr implements fs.NodeSetattrer.
func (e *fuseNode) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return e.f.update(0, func(d *disk) syscall.Errno {
		if mode, ok := in.GetMode(); ok {
			e.n.mode = e.n.mode&syscall.S_IFMT | mode&0o7777
		}
		if size, ok := in.GetSize(); ok {
			d.truncate(e.n, int64(size))
		}
		out.Attr = e.n.attr()
		return 0
	})
}

// Readdir implements fs.NodeReaddirer.
func (e *fuseNode) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	var list []fuse.DirEntry
	errno := e.f.update(0, func(*disk) syscall.Errno {
		for _, name := range slices.Sorted(maps.Keys(e.n.children)) {
			n := e.n.children[name]
			list = append(list, fuse.DirEntry{Name: name, Ino: n.ino, Mode: n.mode})
		}
		return 0
	})
	return fs.NewListDirStream(list), errno
}

// Create implements fs.NodeCreater.
func (e *fuseNode) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, errno := e.add(ctx, name, syscall.S_IFREG|mode&0o7777, out)
	return child, nil, 0, errno
}

// Mkdir implements fs.NodeMkdirer.
func (e *fuseNode) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return e.add(ctx, name, syscall.S_IFDIR|mode&0o7777, out)
}

// Mknod implements fs.NodeMknoder. The kernel creates sockets with it.
func (e *fuseNode) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return e.add(ctx, name, mode, out)
}

// add creates a child.
func (e *fuseNode) add(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	errno = e.f.update(1, func(d *disk) syscall.Errno {
		n := d.newNode(mode)
		d.applyNames(nameChange{{e.n, name, n}})
		child = e.child(ctx, n, out)
		return 0
	})
	return child, errno
}

// Link implements fs.NodeLinker.
func (e *fuseNode) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	errno = e.f.update(0, func(d *disk) syscall.Errno {
		if e.n.children[name] != nil {
			return syscall.EEXIST
		}
		n := target.(*fuseNode).n
		d.applyNames(nameChange{{e.n, name, n}})
		child = e.child(ctx, n, out)
		return 0
	})
	return child, errno
}

// Unlink implements fs.NodeUnlinker.
func (e *fuseNode) Unlink(_ context.Context, name string) syscall.Errno {
	return e.f.update(0, func(d *disk) syscall.Errno {
		d.applyNames(nameChange{{dir: e.n, name: name}})
		return 0
	})
}

// Rmdir implements fs.NodeRmdirer.
func (e *fuseNode) Rmdir(_ context.Context, name string) syscall.Errno {
	return e.f.update(0, func(d *disk) syscall.Errno {
		if len(e.n.children[name].children) > 0 {
			return syscall.ENOTEMPTY
		}
		d.applyNames(nameChange{{dir: e.n, name: name}})
		return 0
	})
}

// Rename implements fs.NodeRenamer. RENAME_EXCHANGE is not supported.
func (e *fuseNode) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	return e.f.update(0, func(d *disk) syscall.Errno {
		n, dir := e.n.children[name], to.(*fuseNode).n
		switch {
		case flags&^unix.RENAME_NOREPLACE != 0:
			return syscall.EINVAL
		case flags != 0 && dir.children[newName] != nil:
			return syscall.EEXIST
		}
		d.rename(e.n, name, dir, newName, n)
		return 0
	})
}

// Open implements fs.NodeOpener. The kernel may keep its page cache, because all
// writes go through it.
func (e *fuseNode) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	errno := e.f.update(0, func(d *disk) syscall.Errno {
		if flags&syscall.O_TRUNC != 0 {
			d.truncate(e.n, 0)
		}
		return 0
	})
	return nil, fuse.FOPEN_KEEP_CACHE, errno
}

// Read implements fs.NodeReader.
func (e *fuseNode) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n := 0
	errno := e.f.update(0, func(*disk) syscall.Errno {
		if off < int64(len(e.n.current)) {
			n = copy(dest, e.n.current[off:])
		}
		return 0
	})
	return fuse.ReadResultData(dest[:n]), errno
}

// Write implements fs.NodeWriter.
func (e *fuseNode) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	n, errno := e.f.write(e.n, data, off)
	return uint32(n), errno
}

// Statfs implements fs.NodeStatfser.
func (e *fuseNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	total, free := e.f.space()
	*out = fuse.StatfsOut{Blocks: total, Bfree: free, Bavail: free, Bsize: block, Frsize: block, NameLen: 255}
	return 0
}

// Fsync implements fs.NodeFsyncer, for fsync and fdatasync, files and directories.
func (e *fuseNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return e.f.sync(e.n) }
