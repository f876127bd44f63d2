package modules

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// replaceGroups replaces the groups old of an owner by next. Groups that are the same stay
// registered, unless another group changes and they have references, which the change may
// make valid.
func replaceGroups(tx *toolgroups.Tx, owner *toolgroups.Owner, old, next []toolgroups.Group) error {
	dropped, changed := groupChanges(old, next)
	for _, g := range dropped {
		if err := tx.UnregisterGroup(owner, g.ID); err != nil && errcode.CodeOf(err) != errcode.GroupNotFound {
			return err
		}
	}
	for _, g := range next {
		if !changed[g.ID] && (len(g.Refs) == 0 || len(changed)+len(dropped) == 0) {
			continue
		}
		if _, err := tx.RegisterGroup(owner, g); err != nil {
			return err
		}
	}
	return nil
}

// groupChanges returns the groups of old that next does not have, and the ids of the
// groups of next that are new or differ.
func groupChanges(old, next []toolgroups.Group) (dropped []toolgroups.Group, changed map[toolgroups.GroupID]bool) {
	changed = map[toolgroups.GroupID]bool{}
	before, stays := make(map[toolgroups.GroupID]toolgroups.Group, len(old)), make(map[toolgroups.GroupID]bool, len(next))
	for _, g := range old {
		before[g.ID] = g
	}
	for _, g := range next {
		stays[g.ID] = true
		if was, ok := before[g.ID]; !ok || !equalGroup(was, g) {
			changed[g.ID] = true
		}
	}
	for _, g := range old {
		if !stays[g.ID] {
			dropped = append(dropped, g)
		}
	}
	return dropped, changed
}
