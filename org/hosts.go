package org

import (
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// MayReach says whether a principal's requests may go to a host now. They
// must pass the rule of its role, of the roles that made that role, of the
// roles above it in its task, and of the task's caller: the same chain that
// bounds its tools. The operator passes; nobody, and whoever's chain is
// broken, reaches nothing. Safe for concurrent use.
//
// Errors: HostBlocked, with what the refusing rule allows as the detail allowed.
func (o *Org) MayReach(p identity.Principal, h hosts.Host) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, l := range o.reach(p) {
		if !l.Hosts.Allows(h) {
			return hostBlocked(h, l.Hosts)
		}
	}
	return nil
}

func hostBlocked(h hosts.Host, r hosts.Rule) error {
	if len(r.Allow) == 0 {
		return errcode.New(errcode.HostBlocked, "reach %s: your role, or one that bounds it, may reach no host", h)
	}
	return errcode.New(errcode.HostBlocked, "reach %s: your role, or one that bounds it, may not reach this host; use one that is allowed, or ask who gave you the task", h).
		With("allowed", r.Allow)
}

// reach lists what a principal's requests must pass.
func (o *Org) reach(p identity.Principal) []constraint {
	switch p.Kind {
	case identity.Operator:
		return nil
	case identity.Agent:
		if m, ok := o.agents[p.Agent]; ok {
			return m.slot.reach(o.role)
		}
	case identity.Caller:
		if m, err := o.grantor(p); err == nil {
			return m.grants
		}
	}
	return []constraint{denyAll("who asks is not known")}
}

// reach lists what the requests of a slot's agents must pass.
func (s *scope) reach(find lookup) []constraint {
	use, limits := s.permissions(find)
	return append(limits, use)
}

// rules gives the host rules of limits that bound anything, each once.
func rules(limits []constraint) []hosts.Rule {
	var list []hosts.Rule
	for _, l := range limits {
		if !l.Hosts.Equal(hosts.Any()) && !slices.ContainsFunc(list, l.Hosts.Equal) {
			list = append(list, l.Hosts)
		}
	}
	return list
}

// hostsChanged gives the rules of a slot as they will be, if that is not what
// they are.
func (s *scope) hostsChanged(now, then lookup) []hosts.Rule {
	was, is := rules(s.reach(now)), rules(s.reach(then))
	switch {
	case slices.EqualFunc(was, is, hosts.Rule.Equal):
		return nil
	case is == nil:
		return []hosts.Rule{hosts.Any()}
	}
	return is
}

// requests says whether a view offers a tool of the group network.
func requests(snapshot *toolgroups.Snapshot, v *toolgroups.View) bool {
	info, _ := snapshot.Group(toolgroups.Network)
	return slices.ContainsFunc(info.Tools, func(name string) bool { return slices.Contains(v.Names(), name) })
}

// hosts gives a role's own rule.
func (r *Role) hosts() hosts.Rule { return hostsOf(r.Hosts) }

// hostsOf gives a rule that may have been left out.
func hostsOf(r *hosts.Rule) hosts.Rule {
	if r == nil {
		return hosts.Any()
	}
	return *r
}

// bound gives a rule as a role keeps it: nil when it bounds nothing.
func bound(r *hosts.Rule) *hosts.Rule {
	if hostsOf(r).Equal(hosts.Any()) {
		return nil
	}
	own := r.Clone()
	return &own
}
