package org

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
)

// LostGroup is a tool group that a role names and does not have any more, because another
// owner registered the id since. The role gets it back when the role is written again.
//
// For RootRole it is a group that root may not grant any more. Root gets it back when the
// list of what it may grant changes.
type LostGroup struct {
	Role  string // name
	Group toolgroups.GroupID
	Was   toolgroups.GroupOwner // when the role was written
	Is    toolgroups.GroupOwner
}

// LostGroups lists the groups that active roles and root have lost, sorted by role and
// group. A group that is not registered at present is not lost: its owner may register it
// again.
func (o *Org) LostGroups() []LostGroup {
	o.mu.RLock()
	defer o.mu.RUnlock()
	snapshot := o.config.Groups.CurrentSnapshot()
	list := o.root.lostGroups(snapshot)
	for _, role := range o.sortedRoles() {
		list = append(list, role.lostGroups(snapshot)...)
	}
	slices.SortStableFunc(list, func(a, b LostGroup) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Group, b.Group)) })
	return list
}

// lostGroups returns the groups of r that have another owner in a snapshot.
func (r *Role) lostGroups(snapshot *toolgroups.Snapshot) (list []LostGroup) {
	for id, was := range r.GroupOwners {
		if is := snapshot.GroupOwner(id); is != "" && is != was {
			list = append(list, LostGroup{Role: r.Name, Group: id, Was: was, Is: is})
		}
	}
	return list
}
