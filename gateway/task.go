package gateway

import (
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// listTasks lists tasks by creation time.
func (a *api) listTasks(r *http.Request) (any, error) {
	status, err := enumParam(r, "status", string(org.Running), string(org.Done), string(org.Failed), string(org.Cancelled))
	if err != nil {
		return nil, err
	}
	list := a.org().ListTasks()
	if status != "" {
		list = slices.DeleteFunc(list, func(t org.Task) bool { return string(t.Status) != status })
	}
	byAge := func(t org.Task) string { return creationKey(t.CreatedAt, string(t.ID)) }
	return paginate(r, list, byAge, func(t org.Task) wire.Task {
		stored, err := a.rt.TaskRecord(r.Context(), t.ID)
		if err != nil { // show what is in memory
			a.log.Error("task record unreadable; showing it without text", "task", t.ID, "error", err)
			stored = t
		}
		stored.Result = nil
		return taskOf(stored)
	})
}

// showTask answers with one task, its result and its usage.
func (a *api) showTask(r *http.Request) (any, error) {
	t, err := a.rt.TaskRecord(r.Context(), identity.TaskID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	out := taskOf(t)
	out.Usage, err = a.rt.TaskUsage(r.Context(), t.ID)
	return out, err
}

// cancelTask cancels a task and answers with it. A task that has ended is not
// changed.
func (a *api) cancelTask(r *http.Request) (any, error) {
	if err := a.rt.CancelTask(r.Context(), identity.TaskID(r.PathValue("id")), reasonParam(r)); err != nil {
		return nil, err
	}
	return a.showTask(r)
}

// taskOf converts a task's record for the API.
func taskOf(t org.Task) wire.Task {
	return wire.Task{
		ID: t.ID, Text: t.Text, Status: t.Status, Caller: t.Caller, Agent: t.Top, Groups: t.Groups.Set, State: t.State,
		Workspace: t.Workspace, ReadOnly: t.ReadOnly, Result: t.Result, Error: t.Error, CreatedAt: t.CreatedAt, EndedAt: t.EndedAt,
	}
}
