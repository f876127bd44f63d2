package workspace

import (
	"context"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// pollInterval is the minimum time between two checks of how much a running
// program has written.
const pollInterval = 300 * time.Millisecond

// WatchQuota checks the quota while a program runs in the workspace. It returns
// quota_exceeded when the quota is exceeded or the disk is nearly full, otherwise
// the cause of ctx when ctx ends.
//
// Scans of the workspace take at most a tenth of the time. Free disk space is
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

// minFreeDisk returns how many bytes a program must leave free on the disk: half
// of what is free at its start, at most maxReservedDisk.
func minFreeDisk(free uint64, known bool) uint64 {
	if !known {
		return 0
	}
	return min(free/2, maxReservedDisk)
}

// maxReservedDisk is in bytes.
const maxReservedDisk = 4 << 30
