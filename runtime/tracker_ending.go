package runtime

import (
	"context"

	"github.com/rolecall/rolecall/identity"
)

// taskEnding is the state of a task whose first agent is about to end it. The agents below
// are stopped, and nothing begins for them.
type taskEnding struct {
	first identity.AgentID
	quiet chan struct{} // closed when only the first agent is at work
	noted bool          // quiet is closed
}

// stops reports whether an agent is stopped because its task ends. It must be called with
// tracker.mu held.
func (run *taskRun) stops(id identity.AgentID) bool {
	return run.ending != nil && run.ending.first != id
}

// signalQuiet closes quiet when only the first agent is at work. It must be called with
// tracker.mu held.
func (run *taskRun) signalQuiet() {
	if e := run.ending; e != nil && !e.noted && run.refs == 1 {
		e.noted = true
		close(e.quiet)
	}
}

// stopBelow stops all agents of a task but the first, and waits until they have stopped and
// no delivery is in progress. Nothing begins for them until undoEnding. The error is the cause of
// the end of ctx.
func (t *tracker) stopBelow(ctx context.Context, first *actor) (*taskRun, error) {
	run, quiet := t.beginEnding(first)
	if run == nil {
		return nil, errTerminated
	}
	select {
	case <-quiet:
		return run, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// beginEnding marks a task as ending and cancels the turns of the agents below. It returns
// the channel that is closed when they have stopped, and nil if the task is not tracked any
// more.
func (t *tracker) beginEnding(first *actor) (*taskRun, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[first.task]
	if run == nil || run.ended {
		return nil, nil
	}
	run.ending = &taskEnding{first: first.agent.ID, quiet: make(chan struct{})}
	for id, a := range t.active {
		if a.task == run.id && run.stops(id) && a.cancel != nil {
			a.cancel(errTaskEnding)
		}
	}
	run.signalQuiet()
	return run, run.ending.quiet
}

// undoEnding undoes the beginning of the end of a task. It reports whether the task still runs.
func (t *tracker) undoEnding(id identity.TaskID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[id]
	if run == nil || run.ended || t.ctx.Err() != nil {
		return false
	}
	run.ending = nil
	t.setTimer(run)
	return true
}

// isEnding reports whether the first agent of a task is about to end it.
func (t *tracker) isEnding(id identity.TaskID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[id]
	return run != nil && run.ending != nil
}
