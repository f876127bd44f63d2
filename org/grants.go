package org

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// grantor is a principal that grants permissions: it creates roles, spawns agents or
// starts tasks. What it grants must be within all of its limits. A grantor without
// limits may grant everything.
type grantor struct {
	createdBy string // of the roles it creates
	role      string // createdByRole of the roles it creates
	limits    []constraint
}

// constraint is one limit on permissions, with a reason for denials. Its exported
// fields are part of the key of a scope (boundsKey). The zero constraint allows nothing.
type constraint struct {
	toolgroups.PinnedSet
	Hosts        hosts.HostRule    // hosts that requests may reach
	gating       toolgroups.Gating // of the limited agents
	reason       string            // why PinnedSet denies
	serverReason string            // why PinnedSet.Only denies

	kind     LimitKind
	role     *Role // whose limit it is; nil if the limit does not belong to a role
	ofCaller bool  // it bounds the caller of the task

	suspended bool // the role is suspended: nothing is allowed

	approval []approval.Rule // which calls wait for people
}

// as returns c as a limit of a kind.
func (c constraint) as(kind LimitKind) constraint {
	c.kind = kind
	return c
}

// grantor returns the grantor for a principal. The error has the code AgentNotFound,
// RoleNotFound or Unauthenticated if the principal is unknown.
func (o *Org) grantor(by identity.Principal) (grantor, error) {
	switch by.Kind {
	case identity.Operator:
		return grantor{createdBy: CreatorOperator, role: CreatorOperator}, nil
	case identity.Configuration:
		return grantor{createdBy: CreatorConfig, role: CreatorConfig}, nil
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
			if r.Suspended() {
				return grantor{}, errSuspended("act in", r)
			}
			return grantor{createdBy: "user:" + string(by.User), role: string(r.ID), limits: slices.Concat(ceiling(o.lookupRole, r), []constraint{r.useLimit("the caller's role " + r.Name)}, networkLimits(by))}, nil
		}
		return grantor{}, notFound(errcode.RoleNotFound, "role", string(by.Role))
	}
	return grantor{}, errcode.New(errcode.Unauthenticated, "unauthenticated caller")
}

// grantorOf returns the grantor for an agent.
func (o *Org) grantorOf(m *agentNode) grantor {
	g := grantor{createdBy: string(m.id), role: string(m.role), limits: m.scope.grantLimits(o.lookupRole)}
	if m.root {
		g.createdBy, g.role = CreatorRoot, CreatorRoot
	}
	return g
}

// missing returns the groups of sets that are not within the first limit of g that does
// not cover them, nil if all limits do. It compares group ids, not tools. A group covers its
// children.
func (o *Org) missing(g grantor, sets ...toolgroups.GroupSet) []toolgroups.GroupID {
	for _, limit := range g.limits {
		for _, set := range sets {
			if missing := o.registry().MissingFrom(limit.PinnedSet, set); len(missing) > 0 {
				return missing
			}
		}
	}
	return nil
}

// covers reports whether g may grant everything that a role may use and grant.
func (o *Org) covers(g grantor, role *Role) bool { return o.missing(g, role.Use, role.Grant) == nil }

// checkGrant returns an error with the code InsufficientPermissions if g may not grant the
// groups of a role that it specifies. The role has this name.
func (o *Org) checkGrant(g grantor, name string, use, grant toolgroups.GroupSet) error {
	missing := o.missing(g, use, grant)
	if missing == nil {
		return nil
	}
	return errcode.New(errcode.InsufficientPermissions, "grant role %q the tool groups %s: you may not grant them; you may grant %s",
		name, o.withSuggestions(g, missing), cmp.Or(textutil.ListNames(slices.Sorted(slices.Values(o.groupsOf(g)))), "none")).With("missing", missing)
}

// roleLookup returns a role, active or deleted. A dry run passes a roleLookup that returns roles as
// they would be after the change.
type roleLookup func(identity.RoleID) (*Role, bool)

// denyAll returns a constraint that allows nothing, for agents whose role, creator,
// parent or task is unknown. The unknown role may have been tool-gated, so the
// constraint is.
func denyAll(why string) constraint {
	return constraint{gating: toolgroups.StrictlyGated, reason: why, kind: LimitMissing}
}

// ceiling returns the grant limits of the role's creators, recursively. These are the
// current limits: a role never has more permissions than its creators have now. A
// creator that is unknown, or a cycle of creators, denies everything.
func ceiling(find roleLookup, r *Role) []constraint {
	var bounds []constraint
	for seen := map[string]bool{}; ; {
		by := r.CreatedByRole
		switch {
		case by == CreatorOperator || by == CreatorConfig:
			return bounds
		case by == CreatorRoot:
			return append(bounds, rootLimits(find)...)
		case by == "" || seen[by]:
			return append(bounds, denyAll("the creator of role "+r.Name+" is unknown"))
		}
		seen[by] = true
		creator, ok := find(identity.RoleID(by))
		if !ok {
			return append(bounds, denyAll("the role that created role "+r.Name+" does not exist"))
		}
		bounds = append(bounds, creator.grantLimit("what role "+creator.Name+", its creator, may grant").as(LimitCreator))
		r = creator
	}
}

// GrantableGroups returns the groups that an agent may put into roles that it creates. They
// are listed in its prompt. For an unknown agent it returns the empty GroupSet.
func (o *Org) GrantableGroups(id identity.AgentID) toolgroups.GroupSet {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return toolgroups.GroupSet{}
	}
	return o.groupsWithin(toolgroups.AllGroups(), m.scope.grantLimits(o.lookupRole))
}

// groupsWithin returns the groups of a set that all limits cover. It also returns the groups below them
// to which the limits narrow the set.
func (o *Org) groupsWithin(set toolgroups.GroupSet, limits []constraint) toolgroups.GroupSet {
	for _, limit := range limits {
		set = o.registry().IntersectSets(o.pinOwners(set), limit.PinnedSet)
	}
	return set
}

// VisibleRole returns a role as an agent may see it. It leaves out groups that the agent may
// neither use nor grant.
func (o *Org) VisibleRole(id identity.AgentID, r Role) Role {
	registry, own := o.config.Groups.CurrentSnapshot(), toolgroups.PinnedSet{}
	grant := registry.PinOwners(o.GrantableGroups(id))
	if agent, ok := o.AgentByID(id); ok {
		role, _ := o.RoleByID(agent.Role)
		own = toolgroups.PinnedSet{Set: role.Use, Owners: role.GroupOwners}
	}
	lacks := func(set toolgroups.PinnedSet, id toolgroups.GroupID) bool {
		return len(registry.MissingFrom(set, toolgroups.SetOf(id))) > 0
	}
	hidden := func(id toolgroups.GroupID) bool { return lacks(grant, id) && lacks(own, id) }
	r.Use, r.Grant = withoutGroups(r.Use, hidden), withoutGroups(r.Grant, hidden)
	r.GroupOwners = maps.Clone(r.GroupOwners)
	maps.DeleteFunc(r.GroupOwners, func(id toolgroups.GroupID, _ toolgroups.GroupOwner) bool { return hidden(id) })
	return r
}

// withoutGroups returns a set without the groups that are hidden. The set of all groups
// names none and stays as it is.
func withoutGroups(set toolgroups.GroupSet, hidden func(toolgroups.GroupID) bool) toolgroups.GroupSet {
	if set.IsAll() {
		return set
	}
	return toolgroups.SetOf(slices.DeleteFunc(set.GroupIDs(), hidden)...)
}
