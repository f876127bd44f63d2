package org

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// Diff says which agents gain or lose which tools by a change, or may reach
// other hosts, sorted by agent; agents to whom it means nothing are left out.
type Diff []AgentDiff

// AgentDiff is what a change means to one agent.
type AgentDiff struct {
	Agent identity.AgentID `json:"agent"`
	Role  string           `json:"role"`
	Gains []string         `json:"gains"` // sorted
	Loses []string         `json:"loses"` // sorted

	// Hosts are the rules that its requests must all pass from now on; nil when
	// they stay as they were, or when it may make requests only before or after.
	Hosts []hosts.Rule `json:"hosts,omitempty"`
}

// diff compares the views in force with those that next would give.
func (o *Org) diff(affected []*scope, next *Role) Diff {
	find := func(id identity.RoleID) (*Role, bool) {
		if id == next.ID {
			return next, true
		}
		return o.role(id)
	}
	snapshot := o.config.Groups.Snapshot()
	bySlot := map[*scope]AgentDiff{}
	for _, s := range affected {
		was, is := s.View(), s.compile(snapshot, find)
		gains, loses := compare(was, is)
		d := AgentDiff{Gains: gains, Loses: loses}
		if requests(snapshot, was) && requests(snapshot, is) {
			d.Hosts = s.hostsChanged(o.role, find)
		}
		if len(gains)+len(loses)+len(d.Hosts) > 0 {
			bySlot[s] = d
		}
	}
	return o.agentsIn(bySlot)
}

func (o *Org) agentsIn(bySlot map[*scope]AgentDiff) Diff {
	diff := Diff{}
	if len(bySlot) == 0 {
		return diff
	}
	for _, m := range o.agents {
		if d, ok := bySlot[m.slot]; ok {
			d.Agent, d.Role = m.id, o.roleName(m.role)
			diff = append(diff, d)
		}
	}
	slices.SortFunc(diff, func(a, b AgentDiff) int { return cmp.Compare(a.Agent, b.Agent) })
	return diff
}

func (o *Org) roleName(id identity.RoleID) string {
	if r, ok := o.roles[id]; ok {
		return r.Name
	}
	return string(id)
}

func compare(before, after *toolgroups.View) (gains, loses []string) {
	gains, loses = []string{}, []string{}
	was, is := before.Names(), after.Names()
	for _, name := range is {
		if !slices.Contains(was, name) {
			gains = append(gains, name)
		}
	}
	for _, name := range was {
		if !slices.Contains(is, name) {
			loses = append(loses, name)
		}
	}
	slices.Sort(gains)
	slices.Sort(loses)
	return gains, loses
}
