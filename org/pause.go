package org

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// Pause says who has paused a task or the organization until it is resumed. The zero Pause
// means no pause.
//
// A task is paused in two ways, which may come together. A person holds it: HoldTask sets
// Task.Held, and ReleaseTask removes it. Or an error or its budget stops it. PauseTask then
// sets the status Paused and Task.Pause, and RetryTask lets it go on.
type Pause struct {
	By     string    `json:"by"` // identity.Principal.String
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// IsSet reports whether something is paused.
func (p Pause) IsSet() bool { return !p.At.IsZero() }

// taskPause returns p as the reason why a task is paused.
func (p Pause) taskPause() *TaskPause {
	return &TaskPause{TaskError: TaskError{Code: errcode.Paused, Message: p.Reason}, By: p.By, At: p.At}
}

// orgPause is the record of the pause of the whole organization.
type orgPause struct {
	Pause
	Total time.Duration `json:"total,omitempty"` // of all pauses before this one
}

// orgPauseKey is the key of the record of KindMeta that holds an orgPause.
const orgPauseKey = "pause"

// orgPausedReason is the reason of calls that the pause of the organization denies.
const orgPausedReason = "the operator has paused the organization"

// PauseOrg pauses the whole organization until ResumeOrg: no agent and no caller may call
// anything. An organization that is paused keeps its first pause, and there are no changes.
//
// The error has the code InsufficientPermissions unless by is the operator.
func (o *Org) PauseOrg(by identity.Principal, reason string) ([]RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := requireOperator("pause the organization", by); err != nil || o.pause.IsSet() {
		return nil, err
	}
	return o.setOrgPause(orgPause{Pause{by.String(), reason, o.config.Now().UTC()}, o.pause.Total}), nil
}

// ResumeOrg ends the pause of the organization. Tasks and roles with a pause of their own stay
// paused. The time of the pause does not count against the deadlines of tasks.
//
// Errors have the codes InsufficientPermissions unless by is the operator, and Conflict if the
// organization is not paused.
func (o *Org) ResumeOrg(by identity.Principal) ([]RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := requireOperator("resume the organization", by); err != nil {
		return nil, err
	}
	if !o.pause.IsSet() {
		return nil, errcode.New(errcode.Conflict, "resume the organization: it is not paused; tasks and roles that are paused are resumed by their names")
	}
	return o.setOrgPause(orgPause{Total: o.totalPaused()}), nil
}

// requireOperator returns an error unless by is the operator.
func requireOperator(attempt string, by identity.Principal) error {
	if by.Kind == identity.Operator {
		return nil
	}
	return errcode.New(errcode.InsufficientPermissions, "%s: only the operator may do that", attempt)
}

// setOrgPause sets the pause and recompiles the Views of all scopes, so that the gate sees it at
// once. It returns the records to store. It must be called with mu held.
func (o *Org) setOrgPause(p orgPause) []RecordChange {
	defer o.notifyChanged()
	o.pause = p
	o.epoch++
	all := make([]*scope, 0, len(o.scopes.byKey))
	for _, s := range o.scopes.byKey {
		all = append(all, s)
	}
	o.recompile(all)
	return append(o.epochRecords(), newRecord(KindMeta, orgPauseKey, p))
}

// viewUnlessPaused returns view. While the organization is paused, it returns a View that allows
// nothing. It must be called with mu held.
func (o *Org) viewUnlessPaused(view *toolgroups.View) *toolgroups.View {
	if !o.pause.IsSet() {
		return view
	}
	paused := o.config.Groups.CurrentSnapshot().Compile(toolgroups.PinnedSet{})
	paused.SetGating(view.Gating())
	paused.SetSuspended(orgPausedReason)
	return paused
}

// loadPause reads the pause of the organization. The organization is paused if the record of the
// pause is damaged. It is also paused if the key of a damaged record is unknown: this may be the
// record of the pause.
func (o *Org) loadPause(source RecordSource) {
	for r, err := range source.Records(string(KindMeta)) {
		unknownKey := err != nil && r.Key == ""
		if r.Key != orgPauseKey && !unknownKey {
			continue
		}
		var stored *orgPause
		if err == nil {
			err = json.Unmarshal(r.Value, &stored)
		}
		if err != nil || stored == nil {
			o.config.Log.Error("record ignored; the organization is paused", "kind", KindMeta, "key", r.Key, "error", err)
			stored = &orgPause{Pause: Pause{"rolecall", "the record of the pause is damaged", o.config.Now().UTC()}}
		}
		o.pause = *stored
	}
}

// OrgPause returns the pause of the whole organization, the zero Pause if there is none.
func (o *Org) OrgPause() Pause {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.pause.Pause
}

// HoldTask pauses a task that has not ended until ReleaseTask, for the operator or the caller
// that started it. A task that is held keeps its first pause, and there are no changes. But the
// operator's pause replaces a caller's. stored is the record of the task; HoldTask updates it.
//
// Errors have the codes TaskNotFound, also for the task of another caller, and
// InsufficientPermissions for agents. The code is Conflict if the task has ended.
func (o *Org) HoldTask(by identity.Principal, stored *Task, reason string) ([]RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, err := o.taskToPause("pause", by, stored.ID)
	switch {
	case err != nil:
		return nil, err
	case t.Status.Ended():
		return nil, errcode.New(errcode.Conflict, "pause task %s: the task has ended (%s)", t.ID, t.Status).With("task", t.ID)
	case t.Held != nil && (by.Kind != identity.Operator || !t.heldByCaller()):
		return nil, nil
	}
	return o.setHeld(t, stored, &Pause{by.String(), reason, o.config.Now().UTC()}), nil
}

// ReleaseTask ends the pause of a task. Its time does not count against the deadline of the
// task. stored is the record of the task; ReleaseTask updates it.
//
// The error has the code TaskNotFound, or Conflict if HoldTask has not paused the task. It
// has the code InsufficientPermissions for agents. A caller gets this code if the operator
// has paused the task, or if the caller may not start the task any more.
func (o *Org) ReleaseTask(by identity.Principal, stored *Task) ([]RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, err := o.taskToPause("resume", by, stored.ID)
	switch {
	case err != nil:
		return nil, err
	case t.Held == nil:
		return nil, o.errNotHeld(t)
	case by.Kind != identity.Operator && !t.heldByCaller():
		return nil, errcode.New(errcode.InsufficientPermissions, "resume task %s: the operator has paused it; only the operator may let it go on", t.ID)
	}
	if err := o.checkRetry(by, t); err != nil {
		return nil, err
	}
	return o.setHeld(t, stored, nil), nil
}

// taskToPause returns the task if by may pause and resume it. verb begins the error. It must be
// called with mu held.
func (o *Org) taskToPause(verb string, by identity.Principal, id identity.TaskID) (*Task, error) {
	t, ok := o.tasks[id]
	switch {
	case by.Kind != identity.Operator && by.Kind != identity.Caller:
		return nil, errcode.New(errcode.InsufficientPermissions, "%s task %s: only the operator and the caller that started the task may do that", verb, id)
	case !ok || by.Kind != identity.Operator && !t.StartedBy(by):
		return nil, notFound(errcode.TaskNotFound, "task", string(id))
	}
	return t, nil
}

// errNotHeld returns the error for resuming a task that HoldTask has not paused.
func (o *Org) errNotHeld(t *Task) error {
	why := "it is not paused"
	switch {
	case t.Status == Paused:
		why = "an error or its budget has paused it (" + string(t.Pause.Code) + "); \"rolecall task retry\" lets it go on"
	case t.Status.Ended():
		why = "it has ended (" + string(t.Status) + "); \"rolecall task retry\" lets a task go on that has failed or was cancelled"
	case o.pause.IsSet():
		why = "the whole organization is paused; \"rolecall resume --all\" lets it go on"
	}
	return errcode.New(errcode.Conflict, "resume task %s: %s", t.ID, why).With("task", t.ID)
}

// setHeld sets the pause of a task, or ends it if p is nil. The end moves the deadline by the time
// of the pause. t is the task in memory, stored its record. It must be called with mu held.
func (o *Org) setHeld(t, stored *Task, p *Pause) []RecordChange {
	before, text, input, result := t.Held, stored.Text, stored.Input, stored.Result
	*stored = *t // stored may be older than t, but only stored has the fields that summary leaves out
	stored.Text, stored.Input, stored.Result, stored.Held = text, input, result, p
	if p == nil && t.Status == Running && !t.Deadline.IsZero() {
		stored.Deadline = t.Deadline.Add(max(0, o.config.Now().UTC().Sub(before.At)))
	}
	*t = *stored.summary()
	return []RecordChange{newRecord(KindTask, string(stored.ID), stored)}
}

// heldByCaller reports whether the caller that started t has paused it.
func (t *Task) heldByCaller() bool {
	return t.Held != nil && t.Held.By == t.Caller && t.CallerRole != ""
}

// PauseReason returns a text that says why an agent is paused. Its task may be held. The
// organization, its role or a role that bounds it may be paused. It returns "" for an agent that is
// not paused and for an unknown one.
func (o *Org) PauseReason(id identity.AgentID) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return ""
	}
	if t := o.tasks[m.task]; t != nil && t.Held != nil {
		return "task " + string(t.ID) + " is paused"
	}
	return m.scope.CurrentView().Suspended()
}

// PauseOf returns why a task is paused. It is held, an error or its budget has stopped it, or the
// organization is paused. It returns nil for a task that is not paused, has ended or is unknown.
// The pause of a role does not pause its tasks.
func (o *Org) PauseOf(id identity.TaskID) *TaskPause {
	o.mu.RLock()
	defer o.mu.RUnlock()
	t, ok := o.tasks[id]
	switch {
	case !ok || t.Status.Ended():
		return nil
	case t.Held != nil:
		return t.Held.taskPause()
	case t.Status == Paused:
		return t.Pause
	case o.pause.IsSet():
		return o.pause.taskPause()
	}
	return nil
}

// totalPaused returns the time of all pauses of the organization, with the time of the present
// pause so far. It must be called with mu held.
func (o *Org) totalPaused() time.Duration {
	if !o.pause.IsSet() {
		return o.pause.Total
	}
	return o.pause.Total + max(0, o.config.Now().UTC().Sub(o.pause.At))
}

// DeadlineOf returns when a task is cancelled, the zero time if it has no deadline or has ended.
// Time in which the organization was paused does not count. running reports whether the deadline
// comes nearer: false while the task or the organization is paused, which moves it.
func (o *Org) DeadlineOf(id identity.TaskID) (at time.Time, running bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	t, ok := o.tasks[id]
	if !ok || t.Deadline.IsZero() || t.Status.Ended() {
		return time.Time{}, false
	}
	return o.deadline(t), t.Status == Running && t.Held == nil && !o.pause.IsSet()
}

// deadline returns the deadline of a task that has one, moved by the pauses of the organization since
// it was set. It must be called with mu held.
func (o *Org) deadline(t *Task) time.Time {
	return t.Deadline.Add(max(0, o.totalPaused()-t.PausedBefore))
}
