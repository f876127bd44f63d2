package org

import (
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// UnknownName is a name in a bound or an approval rule that nothing has now.
type UnknownName struct {
	Role  string // name of the role; RootRole for a rule of the organization
	Field string // bind, or the field of an approval rule: tools, groups or unless
	Name  string // of the tool or the group; for unless the tool and the path that it lacks
}

// UnknownNames returns unknown names in the bounds and approval rules of the organization and
// of active roles of the configuration, by role. Nothing has these names. A bound or a rule
// holds once there is a tool or a group of this name. A rule whose unless has a path that the
// tool lacks selects all of its calls.
func (o *Org) UnknownNames() (list []UnknownName) {
	bound := o.UnknownBoundTools()
	o.mu.RLock()
	defer o.mu.RUnlock()
	add := func(u UnknownName) {
		if !slices.Contains(list, u) {
			list = append(list, u)
		}
	}
	for _, r := range append([]*Role{o.root}, o.sortedRoles()...) {
		if r.ID != RootRole && (r.CreatedBy != CreatorConfig || !r.isActive()) {
			continue
		}
		for _, tool := range bound[r.Name] {
			add(UnknownName{r.Name, "bind", tool})
		}
		for _, rule := range r.Approval {
			o.unknownSelected(rule, func(field, name string) { add(UnknownName{r.Name, field, name}) })
		}
	}
	return list
}

// unknownSelected calls add with each name of an approval rule that nothing has.
func (o *Org) unknownSelected(rule approval.Rule, add func(field, name string)) {
	for _, name := range rule.Tools {
		h, ok := o.registry().LookupTool(name)
		if !ok {
			add("tools", name)
		} else if path := rule.Unless.UnknownPath(h.Definition.Input); path != "" {
			add("unless", name+" "+path)
		}
	}
	for _, id := range rule.Groups {
		if o.registry().KnownOwner(toolgroups.GroupID(id)) == "" {
			add("groups", id)
		}
	}
}
