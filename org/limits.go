package org

import (
	"cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// TaskLimits bounds what the agents of one task make. All tasks together may have
// organizationShare times as much. A limit of zero is not enforced.
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
		exceeded("spawn an agent: %d agents are above you; the agents of a task may be %d deep; let an agent above you spawn it", depth-1, o.limits.Depth),
		exceeded("spawn an agent: the task has %d agents, and at most %d may be active; terminate some or wait until they have ended", o.taskAgents[p.task], o.limits.Agents),
		exceeded("spawn an agent: the organization has %d active agents, and at most %d may be; wait until other tasks have ended", o.runningAgents, o.limits.Agents*organizationShare),
	)
}

// checkRoleLimits returns an error if the agent m may not create one more role. It must
// be called with mu held.
func (o *Org) checkRoleLimits(m *agentNode) error {
	ofTask, all := 0, 0
	for _, r := range o.rolesByName {
		if r.CreatedBy == CreatorConfig || r.CreatedBy == CreatorOperator {
			continue
		}
		all++
		if r.Task == m.task {
			ofTask++
		}
	}
	return cmp.Or(
		exceeded("create a role: the agents of the task have created %d roles, and at most %d may be active; use one of them", ofTask, o.limits.Roles),
		exceeded("create a role: agents have created %d roles, and at most %d may be active; the operator can delete some", all, o.limits.Roles*organizationShare),
	)
}

// exceeded returns an error with the code LimitExceeded if count has reached limit. The
// format has verbs for both.
func exceeded(format string, count, limit int) error {
	if limit <= 0 || count < limit {
		return nil
	}
	return errcode.New(errcode.LimitExceeded, format, count, limit).With("limit", limit)
}

// agentCounts counts agents that are not terminated.
type agentCounts struct {
	taskAgents    map[identity.TaskID]int
	runningAgents int // of running tasks
}

// countAgent adds n, 1 or -1, to the counts for an agent of a task. It must be called with
// mu held.
func (o *Org) countAgent(task identity.TaskID, n int) {
	if o.taskAgents[task] += n; o.taskAgents[task] == 0 {
		delete(o.taskAgents, task)
	}
	if t, ok := o.tasks[task]; ok && t.Status == Running {
		o.runningAgents += n
	}
}
