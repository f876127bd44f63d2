package org

import (
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// grantor is somebody who gives rights: its names in records and everything
// that what it gives must pass. A maker without bounds gives everything.
type grantor struct {
	name   string // createdBy
	role   string // createdByRole
	grants []constraint
}

// constraint is one thing that rights must pass, with the rule's words. The zero
// limit lets nothing through.
type constraint struct {
	toolgroups.BoundSet
	Hosts        hosts.Rule
	toolGated    bool // whom it bounds answers from tools alone
	reason       string
	serverReason string // the words for what Only keeps away
}

// denies says why a tool does not pass; "" when it does.
func (l constraint) denies(s *toolgroups.Snapshot, h *toolgroups.Handle) string {
	switch {
	case s.Reaches(l.BoundSet, h):
		return ""
	case l.Only != "" && h.Owner != l.Only:
		return l.serverReason
	}
	return l.reason
}

// grantor says in whose name a principal gives.
func (o *Org) grantor(by identity.Principal) (grantor, error) {
	switch by.Kind {
	case identity.Operator:
		return grantor{name: CreatorOperator, role: CreatorOperator}, nil
	case identity.Configuration:
		return grantor{name: CreatorConfig, role: CreatorConfig}, nil
	case identity.Agent:
		if m, ok := o.agents[by.Agent]; ok {
			return o.grantorOf(m), nil
		}
		return grantor{}, notFound(errcode.AgentNotFound, "agent", string(by.Agent))
	case identity.Caller:
		if err := CheckCaller(by); err != nil {
			return grantor{}, err
		}
		if r, ok := o.roles[by.Role]; ok && r.Status == Active {
			return grantor{name: "user:" + string(by.User), role: string(r.ID), grants: append(ceiling(o.role, r), r.use("the caller's role "+r.Name))}, nil
		}
		return grantor{}, notFound(errcode.RoleNotFound, "role", string(by.Role))
	}
	return grantor{}, errcode.New(errcode.Unauthenticated, "nobody gives nothing")
}

// grantorOf says what an agent may give.
func (o *Org) grantorOf(m *agentNode) grantor {
	who := grantor{name: string(m.id), role: string(m.role), grants: m.slot.grantLimits(o.role)}
	if m.root {
		who.name, who.role = CreatorRoot, CreatorRoot
	}
	return who
}

// checkGrant refuses what is not covered by everything the maker's gifts must pass.
func (m grantor) checkGrant(name string, sets ...toolgroups.Set) error {
	for _, limit := range m.grants {
		for _, set := range sets {
			if missing := limit.Set.Missing(set); len(missing) > 0 {
				return errcode.New(errcode.InsufficientPermissions,
					"give role %q the tool groups %s: %s may not grant them; ask for groups it may", name, list(missing), m.name).
					With("missing", missing)
			}
		}
	}
	return nil
}

func list(ids []toolgroups.GroupID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = string(id)
	}
	return strings.Join(parts, ", ")
}

// lookup finds a role; dry runs look up roles as they would be.
type lookup func(identity.RoleID) (*Role, bool)

func (o *Org) role(id identity.RoleID) (*Role, bool) {
	r, ok := o.roles[id]
	return r, ok
}

// denyAll is the ceiling of those whose role, maker, parent or task is not
// known. It may have been gated, so it is.
func denyAll(why string) constraint { return constraint{toolGated: true, reason: why} }

// ceiling lists what the makers of a role may grant, recursively: a role is
// never worth more than its makers are now.
func ceiling(find lookup, r *Role) []constraint {
	var bounds []constraint
	for seen := map[string]bool{}; ; {
		by := r.CreatedByRole
		switch {
		case by == CreatorRoot || by == CreatorOperator || by == CreatorConfig:
			return bounds
		case by == "" || seen[by]:
			return append(bounds, denyAll("who made role "+r.Name+" is not known"))
		}
		seen[by] = true
		maker, ok := find(identity.RoleID(by))
		if !ok {
			return append(bounds, denyAll("the role that made role "+r.Name+" is gone"))
		}
		bounds = append(bounds, maker.grant("what role "+maker.Name+", its maker, may grant"))
		r = maker
	}
}

// Grantable gives what an agent may put into roles it makes: for its prompt.
func (o *Org) Grantable(id identity.AgentID) toolgroups.Set {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return toolgroups.Set{}
	}
	set := toolgroups.All()
	for _, limit := range m.slot.grantLimits(o.role) {
		set = set.Intersect(limit.Set)
	}
	return set
}
