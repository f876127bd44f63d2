package builtin

import (
	"context"
	"sync"
	"time"

	"github.com/rolecall/rolecall/sandbox"
)

// lookEvery is the least time between two looks at how much a running program
// has written.
const lookEvery = 300 * time.Millisecond

// inRoom holds a program to its workspace's quota: what it writes is looked at
// while it runs, and the context it gives ends with quota_exceeded. In a
// workspace that is over its quota already a program may remove and not add.
// The caller calls done, which waits until nobody looks any more.
func inRoom(ctx context.Context, ws *Workspace, l *sandbox.Limits) (_ context.Context, done func()) {
	if ws.ReadOnly {
		return ctx, func() {}
	}
	if _, err := ws.CheckRoom(ctx); err != nil {
		l.FileSize = 1 // 0 is the default
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { end(watchRoom(ctx, ws)) })
	return ctx, func() {
		end(nil)
		looking.Wait()
		_, _ = ws.Usage(context.WithoutCancel(ctx)) // later writes go by it
	}
}

// watchRoom returns when there is no room left, or ctx ends. The more there is
// to look at, the less often it looks.
func watchRoom(ctx context.Context, ws *Workspace) error {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		began := time.Now()
		if _, err := ws.CheckRoom(ctx); err != nil {
			return err
		}
		timer.Reset(max(lookEvery, 10*time.Since(began)))
	}
}
