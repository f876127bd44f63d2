package org

import (
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// Resolve gives the Slot of an agent, or of a caller from outside in its role, and
// the workflow state it is in. For anybody unknown it gives a Slot that denies.
// The operator calls no tools: it is denied too.
func (o *Org) Resolve(p identity.Principal) (*toolgroups.ViewRef, string) {
	switch p.Kind {
	case identity.Agent:
		o.mu.RLock()
		defer o.mu.RUnlock()
		if m, ok := o.agents[p.Agent]; ok {
			return &m.slot.ViewRef, m.state
		}
	case identity.Caller:
		if slot, state := o.callerScope(p); slot != nil {
			return &slot.ViewRef, state
		}
	}
	return &toolgroups.ViewRef{}, ""
}

// RoleView compiles what a role would let its agents call directly below a
// root whose task has no bounds but groups.
func (o *Org) RoleView(id identity.RoleID, groups toolgroups.Set) *toolgroups.View {
	o.mu.RLock()
	defer o.mu.RUnlock()
	view := o.previewScope(id, groups).compile(o.config.Groups.Snapshot(), o.role)
	view.SetEpoch(o.epoch)
	return view
}

// WhyRole names the rule that keeps a tool from a role's agents, as RoleView
// sees them; "" when none does.
func (o *Org) WhyRole(id identity.RoleID, groups toolgroups.Set, h *toolgroups.Handle) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.previewScope(id, groups).deniedBy(o.config.Groups.Snapshot(), o.role, h)
}

// WhyAgent names the rule that keeps a tool from an agent; "" when none does.
func (o *Org) WhyAgent(id identity.AgentID, h *toolgroups.Handle) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return "there is no such agent"
	}
	return m.slot.deniedBy(o.config.Groups.Snapshot(), o.role, h)
}

func (o *Org) previewScope(id identity.RoleID, groups toolgroups.Set) *scope {
	return &scope{role: id, root: id == RootRole, bounds: []constraint{{BoundSet: o.bind(groups), Hosts: hosts.Any(), reason: "the groups asked for"}}}
}
