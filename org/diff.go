package org

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// PermissionDiff is the effect of a change of a role: the agents that gain or lose tools, or may
// reach other hosts, sorted by agent id. Agents that are not affected are not listed.
type PermissionDiff []AgentDiff

// AgentDiff is the effect of a change on one agent.
type AgentDiff struct {
	Agent identity.AgentID `json:"agent"`
	Role  string           `json:"role"`  // name
	Gains []string         `json:"gains"` // names of tools, sorted
	Loses []string         `json:"loses"` // names of tools, sorted

	// Hosts are the rules that must all allow its requests after the change. It is nil
	// if they do not change, or if the agent cannot make requests both before and after.
	Hosts []hosts.HostRule `json:"hosts,omitempty"`
}

// diff compares the current Views of scopes with those after next replaces a role. It
// must be called with mu held.
func (o *Org) diff(affected []*scope, next *Role) PermissionDiff {
	return o.diffViews(affected, o.config.Groups.CurrentSnapshot(), func(id identity.RoleID) (*Role, bool) {
		if id == next.ID {
			return next, true
		}
		return o.role(id)
	})
}

// diffViews compares the current Views of scopes with those for a snapshot and the roles
// that find returns. It must be called with mu held.
func (o *Org) diffViews(affected []*scope, snapshot *toolgroups.Snapshot, find roleLookup) PermissionDiff {
	byScope := map[*scope]AgentDiff{}
	for _, s := range affected {
		was, is := s.CurrentView(), s.compile(snapshot, find)
		gains, loses := compare(was, is)
		d := AgentDiff{Gains: gains, Loses: loses}
		if allowsNetwork(snapshot, was) && allowsNetwork(snapshot, is) {
			d.Hosts = s.newHostRules(o.role, find)
		}
		if len(gains)+len(loses)+len(d.Hosts) > 0 {
			byScope[s] = d
		}
	}
	return o.agentDiffs(byScope)
}

// agentDiffs returns the entries of all agents that use one of the scopes.
func (o *Org) agentDiffs(byScope map[*scope]AgentDiff) PermissionDiff {
	diff := PermissionDiff{}
	if len(byScope) == 0 {
		return diff
	}
	for _, m := range o.agents {
		if d, ok := byScope[m.scope]; ok {
			d.Agent, d.Role = m.id, o.roleName(m.role)
			diff = append(diff, d)
		}
	}
	slices.SortFunc(diff, func(a, b AgentDiff) int { return cmp.Compare(a.Agent, b.Agent) })
	return diff
}

// roleName returns the name of a role, or its id if it is unknown.
func (o *Org) roleName(id identity.RoleID) string {
	if r, ok := o.roles[id]; ok {
		return r.Name
	}
	return string(id)
}

// compare returns the names of the tools that only after and only before allows.
func compare(before, after *toolgroups.View) (gains, loses []string) {
	gains, loses = []string{}, []string{}
	was, is := before.ToolNames(), after.ToolNames()
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
