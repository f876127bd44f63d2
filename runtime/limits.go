package runtime

import (
	"cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// Limits bounds what agents make and how long a task goes on. A zero limit means the default.
type Limits struct {
	org.TaskLimits     // default 200 roles, 1,000 agents, 32 deep
	Calls          int // tool calls of one answer; default 256
	Mail           int // messages that wait for one agent; default 1,000
	Turns          int // turns of the agents of one task; default 10,000
	Hires          int // agents that one agent may spawn, with those that have ended; default 200
	Requests       int // requests to language models in one task; default 5,000
}

var defaultLimits = Limits{
	TaskLimits: org.TaskLimits{Roles: 200, Agents: 1000, Depth: 32},
	Calls:      256, Mail: 1000, Turns: 10_000, Hires: 200, Requests: 5000,
}

// orDefault returns l with the limits of other in place of its zero limits.
func (l Limits) orDefault(other Limits) Limits {
	return Limits{
		TaskLimits: org.TaskLimits{
			Roles: cmp.Or(l.Roles, other.Roles), Agents: cmp.Or(l.Agents, other.Agents), Depth: cmp.Or(l.Depth, other.Depth),
		},
		Calls: cmp.Or(l.Calls, other.Calls),
		Mail:  cmp.Or(l.Mail, other.Mail),
		Turns: cmp.Or(l.Turns, other.Turns),
		Hires: cmp.Or(l.Hires, other.Hires), Requests: cmp.Or(l.Requests, other.Requests),
	}
}

// ActiveLimits are the limits that apply to a task now.
type ActiveLimits struct {
	Budget   TaskBudget // with what retries added; a zero limit is not enforced
	Requests int
	Turns    int
	Agents   int
	Hires    int
	Rounds   int // of roles that set no limit of their own
}

// LimitsOf returns the limits that apply to a task. For an unknown task it returns the limits of
// the organization.
func (rt *Runtime) LimitsOf(id identity.TaskID) ActiveLimits {
	s := rt.settings.Load()
	task, _ := rt.org.TaskByID(id)
	return ActiveLimits{
		Budget: rt.taskBudget(&task), Requests: int(smallerLimit(int64(s.Limits.Requests), task.Budget.Requests, task.Extra.Requests)), Turns: s.Limits.Turns,
		Agents: s.Limits.Agents, Hires: s.Limits.Hires, Rounds: s.Rounds,
	}
}

// checkHires returns an error if an agent that is calling a tool may spawn no more agents. The
// limit of the organization ends loops of models. It does not apply to a program that drives
// an agent. Limits.Agents and the roles of the agent's line bound such a program.
func (rt *Runtime) checkHires(id identity.AgentID) error {
	a, err := rt.tracker.activeActor(id)
	if err != nil {
		return nil // not called by an agent at work
	}
	limit := rt.org.HiresOf(id)
	if !a.rt.tracker.hasDriver(id) {
		limit = int(smallerLimit(int64(limit), int64(rt.settings.Load().Limits.Hires), 0))
	}
	if limit == 0 || a.state.hires < limit {
		return nil
	}
	return errcode.New(errcode.LimitExceeded, "spawn an agent: you have spawned %d agents, and one agent may spawn %d; write to those you have, or finish with what you know", a.state.hires, limit).With("limit", limit)
}
