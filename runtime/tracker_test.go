package runtime

import (
	"context"
	"testing"
	"time"
)

// When the runtime closes, no timer of a task is left.
func TestTracker_WaitStopsDeadlines(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tr := newTracker(ctx, nil, time.Now, func(*taskRun) {})
	tr.setDeadline("untracked", time.Hour, func() {})
	limit := tr.limits["untracked"]
	tr.track("tracked")
	tr.setDeadline("tracked", time.Hour, func() {})
	cancel()
	tr.wait()
	if limit.Stop() {
		t.Error("the deadline of a task that is not tracked was not stopped")
	}
	if tr.run("tracked").deadline.Stop() {
		t.Error("the deadline of a tracked task was not stopped")
	}
}
