package org

import (
	"encoding/json"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// DecodesFast reports whether the record of an agent is decoded without encoding/json.
func DecodesFast(a Agent) (bool, error) {
	doc, err := json.Marshal(a)
	s := scanner{rest: doc}
	s.header()
	return !s.failed && len(s.rest) == 0, err
}

// ScopeCount returns the number of scopes.
func (o *Org) ScopeCount() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.scopes.byKey)
}

// NamedTasks returns the number of tasks whose names of agents are counted.
func (o *Org) NamedTasks() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.highest)
}

// WhyRole returns the rule that denies a tool to the agents of RoleView, "" if none does.
func (o *Org) WhyRole(id identity.RoleID, groups toolgroups.GroupSet, h *toolgroups.ToolHandle) string {
	return denyingRule(o.LimitsOnRole(id, groups, h))
}

// WhyAgent returns the rule that denies a tool to an agent, "" if none does.
func (o *Org) WhyAgent(id identity.AgentID, h *toolgroups.ToolHandle) string {
	return denyingRule(o.LimitsOnAgent(id, h))
}

func denyingRule(limits []PermissionLimit) string {
	if l := DenyingLimit(limits); l != nil {
		return l.Rule
	}
	return ""
}
