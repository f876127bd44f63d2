package org

import (
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// MayReach returns an error if requests of p may not go to a host now. The rules of p's
// role must allow the host. So must the rules of the roles that created this role, of
// the roles of its parents and of the task's caller. These are the same limits that
// apply to tools. The operator may reach all hosts. An unknown principal, or one whose
// limits cannot be determined, reaches none.
//
// The error has the code HostBlocked. Its detail "allowed" lists the patterns that the
// denying rule allows. MayReach is safe for concurrent use.
func (o *Org) MayReach(p identity.Principal, h hosts.Host) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, l := range o.principalHostLimits(p) {
		if !l.Hosts.AllowsHost(h) {
			return hostBlocked(h, l.Hosts)
		}
	}
	return nil
}

// hostBlocked returns the error for a host that the rule r does not allow.
func hostBlocked(h hosts.Host, r hosts.HostRule) error {
	if len(r.Allow) == 0 {
		return errcode.New(errcode.HostBlocked, "reach %s: your role, or a role that limits it, may not reach any host", h)
	}
	return errcode.New(errcode.HostBlocked, "reach %s: your role, or a role that limits it, may not reach this host; use an allowed one, or ask the sender of your task", h).
		With("allowed", r.Allow)
}

// principalHostLimits returns the constraints whose Hosts limit the requests of p.
func (o *Org) principalHostLimits(p identity.Principal) []constraint {
	switch p.Kind {
	case identity.Operator:
		return nil
	case identity.Agent:
		if m, ok := o.agents[p.Agent]; ok {
			return m.scope.hostLimits(o.lookupRole)
		}
	case identity.Caller:
		if m, err := o.grantor(p); err == nil {
			return m.limits
		}
	}
	return []constraint{denyAll("the principal is unknown")}
}

// hostLimits returns the constraints whose Hosts limit the requests of the agents of s.
func (s *scope) hostLimits(find roleLookup) []constraint {
	use, limits := s.permissions(find)
	return append(limits, use)
}

// hostRules returns the host rules of limits, each once, without rules that allow all.
func hostRules(limits []constraint) []hosts.HostRule {
	var list []hosts.HostRule
	for _, l := range limits {
		if !l.Hosts.Equal(hosts.AnyHost()) && !slices.ContainsFunc(list, l.Hosts.Equal) {
			list = append(list, l.Hosts)
		}
	}
	return list
}

// changedHostRules returns the host rules of limits after a change, nil if they stay the same.
// Rules that allow everything are returned as hosts.AnyHost.
func changedHostRules(before, after []constraint) []hosts.HostRule {
	was, is := hostRules(before), hostRules(after)
	switch {
	case slices.EqualFunc(was, is, hosts.HostRule.Equal):
		return nil
	case is == nil:
		return []hosts.HostRule{hosts.AnyHost()}
	}
	return is
}

// allowsNetwork reports whether v allows a tool of the group network.
func allowsNetwork(snapshot *toolgroups.Snapshot, v *toolgroups.View) bool {
	info, _ := snapshot.LookupGroup(toolgroups.Network)
	return slices.ContainsFunc(info.Tools, func(name string) bool { return slices.Contains(v.ToolNames(), name) })
}

// hosts returns the host rule of the role itself, without the rules that limit it.
func (r *Role) hosts() hosts.HostRule { return ruleOrAny(r.Hosts) }

// ruleOrAny returns *r, or the rule that allows all hosts if r is nil.
func ruleOrAny(r *hosts.HostRule) hosts.HostRule {
	if r == nil {
		return hosts.AnyHost()
	}
	return *r
}

// storedRule returns a copy of r as it is stored in a Role: nil if it allows all hosts.
func storedRule(r *hosts.HostRule) *hosts.HostRule {
	if ruleOrAny(r).Equal(hosts.AnyHost()) {
		return nil
	}
	own := r.Clone()
	return &own
}
