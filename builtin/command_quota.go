package builtin

import (
	"context"
	"sync"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/builtin/workspace"
)

// withQuota enforces the workspace quota while a program runs. It polls the usage
// and cancels the returned context with quota_exceeded when the quota is
// exceeded. In a workspace that is over its quota already, the program can
// delete files but not write any. The caller must call done, which stops the
// polling and measures the workspace again.
func withQuota(ctx context.Context, ws *workspace.Dir, l *sandbox.JobLimits) (_ context.Context, done func()) {
	if ws.ReadOnly {
		return ctx, func() {}
	}
	if _, err := ws.CheckQuota(ctx); err != nil {
		l.FileSize = 1 // 0 would mean the default
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { cancel(ws.WatchQuota(ctx)) })
	return ctx, func() {
		cancel(nil)
		watcher.Wait()
		_, _ = ws.DiskUsage(context.WithoutCancel(ctx)) // refreshes the cache for later writes
	}
}
