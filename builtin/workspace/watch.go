package workspace

import (
	"context"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// The minimum times between two looks of how much a running program has written.
const (
	pollInterval = 300 * time.Millisecond // at the workspace
	diskInterval = 5 * time.Millisecond   // at the free space of the disk
)

// programFactor is how often the reserve of the disk must be free while a program may write.
// What is written between two looks and until the program has ended comes out of the
// space above the reserve.
const programFactor = 2

// DiskSpace is the free space of a disk, and the part of it that is reserved for others, in
// bytes. The zero DiskSpace is unknown: nothing is reserved.
type DiskSpace struct{ Free, Reserve int64 }

// least returns the free space below which a program is stopped.
func (s DiskSpace) least(mayWrite bool) int64 {
	if mayWrite {
		return programFactor * s.Reserve
	}
	return s.Reserve
}

// diskSpace returns the space of the disk, the zero DiskSpace if it is unknown.
func (d *Dir) diskSpace() DiskSpace {
	if d.DiskSpace == nil {
		return DiskSpace{}
	}
	return d.DiskSpace()
}

// What a program may do to the disk.
const (
	MayDelete = false // it can only delete
	MayWrite  = true
)

// CheckDisk returns an error unless the disk has room for a program. mayWrite reports whether the
// program may write, or can only delete. Errors: storage_low.
func (d *Dir) CheckDisk(mayWrite bool) error {
	s := d.diskSpace()
	least := s.least(mayWrite)
	if s.Reserve <= 0 || s.Free >= least {
		return nil
	}
	return opError(errcode.StorageLow, "the disk is nearly full: %d bytes are free, and a program is stopped below %d; delete files, and write less at a time", s.Free, least)
}

// WatchDisk looks at the disk while a program runs. It returns the error of CheckDisk, or the
// cause of ctx when ctx ends.
func (d *Dir) WatchDisk(ctx context.Context, mayWrite bool) error {
	ticker := time.NewTicker(diskInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if err := d.CheckDisk(mayWrite); err != nil {
			return err
		}
	}
}

// WatchQuota checks the quota while a program runs in the workspace. It returns
// quota_exceeded when the quota is exceeded or the disk is nearly full, otherwise
// the cause of ctx when ctx ends.
//
// The reserve of the disk is watched by WatchDisk. Scans of the workspace take at most a tenth of the time. Free disk space is
// checked at every tick, since deleted files that are still open are in no folder.
func (d *Dir) WatchQuota(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	minFree := minFreeDisk(freeDisk(d.Root.Name()))
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if free, ok := freeDisk(d.Root.Name()); ok && free < minFree {
			return opError(errcode.QuotaExceeded, "the program uses too much disk space: %d bytes are free, and at least %d must remain; write less at a time", free, minFree)
		}
		start := time.Now()
		if start.Before(next) {
			continue
		}
		if _, err := d.CheckQuota(ctx); err != nil {
			return err
		}
		next = time.Now().Add(10 * time.Since(start))
	}
}

// minFreeDisk returns how many bytes a program must leave free on the disk. This is half of the
// free bytes at its start, at most maxReservedDisk.
func minFreeDisk(free uint64, known bool) uint64 {
	if !known {
		return 0
	}
	return min(free/2, maxReservedDisk)
}

// maxReservedDisk is in bytes.
const maxReservedDisk = 4 << 30
