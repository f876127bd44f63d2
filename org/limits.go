package org

import (
	"cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// TaskLimits bounds what the agents of one task make. All tasks together may have
// organizationShare times as much. The tasks of one external caller may have a
// share of this (callerShare). A limit of zero is not enforced.
type TaskLimits struct {
	Roles  int // active roles that its agents have created
	Agents int // agents that are not terminated, with root
	Depth  int // agents above an agent, up to the top of the task
}

// organizationShare is how many times the limits of one task all tasks may have.
const organizationShare = 10

// SetLimits sets the limits of what is made from now on. What there is stays.
func (o *Org) SetLimits(l TaskLimits) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limits = l
}

// checkAgentLimits returns an error if p may not have one more child. It must be called
// with mu held.
func (o *Org) checkAgentLimits(p *agentNode) error {
	depth := 1
	for at := p.parent; at != nil && (o.limits.Depth == 0 || depth <= o.limits.Depth); at = at.parent {
		depth++
	}
	return cmp.Or(
		o.checkDepth(p),
		checkLimit("spawn an agent: %d agents are above you; the agents of a task may be %d deep; let an agent above you spawn it", depth-1, o.limits.Depth),
		checkLimit("spawn an agent: the task has %d agents, and at most %d may be active; terminate some or wait until they have ended", o.taskAgents[p.task], o.limits.Agents),
		o.checkAgentShare("spawn an agent", o.tasks[p.task], 1),
	)
}

// checkRoleLimits returns an error if the agent m may not create one more role. It must
// be called with mu held.
func (o *Org) checkRoleLimits(m *agentNode) error {
	task := o.tasks[m.task]
	ofTask, ofCaller, all := o.countRoles(m.task)
	return cmp.Or(
		checkLimit("create a role: the agents of the task have created %d roles, and at most %d may be active; use one of them", ofTask, o.limits.Roles),
		checkShare(task, o.limits.Roles, ofCaller, all,
			"create a role: the agents of this caller's tasks have created %d active roles, and at most %d may be, half of what others leave; use one of them, or let the operator delete some",
			"create a role: agents have created %d roles, and at most %d may be active; the operator can delete some"),
	)
}

// countRoles counts the active roles that agents have created: in a task, in all tasks of its
// caller, and in all tasks. It must be called with mu held.
func (o *Org) countRoles(task identity.TaskID) (ofTask, ofCaller, all int) {
	owner := o.tasks[task].owner()
	for _, list := range o.activeRoles {
		for _, r := range list {
			if r.isDeclared() {
				continue
			}
			all++
			if r.Task == task {
				ofTask++
			}
			if r.owner() == owner {
				ofCaller++
			}
		}
	}
	return ofTask, ofCaller, all
}

// checkAgentShare returns an error if a task may not have n more agents beside the agents of other
// tasks. attempt says what is attempted. It must be called with mu held.
func (o *Org) checkAgentShare(attempt string, task *Task, n int) error {
	held := 0
	if task.isExternal() {
		held = o.callerAgents[task.Caller] + n - 1
	}
	return checkShare(task, o.limits.Agents, held, o.runningAgents+n-1,
		attempt+": the tasks of this caller have %d active agents, and at most %d may be, half of what others leave; wait until one of them has ended",
		attempt+": the organization has %d active agents, and at most %d may be; wait until other tasks have ended")
}

// checkShare returns an error if a limit allows a task no further item. The tasks of its
// caller have held items, and all tasks have all items. ofCaller and ofAll are the
// formats of the errors, with verbs for count and limit.
func checkShare(t *Task, limit, held, all int, ofCaller, ofAll string) error {
	if most := callerShare(limit, held, all); t.isExternal() && limit > 0 && held >= most {
		return limitError(ofCaller, held, most)
	}
	return checkLimit(ofAll, all, limit*organizationShare)
}

// callerShare returns how much the tasks of one external caller may have if they have held
// and all tasks have all. That is half of what the tasks of others leave, rounded up. A
// caller thus always leaves something to the next one. limit is the limit of one task. As
// much is reserved for the tasks of the operator.
func callerShare(limit, held, all int) int {
	reserved := limit
	left := limit*organizationShare - reserved - (all - held)
	return max(0, (left+1)/2)
}

// isExternal reports whether an external caller started t. A missing task has no caller.
func (t *Task) isExternal() bool { return t != nil && t.CallerRole != "" }

// checkLimit returns an error with the code LimitExceeded if count has reached limit. The
// format has verbs for both.
func checkLimit(format string, count, limit int) error {
	if limit <= 0 || count < limit {
		return nil
	}
	return limitError(format, count, limit)
}

// limitError returns an error with the code LimitExceeded. The format has verbs for
// both.
func limitError(format string, count, limit int) error {
	return errcode.New(errcode.LimitExceeded, format, count, limit).With("limit", limit)
}

// agentCounts counts agents that are not terminated.
type agentCounts struct {
	taskAgents    map[identity.TaskID]int
	callerAgents  map[string]int // of running tasks, by Task.Caller
	runningAgents int            // of running tasks
}

// countAgent adds n, 1 or -1, to the counts for an agent of a task. It must be called with
// mu held.
func (o *Org) countAgent(task identity.TaskID, n int) {
	if o.taskAgents[task] += n; o.taskAgents[task] == 0 {
		delete(o.taskAgents, task)
	}
	if t, ok := o.tasks[task]; ok && !t.Status.Ended() {
		o.countRunning(t, n)
	}
}

// countRunning adds n to the counts of the agents of running tasks. It must be called with
// mu held.
func (o *Org) countRunning(t *Task, n int) {
	o.runningAgents += n
	if o.callerAgents[t.Caller] += n; o.callerAgents[t.Caller] == 0 {
		delete(o.callerAgents, t.Caller)
	}
}
