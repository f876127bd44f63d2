package builtin

import (
	"context"
	"sync"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
)

// pollInterval is the least time between two looks at how much a running program
// has written.
const pollInterval = 300 * time.Millisecond

// withQuota holds a program to its workspace's quota: what it writes is looked at
// while it runs, and the context it gives ends with quota_exceeded. In a
// workspace that is over its quota already a program may remove and not add.
// The caller calls done, which waits until nobody looks any more.
func withQuota(ctx context.Context, ws *Workspace, l *sandbox.Limits) (_ context.Context, done func()) {
	if ws.ReadOnly {
		return ctx, func() {}
	}
	if _, err := ws.CheckQuota(ctx); err != nil {
		l.FileSize = 1 // 0 is the default
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { end(watchQuota(ctx, ws)) })
	return ctx, func() {
		end(nil)
		looking.Wait()
		_, _ = ws.Usage(context.WithoutCancel(ctx)) // later writes go by it
	}
}

// watchQuota returns when there is no room left, or ctx ends. The more there is
// to look at, the less often it looks at the workspace; at the disk it looks
// each time, since files without a name stand in no folder.
func watchQuota(ctx context.Context, ws *Workspace) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	least := minFreeDisk(freeDisk(ws.Root.Name()))
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if free, ok := freeDisk(ws.Root.Name()); ok && free < least {
			return refused(errcode.QuotaExceeded, "the program took too much of the disk: %d bytes are free of the %d it has to leave; write less at a time", free, least)
		}
		began := time.Now()
		if began.Before(next) {
			continue
		}
		if _, err := ws.CheckQuota(ctx); err != nil {
			return err
		}
		next = time.Now().Add(10 * time.Since(began))
	}
}

// minFreeDisk is what a program has to leave free of a disk: half of what was
// free when it began, but no more than reserve.
func minFreeDisk(free uint64, known bool) uint64 {
	if !known {
		return 0
	}
	return min(free/2, reserve)
}

const reserve = 4 << 30
