package org

import (
	"math"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// PauseTask pauses a running task. stored is the record of the task; PauseTask updates it.
// If the task is not running, PauseTask changes nothing and returns no changes.
func (o *Org) PauseTask(stored *Task, reason TaskError) []RecordChange {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.tasks[stored.ID]
	if !ok || t.Status != Running {
		return nil
	}
	stored.Status, stored.Pause = Paused, &TaskPause{TaskError: reason, At: o.config.Now().UTC()}
	*t = *stored.summary()
	return []RecordChange{record(KindTask, string(stored.ID), stored)}
}

// RetryTask makes a paused task running again. Its models may use more than before by extra.
// The time during which it was paused does not count against its deadline. stored is the
// record of the task; RetryTask updates it.
//
// The error has the code TaskNotFound, or Conflict if the task is not paused.
func (o *Org) RetryTask(stored *Task, extra ModelAllowance) ([]RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.tasks[stored.ID]
	switch {
	case !ok:
		return nil, notFound(errcode.TaskNotFound, "task", string(stored.ID))
	case t.Status != Paused:
		return nil, errcode.New(errcode.Conflict, "retry task %s: the task is not paused, it is %s", t.ID, t.Status).With("task", t.ID)
	}
	if !stored.Deadline.IsZero() && stored.Pause != nil {
		stored.Deadline = stored.Deadline.Add(max(0, o.since(stored.Pause.At)))
	}
	stored.Status, stored.Pause = Running, nil
	stored.Extra.Tokens = addClamped(stored.Extra.Tokens, extra.Tokens)
	stored.Extra.Cost = addClamped(stored.Extra.Cost, extra.Cost)
	*t = *stored.summary()
	return []RecordChange{record(KindTask, string(stored.ID), stored)}, nil
}

// since returns the time that has passed since at.
func (o *Org) since(at time.Time) time.Duration { return o.config.Now().Sub(at) }

// addClamped adds two amounts that are not negative, up to the largest int64.
func addClamped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
