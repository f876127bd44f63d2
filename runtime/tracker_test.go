package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
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

// What releases a task that was resumed in vain does not release the task that was resumed since.
func TestTracker_ReleaseOfOtherRun(t *testing.T) {
	tr := newTracker(t.Context(), new(org.Org), time.Now, func(*taskRun) {})
	first := tr.track("task")
	tr.untrack(first)
	second := tr.track("task")
	if tr.release(first) != nil || tr.run("task") != second || tr.acquire("task") != second {
		t.Error("the task that was resumed since has ended")
	}
	tr.end("task", first, nil)
	if tr.run("task") != second {
		t.Error("the end of the first run ends the second")
	}
}

// A task does not end while agents of it that rested may go on and are not active yet.
func TestTracker_ResumedAgentsKeepTask(t *testing.T) {
	tr := newTracker(t.Context(), new(org.Org), time.Now, func(*taskRun) {})
	run := tr.track("task")
	run.resting = map[identity.AgentID]bool{"one": true, "two": true}
	if list := tr.listResumed(); len(list) != 2 {
		t.Fatalf("resumed: %v", list)
	}
	if tr.release(run) != nil {
		t.Error("the task ends")
	}
}
