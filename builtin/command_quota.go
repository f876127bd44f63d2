package builtin

import (
	"context"
	"sync"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/builtin/workspace"
)

// enforceQuota enforces the workspace quota and the reserve of the disk while a program
// runs. It polls both and cancels the returned context with quota_exceeded or storage_low.
// In a workspace that is over its quota already, and near the reserve, the program can
// delete files but not write any. The caller must call done, which stops the polling.
func enforceQuota(ctx context.Context, ws *workspace.Dir, l *sandbox.JobLimits) (_ context.Context, done func()) {
	if ws.ReadOnly {
		return ctx, func() {}
	}
	_, err := ws.CheckQuota(ctx)
	mayWrite := err == nil && ws.CheckDisk(workspace.MayWrite) == nil
	if !mayWrite {
		l.FileSize = 1 // 0 would mean the default
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { cancel(ws.WatchDisk(ctx, mayWrite)) })
	if mayWrite {
		watchers.Go(func() { cancel(ws.WatchQuota(ctx)) })
	}
	return ctx, func() {
		cancel(nil)
		watchers.Wait()
	}
}
