package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// errPausedByPerson is the reason why an agent stops between two steps: a person has paused its task, its
// role or the organization. It rests without a goroutine until that is resumed.
var errPausedByPerson = errors.New("agent is paused")

// PauseTask pauses a task until UnpauseTask. No call of its agents starts and no model is asked
// after it returns. Calls and answers that have begun end and are recorded. A task that is
// paused does not change, except that the operator's pause replaces the pause of a caller.
// Errors: the errors of org.Org.HoldTask.
func (rt *Runtime) PauseTask(ctx context.Context, by identity.Principal, id identity.TaskID, reason string) error {
	return rt.commitTaskPause(ctx, id, journal.Paused{By: by.String(), Reason: reason}, func(task *org.Task) ([]org.RecordChange, error) {
		return rt.org.HoldTask(by, task, reason)
	})
}

// UnpauseTask ends a pause of PauseTask. The agents of the task go on where they stopped. Errors:
// the errors of org.Org.ReleaseTask.
func (rt *Runtime) UnpauseTask(ctx context.Context, by identity.Principal, id identity.TaskID, reason string) error {
	err := rt.commitTaskPause(ctx, id, journal.Resumed{By: by.String(), Reason: reason}, func(task *org.Task) ([]org.RecordChange, error) {
		return rt.org.ReleaseTask(by, task)
	})
	if err == nil {
		rt.enforceDeadline(id)
	}
	return err
}

// commitTaskPause commits a change of a task that set makes, and its event.
func (rt *Runtime) commitTaskPause(ctx context.Context, id identity.TaskID, body journal.EventBody, set func(*org.Task) ([]org.RecordChange, error)) error {
	task, err := rt.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	_, err = rt.flushAndCommit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		changes, err := set(&task)
		if err != nil || len(changes) == 0 {
			return err
		}
		rt.tracker.forgetRecord(id)
		b.Events = append(b.Events, journal.Event{At: rt.now(), Task: id, Agent: task.Top, Role: rt.topRoleName(&task), Body: rt.atEpoch(body)})
		b.Put = append(b.Put, storeRecords(changes)...)
		return nil
	}})
	return err
}

// atEpoch returns a Paused or a Resumed with the current epoch.
func (rt *Runtime) atEpoch(body journal.EventBody) journal.EventBody {
	switch b := body.(type) {
	case journal.Paused:
		b.Epoch = rt.org.CurrentEpoch()
		return b
	case journal.Resumed:
		b.Epoch = rt.org.CurrentEpoch()
		return b
	}
	return body
}

// PauseRole pauses a role and returns who loses which tools. No call of its agents and callers
// starts after it returns; its agents rest until ResumeRole. Errors: the errors of
// org.Org.PauseRole.
func (rt *Runtime) PauseRole(by identity.Principal, id identity.RoleID, reason string) (org.Role, org.PermissionDiff, error) {
	return rt.commitRolePause(by, "paused", journal.Paused{By: by.String(), Reason: reason, RoleID: id}, func(*journal.Batch) (org.Role, org.PermissionDiff, []org.RecordChange, error) {
		return rt.org.PauseRole(by, id, reason)
	})
}

// ResumeRole ends the pause of a role and returns who gains which tools. Errors: the errors of
// org.Org.ResumeRole.
func (rt *Runtime) ResumeRole(by identity.Principal, id identity.RoleID, reason string) (org.Role, org.PermissionDiff, error) {
	var lost lostRequests
	role, diff, err := rt.commitRolePause(by, "resumed", journal.Resumed{By: by.String(), Reason: reason, RoleID: id}, func(b *journal.Batch) (org.Role, org.PermissionDiff, []org.RecordChange, error) {
		role, diff, changes, err := rt.org.ResumeRole(by, id)
		if err == nil && changes != nil {
			lost = rt.voidLost(b, rt.lostInPause(id))
		}
		return role, diff, changes, err
	})
	rt.wakeLost(lost)
	return role, diff, err
}

// commitRolePause commits a change of a role that set makes, and its events.
func (rt *Runtime) commitRolePause(by identity.Principal, change string, body journal.EventBody,
	set func(*journal.Batch) (org.Role, org.PermissionDiff, []org.RecordChange, error)) (role org.Role, diff org.PermissionDiff, err error) {
	err = rt.commitBy(by, func(b *journal.Batch) error {
		var changes []org.RecordChange
		if role, diff, changes, err = set(b); err != nil || changes == nil {
			return err
		}
		rt.addRoleChange(b, by, role, change, &diff, changes)
		b.Events = append(b.Events, rt.eventBy(by, role.Name, rt.atEpoch(body)))
		return nil
	})
	return role, diff, err
}

// PauseOrg pauses the whole organization: no call of an agent or a caller starts, and no model is
// asked, after it returns. Errors: the errors of org.Org.PauseOrg.
func (rt *Runtime) PauseOrg(by identity.Principal, reason string) error {
	return rt.commitOrgPause(by, journal.Paused{By: by.String(), Reason: reason, All: true}, func() ([]org.RecordChange, error) {
		return rt.org.PauseOrg(by, reason)
	})
}

// ResumeOrg ends the pause of the organization. Tasks and roles that are paused besides stay so.
// Errors: the errors of org.Org.ResumeOrg.
func (rt *Runtime) ResumeOrg(by identity.Principal, reason string) error {
	err := rt.commitOrgPause(by, journal.Resumed{By: by.String(), Reason: reason, All: true}, func() ([]org.RecordChange, error) { return rt.org.ResumeOrg(by) })
	if err != nil {
		return err
	}
	for _, task := range rt.org.ListTasks() { // their time stood still
		rt.enforceDeadline(task.ID)
	}
	return nil
}

func (rt *Runtime) commitOrgPause(by identity.Principal, body journal.EventBody, set func() ([]org.RecordChange, error)) error {
	return rt.commitBy(by, func(b *journal.Batch) error {
		changes, err := set()
		if err != nil || len(changes) == 0 {
			return err
		}
		b.Events = append(b.Events, rt.eventBy(by, "", rt.atEpoch(body)))
		b.Put = append(b.Put, storeRecords(changes)...)
		return nil
	})
}

// PauseOf returns why a task is paused, nil if it is not: see org.Org.PauseOf. A task is
// also paused if nothing of it runs because the roles of its agents are paused.
func (rt *Runtime) PauseOf(id identity.TaskID) *org.TaskPause {
	if p := rt.org.PauseOf(id); p != nil {
		return p
	}
	agent, ok := rt.tracker.restingAgent(id)
	if why := rt.org.PauseReason(agent); ok && why != "" {
		return &org.TaskPause{TaskError: org.TaskError{Code: errcode.Paused, Message: why}}
	}
	return nil
}

// wakeResumed lets the agents go on that rest and are not paused any more.
func (rt *Runtime) wakeResumed() {
	for _, id := range rt.tracker.listResumed() {
		rt.wake(id)
	}
}

// mayEndPause reports whether an event may be the end of a pause of an agent. Changes of roles and
// tool groups publish new Views.
func mayEndPause(e journal.Event) bool {
	switch e.Body.(type) {
	case journal.Resumed, journal.RoleChanged:
		return true
	}
	return false
}

// checkPausedByPerson rejects the calls of an agent that is paused. A denial by a pause that has ended
// meanwhile is superseded. It is called in the commit that would start the calls.
func (a *actor) checkPausedByPerson(calls []*gate.Admission) error {
	if a.rt.org.PauseReason(a.agent.ID) != "" {
		return errPausedByPerson
	}
	if slices.ContainsFunc(calls, func(c *gate.Admission) bool { return c.Decision.Suspended() != "" }) {
		return gate.ErrSuperseded
	}
	return nil
}

// tryRest marks a paused agent as resting, so that its goroutine may end. It returns false if the
// agent is not paused any more. An agent that rests keeps its task from ending.
func (t *tracker) tryRest(a *actor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[a.task]
	if run == nil || t.org.PauseReason(a.agent.ID) == "" {
		return run == nil
	}
	if run.resting == nil {
		run.resting = map[identity.AgentID]bool{}
	}
	run.resting[a.agent.ID], a.newMessages = true, false
	return true
}

// listResumed returns the agents that rest and are not paused any more. They rest until activate: a task
// would end if one of them had stopped before the next one was activated.
func (t *tracker) listResumed() (list []identity.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, run := range t.tasks {
		for id := range run.resting {
			if t.org.PauseReason(id) == "" {
				list = append(list, id)
			}
		}
	}
	return list
}

// restingAgent returns an agent of a task that rests, if no agent of it is at work.
func (t *tracker) restingAgent(id identity.TaskID) (agent identity.AgentID, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[id]
	if run == nil || run.refs > 0 {
		return "", false
	}
	for agent = range run.resting {
		return agent, true
	}
	return "", false
}

// isResting reports whether an agent is paused and has work.
func (t *tracker) isResting(task identity.TaskID, id identity.AgentID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[task]
	return run != nil && run.resting[id]
}

// forgetRecord makes the record of a task be read from the store.
func (t *tracker) forgetRecord(id identity.TaskID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		run.record = nil
	}
}
