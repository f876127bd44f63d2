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

// Task is a task; lists have neither Result nor Usage.
type Task struct {
	ID        identity.TaskID  `json:"id"`
	Text      string           `json:"text"`
	Status    org.TaskStatus   `json:"status"`
	Caller    string           `json:"caller"`
	Agent     identity.AgentID `json:"agent"`  // the one it started with
	Groups    toolgroups.Set   `json:"groups"` // the narrowing; ["*"] when there is none
	State     string           `json:"state,omitempty"`
	Workspace string           `json:"workspace,omitempty"`
	ReadOnly  bool             `json:"readOnly,omitempty"`
	Result    json.RawMessage  `json:"result,omitempty"`
	Error     *org.TaskError   `json:"error,omitempty"`
	CreatedAt time.Time        `json:"createdAt"`
	EndedAt   time.Time        `json:"endedAt,omitzero"`
	Usage     model.Usage      `json:"usage,omitzero"` // of all its models so far
}

// listTasks lists tasks by age.
func (a *api) listTasks(r *http.Request) (any, error) {
	want, err := among(r, "status", string(org.Running), string(org.Done), string(org.Failed), string(org.Cancelled))
	if err != nil {
		return nil, err
	}
	list := a.org().Tasks()
	if want != "" {
		list = slices.DeleteFunc(list, func(t org.Task) bool { return string(t.Status) != want })
	}
	byAge := func(t org.Task) string { return byCreation(t.CreatedAt, string(t.ID)) }
	return paginate(r, list, byAge, func(t org.Task) Task {
		stored, err := a.rt.TaskRecord(r.Context(), t.ID)
		if err != nil { // what memory has is still worth showing
			a.log.Error("task shown without its text", "task", t.ID, "error", err)
			stored = t
		}
		stored.Result = nil
		return taskOf(stored)
	})
}

func (a *api) showTask(r *http.Request) (any, error) {
	t, err := a.rt.TaskRecord(r.Context(), identity.TaskID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	shown := taskOf(t)
	shown.Usage, err = a.rt.Usage(r.Context(), t.ID)
	return shown, err
}

// cancelTask ends a task and answers with it; one that has ended stays as it is.
func (a *api) cancelTask(r *http.Request) (any, error) {
	if err := a.rt.Cancel(r.Context(), identity.TaskID(r.PathValue("id")), reasonOf(r)); err != nil {
		return nil, err
	}
	return a.showTask(r)
}

func taskOf(t org.Task) Task {
	return Task{
		ID: t.ID, Text: t.Text, Status: t.Status, Caller: t.Caller, Agent: t.Top, Groups: t.Groups.Set, State: t.State,
		Workspace: t.Workspace, ReadOnly: t.ReadOnly, Result: t.Result, Error: t.Error, CreatedAt: t.CreatedAt, EndedAt: t.EndedAt,
	}
}
