package org_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// storedTask returns the stored record of an agent's task.
func (f *fixture) storedTask(id identity.AgentID) *org.Task {
	f.t.Helper()
	var task org.Task
	if err := json.Unmarshal(f.store.records["task "+string(f.agent(id).Task)], &task); err != nil {
		f.t.Fatal(err)
	}
	return &task
}

// retry retries a task, which must succeed.
func (f *fixture) retry(task *org.Task, extra org.ModelAllowance) {
	f.t.Helper()
	changes, err := f.RetryTask(operator, task, extra)
	if err != nil {
		f.t.Fatal(err)
	}
	f.store.put(changes)
}

// A task that goes on has what its caller has now, also after a restart.
func TestRetryTask_BoundedByItsCallerNow(t *testing.T) {
	f := newFixture(t)
	reader := f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs", "workspace")})
	top := f.task(org.TaskSpec{Caller: identity.ByCaller("ann", reader.ID), Role: string(reader.ID)})
	before := f.tools(top)
	for _, status := range []org.TaskStatus{org.Paused, org.Failed, org.Cancelled} {
		task := f.storedTask(top)
		if status == org.Paused {
			f.store.put(f.PauseTask(task, org.TaskError{Code: errcode.BudgetExceeded}))
		} else {
			f.store.put(f.EndTask(task, org.TaskEnd{Status: status, Error: &org.TaskError{Code: errcode.Internal}}, 0))
		}
		f.update(reader.ID, org.RoleSpec{Use: of("docs")})
		f.retry(task, org.ModelAllowance{})
		f.wantTools(top, "search")
		f.reopen()
		f.wantTools(top, "search")
		if now := f.storedTask(top); now.Status != org.Running || now.Pause != nil || now.Error != nil || !now.EndedAt.IsZero() {
			t.Errorf("after a retry of a %s task: %+v", status, now)
		}
		f.update(reader.ID, org.RoleSpec{Use: of("docs", "workspace")})
		if len(f.tools(top)) != len(before) {
			t.Errorf("tools %v, want %v", f.tools(top), before)
		}
	}
}

// Only the operator and the caller that started a task let it go on, and only the operator
// after it was cancelled.
func TestRetryTask_ByWhom(t *testing.T) {
	f := newFixture(t)
	lead := f.role(operator, org.RoleSpec{Name: "lead", Use: of("org_management")})
	other := f.role(operator, org.RoleSpec{Name: "other", Use: of("*"), Grant: of("*")})
	ann := identity.ByCaller("ann", lead.ID)
	root := f.task(org.TaskSpec{Caller: ann})
	_, err := f.RetryTask(ann, f.storedTask(root), org.ModelAllowance{})
	wantCode(t, err, errcode.Conflict, "has not stopped; if no process works on it, run --resume continues it")
	for _, status := range []org.TaskStatus{org.Paused, org.Failed, org.Cancelled} {
		task := f.storedTask(root)
		if status == org.Paused {
			f.store.put(f.PauseTask(task, org.TaskError{Code: errcode.BudgetExceeded}))
		} else {
			f.store.put(f.EndTask(task, org.TaskEnd{Status: status, Error: &org.TaskError{Code: errcode.Internal}}, 0))
		}
		for _, by := range []identity.Principal{{}, {Kind: identity.Configuration}, identity.ByAgent(root), identity.ByCaller("bob", lead.ID), identity.ByCaller("ann", other.ID)} {
			_, err := f.RetryTask(by, task, org.ModelAllowance{})
			wantCode(t, err, errcode.TaskNotFound)
		}
		changes, err := f.RetryTask(ann, task, org.ModelAllowance{})
		if status != org.Cancelled {
			wantCode(t, err, "")
			f.store.put(changes)
			continue
		}
		wantCode(t, err, errcode.InsufficientPermissions, "only the operator")
		f.retry(task, org.ModelAllowance{})
	}
}

// A caller lets its task go on only while it could start it: its role, the role in tasks.as
// and the role of the first agent are active. The operator may in any case.
func TestRetryTask_OnlyWhatMayStart(t *testing.T) {
	f, ops, clerk, _, ann := newTasksFixture(t)
	first := f.role(operator, org.RoleSpec{Name: "first", Use: of("docs")})
	top := f.task(org.TaskSpec{Caller: ann, Role: string(first.ID)})
	task := f.storedTask(top)
	f.store.put(f.EndTask(task, org.TaskEnd{Status: org.Failed, Error: &org.TaskError{Code: errcode.Internal}}, 0))
	for _, id := range []identity.RoleID{ops.ID, clerk.ID, first.ID} {
		f.suspend(id)
		_, err := f.RetryTask(ann, task, org.ModelAllowance{})
		wantCode(t, err, errcode.InsufficientPermissions, "paused")
		f.resume(id)
	}
	f.suspend(clerk.ID)
	f.retry(task, org.ModelAllowance{})
	f.resume(clerk.ID)
	f.store.put(f.EndTask(task, org.TaskEnd{Status: org.Failed, Error: &org.TaskError{Code: errcode.Internal}}, 0))
	_, err := f.RetryTask(ann, task, org.ModelAllowance{})
	wantCode(t, err, "")
}

func TestRetryTask_ExtendsDeadlineAndBudget(t *testing.T) {
	f := newFixture(t)
	top := f.task(org.TaskSpec{Timeout: time.Hour})
	task := f.storedTask(top)
	deadline := task.Deadline
	f.store.put(f.PauseTask(task, org.TaskError{Code: errcode.BudgetExceeded}))
	paused := task.Pause.At
	f.retry(task, org.ModelAllowance{Tokens: 5, Cost: 7})
	if task.Deadline.Before(deadline) || task.Deadline.Sub(deadline) > task.Deadline.Sub(paused) {
		t.Errorf("the deadline moves from %v to %v", deadline, task.Deadline)
	}
	f.store.put(f.EndTask(task, org.TaskEnd{Status: org.Cancelled, Error: &org.TaskError{Code: errcode.TaskCancelled}}, 0))
	task.EndedAt = task.Deadline.Add(time.Minute) // its time was over
	f.retry(task, org.ModelAllowance{Tokens: 1<<63 - 1})
	if left := time.Until(task.Deadline); left <= 0 && task.Deadline.Sub(task.CreatedAt) < time.Hour {
		t.Errorf("the task has no time left: %v", task.Deadline)
	}
	if task.Extra != (org.ModelAllowance{Tokens: 1<<63 - 1, Cost: 7}) {
		t.Errorf("the task may use %+v more", task.Extra)
	}
}
