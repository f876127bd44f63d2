// Package faultfs is a file system that forgets what a disk may forget. Only
// tests import it.
//
// Mount gives a directory in memory, served by FUSE. It keeps each file twice:
// what is durable, as of its last fsync, and what was written since. Faults are
// armed by number: FailSync, TornWrite, CutAtWrite, CutAtSync, Capacity. Cut
// takes the power away: from then on everything fails, and Image writes the
// directory as a disk may hold it.
//
// What is modelled:
//
//   - Data written or cut off since a file's last fsync or fdatasync: any part
//     of it may be on disk, each write wholly, not at all, or torn at sectors
//     of 512 bytes. Only fsync keeps an order; of writes to one sector the
//     later one wins.
//   - A file's length, with the write or truncation that changes it.
//   - Names: what was made, moved and removed since the directory's last fsync,
//     each change for itself; see Options.StrictNames.
//   - A failed fsync: what was to be synced is kept in part or not at all, no
//     later fsync makes up for it, and as long as the kernel keeps its pages it
//     still reads as it was written, also for the next process. So it is on Linux.
//   - Room: each file and directory takes a block of 4 KiB, and so does each
//     block once written. Holes take none, as on ext4.
//
// What is not: modes and times (always durable), symbolic links, disks that lose what
// was synced or change a sector nobody wrote to, sockets (in no image).
package faultfs

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Unlimited is the capacity of a disk that is never full.
const Unlimited = math.MaxInt64

// slow is how long an fsync takes that is cut off.
const slow = 30 * time.Millisecond

// Options say what kind of disk it is; nil is an honest one.
type Options struct {
	// From is a directory whose content is on the disk from the start.
	From string

	// Seed makes the same choices of what a failed fsync leaves.
	Seed uint64

	// StrictNames keeps a new name only when its directory was synced, which is
	// all that POSIX promises. Otherwise syncing a file keeps the name it was
	// made under and the directories above, as ext4, XFS and btrfs do.
	StrictNames bool

	// IgnoreSync answers every fsync and makes nothing durable.
	IgnoreSync bool
}

// FS is a mounted file system. All methods are safe for concurrent use.
type FS struct {
	dir    string
	server *fuse.Server

	mu       sync.Mutex // guards what follows
	disk     *disk
	options  Options
	random   *rand.Rand
	capacity int64
	writes   counter
	syncs    counter
	cut      bool
	dark     chan struct{} // closed when the power is cut
}

// counter counts operations and says which one is to go wrong.
type counter struct {
	seen, at int
	fault    fault
}

type fault int

const (
	none fault = iota
	fail
	tear
	dark
)

// next counts an operation and gives its fault.
func (c *counter) next() fault {
	c.seen++
	if c.seen == c.at {
		return c.fault
	}
	return none
}

// arm makes the n-th operation from now go wrong.
func (c *counter) arm(n int, f fault) { c.at, c.fault = c.seen+n, f }

// Mountable says why nothing can be mounted here; nil when it can.
func Mountable() error {
	if os.Geteuid() != 0 {
		return errors.New("mounting takes root")
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("there is no FUSE: %w", err)
	}
	return f.Close()
}

// Mount mounts a file system on dir, an empty directory. Close it.
func Mount(dir string, opts *Options) (*FS, error) {
	f := &FS{dir: dir, disk: newDisk(), capacity: Unlimited, dark: make(chan struct{})}
	if opts != nil {
		f.options = *opts
	}
	f.random = rand.New(rand.NewPCG(f.options.Seed, 1))
	if f.options.From != "" {
		if err := f.disk.load(f.options.From); err != nil {
			return nil, fmt.Errorf("fill the disk: %w", err)
		}
	}
	long := time.Hour // nobody changes it but through the kernel
	options := &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "faultfs", Name: "faultfs", DisableXAttrs: true},
		EntryTimeout: &long, AttrTimeout: &long,
	}
	server, err := fs.Mount(dir, f.entry(f.disk.root), options)
	if err != nil {
		return nil, fmt.Errorf("mount on %s: %w", dir, err)
	}
	f.server = server
	return f, nil
}

// Close unmounts, also what is still in use. It may be called twice.
func (f *FS) Close() error {
	err := syscall.Unmount(f.dir, 0)
	if errors.Is(err, syscall.EBUSY) {
		err = syscall.Unmount(f.dir, syscall.MNT_DETACH)
	}
	if errors.Is(err, syscall.EINVAL) { // not mounted any more
		return nil
	}
	return err
}

// CutPower takes the power away.
func (f *FS) CutPower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutPower()
}

func (f *FS) cutPower() {
	if !f.cut {
		f.cut = true
		close(f.dark)
	}
}

// PoweredOff is closed when the power is cut.
func (f *FS) PoweredOff() <-chan struct{} { return f.dark }

// Capacity sets how many bytes the disk holds.
func (f *FS) Capacity(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = bytes
}

// Used gives how many bytes are taken.
func (f *FS) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk.used
}

// Counts gives how many writes to files and fsyncs of files there were.
func (f *FS) Counts() (writes, syncs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes.seen, f.syncs.seen
}

// FailSync lets the n-th fsync of a file from now fail with EIO.
func (f *FS) FailSync(n int) { f.arm(&f.syncs, n, fail) }

// TornWrite stops the n-th write from now in the middle and cuts the power.
func (f *FS) TornWrite(n int) { f.arm(&f.writes, n, tear) }

// CutAtWrite cuts the power when the n-th write from now has come.
func (f *FS) CutAtWrite(n int) { f.arm(&f.writes, n, dark) }

// CutAtSync cuts the power in the n-th fsync of a file from now, before it has
// made anything durable and after a time in which others can read what is not.
func (f *FS) CutAtSync(n int) { f.arm(&f.syncs, n, dark) }

func (f *FS) arm(c *counter, n int, what fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.arm(n, what)
}

// Image writes the directory to dir as a disk may hold it; r chooses. Each
// image is one of many: ask again for another.
func (f *FS) Image(dir string, r *rand.Rand) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk.image(dir, r)
}

// write puts data into a file and gives how much of it.
func (f *FS) write(n *node, data []byte, off int64) (int, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut {
		return 0, syscall.EIO
	}
	switch f.writes.next() {
	case tear:
		f.disk.write(n, data[:half(len(data))], off)
		f.cutPower()
		return 0, syscall.EIO
	case dark:
		f.disk.write(n, data, off)
		f.cutPower()
		return 0, syscall.EIO
	}
	fits := f.disk.room(n, off, len(data), f.capacity)
	if fits == 0 && len(data) > 0 {
		return 0, syscall.ENOSPC
	}
	f.disk.write(n, data[:fits], off)
	return fits, 0
}

// half is where a write of so many bytes tears: at a sector.
func half(size int) int { return size / 2 / sector * sector }

// sync makes a file or directory durable.
func (f *FS) sync(n *node) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut {
		return syscall.EIO
	}
	if n.isDir() {
		if !f.options.IgnoreSync {
			f.disk.syncDir(n)
		}
		return 0
	}
	switch what := f.syncs.next(); {
	case what == fail:
		f.disk.lose(n, f.random)
		return syscall.EIO
	case what == dark:
		f.delay()
		f.cutPower()
		return syscall.EIO
	case !f.options.IgnoreSync:
		f.disk.syncFile(n, !f.options.StrictNames)
	}
	return 0
}

// delay gives others the time that a slow fsync takes.
func (f *FS) delay() {
	f.mu.Unlock()
	time.Sleep(slow)
	f.mu.Lock()
}

// change does something to the disk that is neither a write nor a sync, and
// takes so many new blocks.
func (f *FS) change(blocks int64, do func(d *disk) syscall.Errno) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.cut:
		return syscall.EIO
	case blocks > 0 && f.disk.used+blocks*block > f.capacity:
		return syscall.ENOSPC
	}
	return do(f.disk)
}
