package builtin

import (
	"context"
	"sync"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
)

// pollInterval is the minimum time between two checks of how much a running
// program has written.
const pollInterval = 300 * time.Millisecond

// withQuota enforces the workspace quota while a program runs. It polls the usage
// and cancels the returned context with quota_exceeded when the quota is
// exceeded. In a workspace that is over its quota already, the program can
// delete files but not write any. The caller must call done, which stops the
// polling and measures the workspace again.
func withQuota(ctx context.Context, ws *Workspace, l *sandbox.Limits) (_ context.Context, done func()) {
	if ws.ReadOnly {
		return ctx, func() {}
	}
	if _, err := ws.CheckQuota(ctx); err != nil {
		l.FileSize = 1 // 0 would mean the default
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { cancel(watchQuota(ctx, ws)) })
	return ctx, func() {
		cancel(nil)
		watcher.Wait()
		_, _ = ws.Usage(context.WithoutCancel(ctx)) // refreshes the cache for later writes
	}
}

// watchQuota returns when the quota is exceeded or ctx ends. A scan of the
// workspace takes at most a tenth of the time. Free disk space is checked at
// every tick, since deleted files that are still open are in no folder.
func watchQuota(ctx context.Context, ws *Workspace) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	minFree := minFreeDisk(freeDisk(ws.Root.Name()))
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if free, ok := freeDisk(ws.Root.Name()); ok && free < minFree {
			return fileOpError(errcode.QuotaExceeded, "the program uses too much disk space: %d bytes are free, and at least %d must remain; write less at a time", free, minFree)
		}
		start := time.Now()
		if start.Before(next) {
			continue
		}
		if _, err := ws.CheckQuota(ctx); err != nil {
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
