package org

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// LimitTo returns a limit to some groups as a text for identity.Principal.Within. The groups
// are pinned to the owners that they have now. A group without an owner has no effect, also if
// it is registered later. AllGroups is "", which is no limit.
func (o *Org) LimitTo(set toolgroups.GroupSet) string {
	if set.IsAll() {
		return ""
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	text, _ := json.Marshal(o.pinOwners(set)) // sets and maps of strings always marshal
	return string(text)
}

// networkLimits returns the limit of a caller beyond the limit of its role. It returns nil if there is no
// such limit. What is not a text of LimitTo allows nothing.
func networkLimits(p identity.Principal) []constraint {
	if p.Within == "" {
		return nil
	}
	var pinned toolgroups.PinnedSet
	if json.Unmarshal([]byte(p.Within), &pinned) != nil || pinned.Set.IsAll() {
		pinned = toolgroups.PinnedSet{}
	}
	return []constraint{networkLimit(pinned)}
}

// networkLimit returns the limit to the groups of a network.
func networkLimit(pinned toolgroups.PinnedSet) constraint {
	return constraint{PinnedSet: pinned, Hosts: hosts.AnyHost(), reason: "the groups of the network that the request comes from", kind: LimitNetwork}
}

// CallerHasGroup reports whether the role of a caller uses a group (RoleHasGroup), and the
// limit of the caller covers it.
func (o *Org) CallerHasGroup(p identity.Principal, group toolgroups.GroupID) bool {
	return o.RoleHasGroup(p.Role, group) && o.networkCovers(p, group)
}

// networkCovers reports whether the limit of a caller covers a registered group.
func (o *Org) networkCovers(p identity.Principal, group toolgroups.GroupID) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return !slices.ContainsFunc(networkLimits(p), func(c constraint) bool { return !o.registry().CoversGroup(c.PinnedSet, group) })
}

// CallerMayStartTasks reports whether a caller may start tasks: callers in its role may
// (MayStartTasks), and its limit leaves it what that needs.
func (o *Org) CallerMayStartTasks(p identity.Principal) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return p.Kind == identity.Caller && checkNetworkGroups(p) == nil && o.mayStartTasksAs(o.config.Groups.CurrentSnapshot(), o.lookupRole, p)
}

// checkNetworkGroups returns an error if the limit of a caller has no groups. Its task could call no
// tool, but its models would be asked.
func checkNetworkGroups(p identity.Principal) error {
	if limits := networkLimits(p); len(limits) > 0 && len(limits[0].Set.GroupIDs()) == 0 {
		return errcode.New(errcode.InsufficientPermissions, "start a task: the network that the request comes from has no tool groups")
	}
	return nil
}

// checkTaskNetwork returns an error unless a task stays within the limit of a caller. A task that
// the caller started elsewhere may have more permissions.
func checkTaskNetwork(p identity.Principal, t *Task) error {
	for _, limit := range networkLimits(p) {
		if n := t.Network; n != nil && limit.Set.Equal(n.Set) && maps.Equal(limit.Owners, n.Owners) {
			continue
		}
		same := limit.Set.Covers(t.Ceiling.Set)
		for id, owner := range t.Ceiling.Owners {
			same = same && limit.Owners[id] == owner
		}
		if !same {
			return errcode.New(errcode.InsufficientPermissions, "retry the task: it may use more than requests from this network; retry it from where it was started")
		}
	}
	return nil
}
