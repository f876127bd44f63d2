package rolecall

import (
	"cmp"
	"context"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// UnfinishedTask is a task that has not ended.
type UnfinishedTask struct {
	ID        TaskID
	Status    TaskStatus // TaskRunning, TaskWaiting, TaskPaused or TaskInterrupted
	Driven    bool       // Begin has started it; Resume goes on with it
	Text      string
	Key       string // TaskSpec.Key; Run with the key goes on with the task
	StartedAt time.Time
	Deadline  time.Time // when it is cancelled; zero for no limit
}

// UnfinishedTasks lists the tasks that have not ended, oldest first: all for the operator,
// else those of the caller. After a restart a program takes them up again with Resume or with
// Run and their key, or ends them with Cancel. Those with a timeout end at their deadline.
func (o *Organization) UnfinishedTasks(ctx context.Context, by Principal) ([]UnfinishedTask, error) {
	var list []UnfinishedTask
	for _, t := range o.rt.TasksOf(by) {
		if t.Status.Ended() {
			continue
		}
		record, err := o.rt.TaskRecord(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		if status := o.rt.TaskStatus(record); !status.Ended() {
			list = append(list, UnfinishedTask{t.ID, status, t.Driven, record.Text, t.Key, t.CreatedAt, t.Deadline})
		}
	}
	return list, nil
}

// CancelSpec names a task to cancel.
type CancelSpec struct {
	As     Principal // the operator, or the caller that started the task
	Task   TaskID
	Reason string // "" names the program
}

// Cancel ends a task and stops its agents. It does nothing if the task has ended. Errors:
// TaskNotFound, also for a task of another caller.
func (o *Organization) Cancel(ctx context.Context, s CancelSpec) error {
	task, ok := o.rt.Org().TaskByID(s.Task)
	if !ok || s.As.Kind != identity.Operator && !task.StartedBy(s.As) {
		return errcode.New(errcode.TaskNotFound, "cancel task %q: task not found", s.Task)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return o.rt.CancelTask(ctx, s.Task, cmp.Or(s.Reason, "its program cancelled it"))
}

// takeUp goes on with a task that was started with a key, if no agent works on it. A task
// that has ended stays as it is.
func (o *Organization) takeUp(ctx context.Context, by Principal, id TaskID) error {
	if task, ok := o.rt.Org().TaskByID(id); ok && task.Status == org.Paused {
		return o.rt.RetryTask(ctx, id, by, org.ModelAllowance{})
	}
	return o.rt.ResumeTask(ctx, id)
}
