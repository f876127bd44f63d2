package modules

import (
	"errors"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// registration changes the groups of one owner and knows how to take that back.
type registration struct {
	registry Groups
	owner    toolgroups.Owner
	held     map[toolgroups.GroupID]toolgroups.Group
	undo     []func() error
}

func newLedger(registry Groups, owner toolgroups.Owner, held []toolgroups.Group) *registration {
	l := &registration{registry: registry, owner: owner, held: make(map[toolgroups.GroupID]toolgroups.Group, len(held))}
	for _, g := range held {
		l.held[g.ID] = g
	}
	return l
}

// replace puts next in the place of old. A tool that moves from one group to
// another leaves the first before it comes to the second, for a name has one
// group at a time; every other tool of both is there throughout.
func (l *registration) replace(old, next []toolgroups.Group) error {
	for _, g := range slices.Concat(shrinkOldGroups(old, next), next) {
		if err := l.put(g); err != nil {
			return err
		}
	}
	for _, g := range old {
		if !slices.ContainsFunc(next, func(n toolgroups.Group) bool { return n.ID == g.ID }) {
			if err := l.drop(g.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// shrinkOldGroups gives those old groups that lose a tool to another of the next
// ones, without it.
func shrinkOldGroups(old, next []toolgroups.Group) []toolgroups.Group {
	goes := make(map[string]toolgroups.GroupID)
	for _, g := range next {
		for _, t := range g.Tools {
			if t != nil {
				goes[t.Definition().Name] = g.ID
			}
		}
	}
	var narrowed []toolgroups.Group
	for _, g := range old {
		stay := slices.DeleteFunc(slices.Clone(g.Tools), func(t tool.Tool) bool {
			to, claimed := goes[t.Definition().Name]
			return claimed && to != g.ID
		})
		if len(stay) < len(g.Tools) {
			g.Tools = stay
			narrowed = append(narrowed, g)
		}
	}
	return narrowed
}

// put registers a group. The way back is noted first: a registry that reports
// an error, of its journal say, may have the group nevertheless.
func (l *registration) put(g toolgroups.Group) error {
	before, had := l.held[g.ID]
	if had && equalGroup(before, g) && (len(g.Refs) == 0 || len(l.undo) == 0) { // a change may give references a meaning
		return nil
	}
	l.undo = append(l.undo, func() error {
		if had {
			return l.register(before)
		}
		return l.unregister(g.ID)
	})
	if err := l.register(g); err != nil {
		return err
	}
	l.held[g.ID] = g
	return nil
}

// drop unregisters a group the owner has.
func (l *registration) drop(id toolgroups.GroupID) error {
	before := l.held[id]
	l.undo = append(l.undo, func() error { return l.register(before) })
	delete(l.held, id)
	return l.unregister(id)
}

// rollback takes all changes back, the last one first, as far as it can.
func (l *registration) rollback() error {
	var errs []error
	for _, undo := range slices.Backward(l.undo) {
		errs = append(errs, undo())
	}
	l.undo = nil
	return errors.Join(errs...)
}

func (l *registration) register(g toolgroups.Group) error {
	_, err := l.registry.Register(l.owner, g)
	return err
}

// unregister is content when the owner has no such group.
func (l *registration) unregister(id toolgroups.GroupID) error {
	err := l.registry.Unregister(l.owner, id)
	switch errcode.Of(err) {
	case errcode.GroupNotFound, errcode.CannotUnregisterReserved:
		return nil
	}
	return err
}
