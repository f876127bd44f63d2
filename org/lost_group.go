package org

import (
	"maps"
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
)

// LostGroup is a tool group that a role names and does not have any more, because another
// owner registered the id since. The role gets it back when the role is written again.
type LostGroup struct {
	Role  string // name
	Group toolgroups.GroupID
	Was   toolgroups.GroupOwner // when the role was written
	Is    toolgroups.GroupOwner
}

// LostGroups lists the groups that active roles have lost, sorted by role and group. A
// group that is not registered at present is not lost: its owner may register it again.
func (o *Org) LostGroups() []LostGroup {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var list []LostGroup
	snapshot := o.config.Groups.CurrentSnapshot()
	for _, name := range slices.Sorted(maps.Keys(o.rolesByName)) {
		role := o.rolesByName[name]
		for _, id := range slices.Sorted(maps.Keys(role.GroupOwners)) {
			was, is := role.GroupOwners[id], snapshot.GroupOwner(id)
			if is != "" && is != was {
				list = append(list, LostGroup{Role: name, Group: id, Was: was, Is: is})
			}
		}
	}
	return list
}
