package org

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// TaskStatus says how far a task is.
type TaskStatus string

// The states of a task.
const (
	Running   TaskStatus = "running"
	Done      TaskStatus = "done"
	Failed    TaskStatus = "failed"
	Cancelled TaskStatus = "cancelled"
)

// Task is what a caller gave to the organization. Its rights are bounded by
// Ceiling and Groups; as zero values both let nothing through.
type Task struct {
	ID         identity.TaskID     `json:"id"`
	Text       string              `json:"text"`
	Caller     string              `json:"caller"`
	Top        identity.AgentID    `json:"agent"`                // its root, or the agent of the role it named
	CallerRole identity.RoleID     `json:"callerRole,omitempty"` // of a caller from outside: bounds the task by what it is worth now
	Ceiling    toolgroups.BoundSet `json:"ceiling"`
	Groups     toolgroups.BoundSet `json:"groups"`          // the narrowing; All when there is none
	Hosts      []hosts.Rule        `json:"hosts,omitempty"` // what the caller's own requests had to pass when the task began
	State      string              `json:"state,omitempty"`
	Workspace  string              `json:"workspace,omitempty"` // a directory that serves all agents
	ReadOnly   bool                `json:"readOnly,omitempty"`
	Config     string              `json:"config,omitempty"` // the recorded configuration: a blob's hash
	Status     TaskStatus          `json:"status"`
	Result     json.RawMessage     `json:"result,omitempty"`
	Error      *TaskError          `json:"error,omitempty"`
	CreatedAt  time.Time           `json:"createdAt"`
	EndedAt    time.Time           `json:"endedAt,omitzero"`
	FirstSeq   uint64              `json:"firstSeq"` // its events have higher numbers
}

// TaskError says why a task failed.
type TaskError struct {
	Code    errcode.Code `json:"code"`
	Message string       `json:"message"`
}

// TaskSpec asks for a task.
type TaskSpec struct {
	Text      string
	Caller    identity.Principal
	Role      string          // id or name of a role to be bound to instead of root
	Groups    *toolgroups.Set // the narrowing; nil is none
	State     string
	Workspace string
	ReadOnly  bool
	Config    string
	FirstSeq  uint64
}

// summary drops what memory need not hold.
func (t Task) summary() *Task {
	t.Text, t.Result = "", nil
	return &t
}

// StartedBy says whether a caller from outside gave the task, in this role.
func (t *Task) StartedBy(p identity.Principal) bool {
	return p.Kind == identity.Caller && t.CallerRole == p.Role && t.CallerRole != "" && t.Caller == p.String()
}

// valid says whether the record names the role that bounds its caller, if it
// is one from outside.
func (t *Task) valid() bool {
	return t.CallerRole != "" || t.Caller != "" && !strings.HasPrefix(t.Caller, "user:")
}

// bounds lists what limits the task; all groups are no limit.
func (t *Task) bounds() []constraint {
	var list []constraint
	if !t.Ceiling.IsAll() {
		list = append(list, constraint{BoundSet: t.Ceiling, Hosts: hosts.Any(), reason: "what the task's caller may use", serverReason: "the server of the task's caller"})
	}
	if !t.Groups.IsAll() {
		list = append(list, constraint{BoundSet: t.Groups, Hosts: hosts.Any(), reason: "the groups the task is narrowed to"})
	}
	for _, rule := range t.Hosts {
		list = append(list, constraint{BoundSet: toolgroups.BoundSet{Set: toolgroups.All()}, Hosts: rule, reason: "what the task's caller may reach"})
	}
	return list
}

// StartTask makes a task and its top agent, under ids derived from id.
//
// Errors: RoleNotFound, InsufficientPermissions when groups or the role are
// more than the caller has.
func (o *Org) StartTask(id identity.TaskID, s TaskSpec) (Task, Agent, []Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	task := Task{
		ID: id, Text: s.Text, Caller: s.Caller.String(), State: s.State, Status: Running,
		Workspace: s.Workspace, ReadOnly: s.ReadOnly, Config: s.Config,
		CreatedAt: o.config.Now().UTC(), FirstSeq: s.FirstSeq,
		Top: identity.AgentID(identity.Derive(string(id), "top")), CallerRole: s.Caller.Role,
	}
	if err := o.setTaskBounds(&task, s); err != nil {
		return Task{}, Agent{}, nil, err
	}
	agent, err := o.topAgent(&task, s)
	if err != nil {
		return Task{}, Agent{}, nil, err
	}
	o.tasks[id] = task.summary()
	return task, agent, append(o.addAgent(&agent, nil), record(KindTask, string(id), task)), nil
}

// setTaskBounds sets the task's ceiling and narrowing.
func (o *Org) setTaskBounds(task *Task, s TaskSpec) error {
	m, err := o.grantor(s.Caller)
	if err != nil {
		return err
	}
	ceiling := toolgroups.All()
	for _, limit := range m.grants {
		ceiling = ceiling.Intersect(limit.Set)
	}
	narrow := toolgroups.All()
	if s.Groups != nil {
		narrow = *s.Groups
	}
	if missing := ceiling.Missing(narrow); s.Groups != nil && len(missing) > 0 && !narrow.IsAll() {
		return errcode.New(errcode.InsufficientPermissions, "start a task with groups %v: the caller has not %v", narrow, missing)
	}
	task.Ceiling, task.Groups, task.Hosts = o.bind(ceiling), o.bind(narrow), rules(m.grants)
	for _, limit := range m.grants { // the caller's own binding may be to an owner that is gone
		confine(&task.Ceiling, limit.Only)
		maps.DeleteFunc(task.Ceiling.Owners, func(id toolgroups.GroupID, owner toolgroups.Owner) bool {
			return !limit.Set.IsAll() && limit.Owners[id] != owner
		})
	}
	return nil
}

// confine bounds b to an owner's tools. Of two owners at once there are none.
func confine(b *toolgroups.BoundSet, only toolgroups.Owner) {
	switch {
	case only == "" || b.Only == only:
	case b.Only == "":
		b.Only = only
	default:
		b.Set = toolgroups.Of()
	}
}

func (o *Org) topAgent(task *Task, s TaskSpec) (Agent, error) {
	agent := Agent{ID: task.Top, Role: RootRole, Task: task.ID, Root: true, Status: Active, State: s.State, CreatedAt: task.CreatedAt}
	if s.Role == "" {
		return agent, nil
	}
	role, ok := o.roles[identity.RoleID(s.Role)]
	if !ok || role.Status != Active {
		if role, ok = o.rolesByName[s.Role]; !ok {
			return agent, notFound(errcode.RoleNotFound, "role", s.Role)
		}
	}
	m, err := o.grantor(s.Caller)
	if err != nil {
		return agent, err
	}
	agent.Role, agent.Root = role.ID, false
	return agent, m.checkGrant(role.Name, role.Use, role.Grant)
}

// EndTask records how a task ended; stored is its record and becomes the new
// one. Ending it twice changes nothing.
func (o *Org) EndTask(stored *Task, status TaskStatus, result json.RawMessage, failure *TaskError) []Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.tasks[stored.ID]
	if !ok || t.Status != Running {
		return nil
	}
	stored.Status, stored.Result, stored.Error = status, result, failure
	stored.EndedAt = o.config.Now().UTC()
	o.tasks[stored.ID] = stored.summary()
	return []Change{record(KindTask, string(stored.ID), stored)}
}

// Task gives a task without its text and result.
func (o *Org) Task(id identity.TaskID) (Task, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	t, ok := o.tasks[id]
	if !ok {
		return Task{}, false
	}
	return *t, true
}

// Tasks lists all tasks without texts and results, oldest first.
func (o *Org) Tasks() []Task {
	o.mu.RLock()
	defer o.mu.RUnlock()
	list := make([]Task, 0, len(o.tasks))
	for _, t := range o.tasks {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Task) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

func (o *Org) initialState(id identity.TaskID) string {
	if t, ok := o.tasks[id]; ok {
		return t.State
	}
	return ""
}
