package modules

import (
	"errors"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// registration changes the groups of one owner in a registry and can roll the changes
// back.
type registration struct {
	registry   Groups
	owner      toolgroups.Owner
	registered map[toolgroups.GroupID]toolgroups.Group
	undo       []func() error // in the order of the changes
}

// newRegistration returns a registration for an owner that has registered these groups.
func newRegistration(registry Groups, owner toolgroups.Owner, registered []toolgroups.Group) *registration {
	r := &registration{registry: registry, owner: owner, registered: make(map[toolgroups.GroupID]toolgroups.Group, len(registered))}
	for _, g := range registered {
		r.registered[g.ID] = g
	}
	return r
}

// replace replaces the groups old by next. A tool that moves to another group is
// removed from the first before it is added to the second, since a tool name can be in
// one group at a time. All other tools of both are registered throughout.
func (r *registration) replace(old, next []toolgroups.Group) error {
	for _, g := range slices.Concat(shrinkOldGroups(old, next), next) {
		if err := r.put(g); err != nil {
			return err
		}
	}
	for _, g := range old {
		if !slices.ContainsFunc(next, func(n toolgroups.Group) bool { return n.ID == g.ID }) {
			if err := r.drop(g.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// shrinkOldGroups returns the old groups from which a tool moves to another group of
// next, without the tools that move.
func shrinkOldGroups(old, next []toolgroups.Group) []toolgroups.Group {
	groupOf := make(map[string]toolgroups.GroupID) // in next, by tool name
	for _, g := range next {
		for _, t := range g.Tools {
			if t != nil {
				groupOf[t.Definition().Name] = g.ID
			}
		}
	}
	var shrunk []toolgroups.Group
	for _, g := range old {
		stay := slices.DeleteFunc(slices.Clone(g.Tools), func(t tool.Tool) bool {
			to, ok := groupOf[t.Definition().Name]
			return ok && to != g.ID
		})
		if len(stay) < len(g.Tools) {
			g.Tools = stay
			shrunk = append(shrunk, g)
		}
	}
	return shrunk
}

// put registers a group unless it is registered unchanged. The undo step is added
// first: a registry that returns an error, such as one of its journal, may have made
// the change.
func (r *registration) put(g toolgroups.Group) error {
	before, had := r.registered[g.ID]
	if had && equalGroup(before, g) && (len(g.Refs) == 0 || len(r.undo) == 0) { // an earlier change may have made references valid
		return nil
	}
	r.undo = append(r.undo, func() error {
		if had {
			return r.register(before)
		}
		return r.unregister(g.ID)
	})
	if err := r.register(g); err != nil {
		return err
	}
	r.registered[g.ID] = g
	return nil
}

// drop unregisters a registered group.
func (r *registration) drop(id toolgroups.GroupID) error {
	before := r.registered[id]
	r.undo = append(r.undo, func() error { return r.register(before) })
	delete(r.registered, id)
	return r.unregister(id)
}

// rollback undoes all changes, the last one first. It goes on after an error.
func (r *registration) rollback() error {
	var errs []error
	for _, undo := range slices.Backward(r.undo) {
		errs = append(errs, undo())
	}
	r.undo = nil
	return errors.Join(errs...)
}

func (r *registration) register(g toolgroups.Group) error {
	_, err := r.registry.RegisterGroup(r.owner, g)
	return err
}

// unregister returns nil also when the owner has no such group.
func (r *registration) unregister(id toolgroups.GroupID) error {
	err := r.registry.UnregisterGroup(r.owner, id)
	switch errcode.CodeOf(err) {
	case errcode.GroupNotFound, errcode.CannotUnregisterReserved:
		return nil
	}
	return err
}
