package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Task is a task. Lists contain neither Result nor Usage.
type Task struct {
	ID        identity.TaskID  `json:"id"`
	Text      string           `json:"text"`
	Status    org.TaskStatus   `json:"status"`
	Caller    string           `json:"caller"`
	Agent     identity.AgentID `json:"agent"`  // the task's root agent
	Groups    toolgroups.Set   `json:"groups"` // the groups that the task is restricted to; ["*"] for no restriction
	State     string           `json:"state,omitempty"`
	Workspace string           `json:"workspace,omitempty"`
	ReadOnly  bool             `json:"readOnly,omitempty"`
	Result    json.RawMessage  `json:"result,omitempty"`
	Error     *org.TaskError   `json:"error,omitempty"`
	CreatedAt time.Time        `json:"createdAt"`
	EndedAt   time.Time        `json:"endedAt,omitzero"`
	Usage     model.Usage      `json:"usage,omitzero"` // of all models so far
}

// listTasks lists tasks by creation time.
func (a *api) listTasks(r *http.Request) (any, error) {
	status, err := enumParam(r, "status", string(org.Running), string(org.Done), string(org.Failed), string(org.Cancelled))
	if err != nil {
		return nil, err
	}
	list := a.org().Tasks()
	if status != "" {
		list = slices.DeleteFunc(list, func(t org.Task) bool { return string(t.Status) != status })
	}
	byAge := func(t org.Task) string { return creationKey(t.CreatedAt, string(t.ID)) }
	return paginate(r, list, byAge, func(t org.Task) Task {
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
	out.Usage, err = a.rt.Usage(r.Context(), t.ID)
	return out, err
}

// cancelTask cancels a task and answers with it. A task that has ended is not
// changed.
func (a *api) cancelTask(r *http.Request) (any, error) {
	if err := a.rt.Cancel(r.Context(), identity.TaskID(r.PathValue("id")), reasonParam(r)); err != nil {
		return nil, err
	}
	return a.showTask(r)
}

// taskOf converts a task's record for the API.
func taskOf(t org.Task) Task {
	return Task{
		ID: t.ID, Text: t.Text, Status: t.Status, Caller: t.Caller, Agent: t.Top, Groups: t.Groups.Set, State: t.State,
		Workspace: t.Workspace, ReadOnly: t.ReadOnly, Result: t.Result, Error: t.Error, CreatedAt: t.CreatedAt, EndedAt: t.EndedAt,
	}
}
