package org

import (
	"math"
	"time"

	"github.com/rolecall/rolecall/identity"
)

// LineLimits bound what is below an agent of a role. They hold for the agents of the role and for
// all agents below them. They also hold for the agents of roles that these agents create. The
// smallest limit along the line counts. A caller counts as an agent of the role if it has the role,
// or if its role names the role in tasks.as. Its tasks are one level below the caller. All agents
// of these tasks have its limit of hires. Zero means no limit.
type LineLimits struct {
	Depth   int `json:"depth,omitempty"`   // levels of agents below one of its agents
	Hires   int `json:"hires,omitempty"`   // agents that one agent may spawn, with those that have ended
	Seconds int `json:"seconds,omitempty"` // that a task takes that begins in the role, or that its caller starts
}

// isValid reports whether no limit is negative or too large.
func (l LineLimits) isValid() bool {
	for _, n := range []int{l.Depth, l.Hires, l.Seconds} {
		if n < 0 || n > math.MaxInt32 {
			return false
		}
	}
	return true
}

// within returns the smaller of each limit of l and most.
func (l LineLimits) within(most LineLimits) LineLimits {
	smaller := func(a, b int) int { return int(smallerAmount(int64(a), int64(b))) }
	return LineLimits{Depth: smaller(l.Depth, most.Depth), Hires: smaller(l.Hires, most.Hires), Seconds: smaller(l.Seconds, most.Seconds)}
}

// lineLimits returns the limits of a role and of the roles that created it. It must be called with
// mu held.
func (o *Org) lineLimits(id identity.RoleID) (least LineLimits) {
	for seen := map[identity.RoleID]bool{}; !seen[id]; {
		seen[id] = true
		role, ok := o.roles[id]
		if !ok {
			break
		}
		least, id = least.within(role.Limits.LineLimits), identity.RoleID(role.CreatedByRole)
	}
	return least
}

// callerLimits returns the limits of the caller who started a task. They combine the limits of its
// role and of the role that bounds its tasks. callerLimits must be called with mu held.
func (o *Org) callerLimits(task *Task) LineLimits {
	if task == nil {
		return LineLimits{}
	}
	return o.lineLimits(task.CallerRole).within(o.lineLimits(task.As))
}

// checkDepth returns an error if a child of p would be too many levels deep. The roles of the
// agents in the line of p bound the levels below these agents. The caller of the task does so,
// too. checkDepth must be called with mu held.
func (o *Org) checkDepth(p *agentNode) error {
	levels := 1
	for at := p; at != nil; at = at.parent {
		if most := o.lineLimits(at.role).Depth; most > 0 && levels > most {
			return limitError("spawn an agent: it would be %d levels below an agent whose role allows %d; do the work yourself, or ask an agent above you", levels, most)
		}
		levels++
	}
	if most := o.callerLimits(o.tasks[p.task]).Depth; most > 0 && levels > most {
		return limitError("spawn an agent: it would be %d levels below the caller of the task, whose role allows %d; do the work yourself, or ask an agent above you", levels, most)
	}
	return nil
}

// HiresOf returns how many agents an agent may spawn. The roles of its line and the caller of its
// task set this limit. 0 means no limit.
func (o *Org) HiresOf(id identity.AgentID) int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	agent, ok := o.agents[id]
	if !ok {
		return 0
	}
	least := o.callerLimits(o.tasks[agent.task])
	for at := agent; at != nil; at = at.parent {
		least = least.within(o.lineLimits(at.role))
	}
	return least.Hires
}

// limitTaskTime shortens the time of a new task to the limit of the role in which it begins, or to
// the limit of its caller. The shorter limit holds. limitTaskTime must be called with mu held.
func (o *Org) limitTaskTime(task *Task, role identity.RoleID) {
	most := time.Duration(o.lineLimits(role).within(o.callerLimits(task)).Seconds) * time.Second
	if most > 0 && (task.Timeout == 0 || task.Timeout > most) {
		o.setTimeout(task, most)
	}
}

// setTimeout sets the time of a new task. It must be called with mu held.
func (o *Org) setTimeout(task *Task, timeout time.Duration) {
	task.Timeout, task.Deadline, task.PausedBefore = timeout, task.CreatedAt.Add(timeout), o.totalPaused()
}
