//go:build linux && (amd64 || arm64)

// Package faultfs is a FUSE file system for tests that simulates disk faults and power
// cuts.
//
// Mount serves a directory from memory. It keeps each file twice: the durable content
// as of its last fsync, and the current content. Faults are armed by operation number
// (FailSync, TearWrite, CutAtWrite, CutAtSync) or by size (SetCapacity). CutPower cuts
// the power: from then on every operation fails, and WriteImage writes the directory
// as a disk may contain it afterwards.
//
// What is modelled:
//
//   - Data written or truncated since a file's last fsync or fdatasync: any part of it may
//     be on disk. Each write is there completely, not at all, or torn at sectors of 512
//     bytes. Only fsync orders writes; of two writes to a sector the later one wins.
//   - A file's length, with the write or truncation that changes it.
//   - Names created, moved and removed since the directory's last fsync, each change
//     separately; see Options.StrictNames.
//   - A failed fsync: any part of its data is lost, and no later fsync repairs that. While
//     the kernel keeps its pages, the file still reads as it was written, also for the next
//     process. Linux behaves like this.
//   - Space: each file and directory uses a block of 4 KiB, and so does each written
//     block. Holes use none, as on ext4.
//
// What is not modelled: modes and times (always durable), symbolic links, disks that
// lose synced data or change other sectors, and sockets (in no image).
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

// UnlimitedCapacity is the capacity of a disk that is never full, see SetCapacity.
const UnlimitedCapacity = math.MaxInt64

// cutSyncDelay is how long an fsync takes that ends in a power cut.
const cutSyncDelay = 30 * time.Millisecond

// Options selects the kind of disk. Nil options are an honest disk.
type Options struct {
	// InitialDir is a directory whose content is durable on the disk from the start.
	InitialDir string

	// Seed seeds the choice of what a failed fsync loses.
	Seed uint64

	// StrictNames keeps a new name only after its directory was synced, which is all
	// that POSIX promises. Otherwise syncing a file also keeps the name it was created
	// under and the directories above it, as ext4, XFS and btrfs do.
	StrictNames bool

	// IgnoreSync acknowledges every fsync and makes nothing durable.
	IgnoreSync bool

	// ReportSpace reports the capacity and the free space to programs. Otherwise the file
	// system reports no size, as some do.
	ReportSpace bool
}

// FS is a mounted file system. All methods are safe for concurrent use.
type FS struct {
	dir    string
	server *fuse.Server

	mu         sync.Mutex // guards the fields below
	disk       *disk
	options    Options
	random     *rand.Rand
	capacity   int64
	writes     counter
	syncs      counter
	powerCut   bool
	poweredOff chan struct{} // closed when the power is cut
}

// counter counts operations and knows which one fails.
type counter struct {
	seen, at int
	fault    fault
}

// fault is what happens to an operation.
type fault int

const (
	faultNone fault = iota
	faultFail
	faultTear
	faultPowerCut
)

// next counts an operation and returns its fault.
func (c *counter) next() fault {
	c.seen++
	if c.seen == c.at {
		return c.fault
	}
	return faultNone
}

// arm sets the fault of the n-th operation from now.
func (c *counter) arm(n int, f fault) { c.at, c.fault = c.seen+n, f }

// CheckSupport returns why the file system cannot be mounted here, or nil if it can.
func CheckSupport() error {
	if os.Geteuid() != 0 {
		return errors.New("mounting needs root")
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("FUSE is missing: %w", err)
	}
	return f.Close()
}

// Mount mounts a file system on dir, an empty directory. The caller must call Close.
func Mount(dir string, opts *Options) (*FS, error) {
	f := &FS{dir: dir, disk: newDisk(), capacity: UnlimitedCapacity, poweredOff: make(chan struct{})}
	if opts != nil {
		f.options = *opts
	}
	f.random = rand.New(rand.NewPCG(f.options.Seed, 1))
	if f.options.InitialDir != "" {
		if err := f.disk.load(f.options.InitialDir); err != nil {
			return nil, fmt.Errorf("copy %s to the disk: %w", f.options.InitialDir, err)
		}
	}
	long := time.Hour // all changes go through the kernel
	options := &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "faultfs", Name: "faultfs", DisableXAttrs: true},
		EntryTimeout: &long, AttrTimeout: &long,
	}
	server, err := fs.Mount(dir, f.newFuseNode(f.disk.root), options)
	if err != nil {
		return nil, fmt.Errorf("mount on %s: %w", dir, err)
	}
	f.server = server
	return f, nil
}

// Close unmounts the file system even when it is in use. It may be called twice.
func (f *FS) Close() error {
	err := syscall.Unmount(f.dir, 0)
	if errors.Is(err, syscall.EBUSY) {
		err = syscall.Unmount(f.dir, syscall.MNT_DETACH)
	}
	if errors.Is(err, syscall.EINVAL) { // not mounted
		return nil
	}
	return err
}

// CutPower cuts the power: every later operation fails with EIO.
func (f *FS) CutPower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutPower()
}

func (f *FS) cutPower() {
	if !f.powerCut {
		f.powerCut = true
		close(f.poweredOff)
	}
}

// PoweredOff returns a channel that is closed when the power is cut.
func (f *FS) PoweredOff() <-chan struct{} { return f.poweredOff }

// SetCapacity sets the size of the disk in bytes.
func (f *FS) SetCapacity(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = bytes
}

// space returns the capacity and the free space in blocks, 0 if they are not reported.
func (f *FS) space() (total, free uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.options.ReportSpace {
		return 0, 0
	}
	return uint64(f.capacity / block), uint64(max(0, f.capacity-f.disk.usedBytes) / block)
}

// UsedBytes returns the disk usage in bytes.
func (f *FS) UsedBytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk.usedBytes
}

// OperationCounts returns the number of writes and fsyncs of files so far.
func (f *FS) OperationCounts() (writes, syncs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes.seen, f.syncs.seen
}

// FailSync makes the n-th fsync of a file from now fail with EIO.
func (f *FS) FailSync(n int) { f.arm(&f.syncs, n, faultFail) }

// TearWrite cuts the power in the middle of the n-th write from now.
func (f *FS) TearWrite(n int) { f.arm(&f.writes, n, faultTear) }

// CutAtWrite cuts the power when the n-th write from now arrives.
func (f *FS) CutAtWrite(n int) { f.arm(&f.writes, n, faultPowerCut) }

// CutAtSync cuts the power in the n-th fsync of a file from now, before anything is
// durable, and after a delay in which others can read the unsynced data.
func (f *FS) CutAtSync(n int) { f.arm(&f.syncs, n, faultPowerCut) }

func (f *FS) arm(c *counter, n int, what fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.arm(n, what)
}

// WriteImage writes the directory to dir as a disk may contain it after a power cut.
// The random numbers choose one of many possible images.
func (f *FS) WriteImage(dir string, r *rand.Rand) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk.writeImage(dir, r)
}

// write writes to a file and returns the number of bytes that fit.
func (f *FS) write(n *node, data []byte, off int64) (int, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.powerCut {
		return 0, syscall.EIO
	}
	switch f.writes.next() {
	case faultTear:
		f.disk.write(n, data[:tearOffset(len(data))], off)
		f.cutPower()
		return 0, syscall.EIO
	case faultPowerCut:
		f.disk.write(n, data, off)
		f.cutPower()
		return 0, syscall.EIO
	}
	fits := f.disk.fittingBytes(n, off, len(data), f.capacity)
	if fits == 0 && len(data) > 0 {
		return 0, syscall.ENOSPC
	}
	f.disk.write(n, data[:fits], off)
	return fits, 0
}

// tearOffset returns the sector boundary at which a write of a given size is torn.
func tearOffset(size int) int { return size / 2 / sector * sector }

// sync makes a file or directory durable, unless a fault is due.
func (f *FS) sync(n *node) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.powerCut {
		return syscall.EIO
	}
	if n.isDir() {
		if !f.options.IgnoreSync {
			f.disk.syncDir(n)
		}
		return 0
	}
	switch what := f.syncs.next(); {
	case what == faultFail:
		f.disk.loseUnsynced(n, f.random)
		return syscall.EIO
	case what == faultPowerCut:
		f.waitUnlocked()
		f.cutPower()
		return syscall.EIO
	case !f.options.IgnoreSync:
		f.disk.syncFile(n, !f.options.StrictNames)
	}
	return 0
}

// waitUnlocked releases mu for the time of a slow fsync. mu must be held.
func (f *FS) waitUnlocked() {
	f.mu.Unlock()
	time.Sleep(cutSyncDelay)
	f.mu.Lock()
}

// update runs do, an operation that is neither a write nor a sync and allocates the
// given number of blocks.
func (f *FS) update(blocks int64, do func(d *disk) syscall.Errno) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.powerCut:
		return syscall.EIO
	case blocks > 0 && f.disk.usedBytes+blocks*block > f.capacity:
		return syscall.ENOSPC
	}
	return do(f.disk)
}
