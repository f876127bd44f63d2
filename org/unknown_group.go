package org

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

// checkKnown returns an error with the code GroupNotFound if a specification names a group
// that is neither registered nor declared. old is the role that it changes, nil for a new
// one: a group that old holds and that is away is known. The operator may allow unknown
// groups; they have no effect until the role is written again.
func (o *Org) checkKnown(creator grantor, spec RoleSpec, old *Role) error {
	if spec.AllowUnknown && creator.createdBy == CreatorOperator {
		return nil
	}
	var unknown []toolgroups.GroupID
	for _, set := range []*toolgroups.GroupSet{spec.Use, spec.Grant} {
		if set == nil {
			continue
		}
		for _, id := range set.GroupIDs() {
			held := old != nil && old.GroupOwners[id] != ""
			if !held && o.registry().KnownOwner(id) == "" && !slices.Contains(unknown, id) {
				unknown = append(unknown, id)
			}
		}
	}
	if unknown == nil {
		return nil
	}
	advice := "; name groups that exist"
	if creator.createdBy == CreatorOperator {
		advice += ", or allow unknown ones (allowUnknown, --allow-unknown)"
	}
	return o.unknownGroupsError(creator, "role "+strconv.Quote(spec.Name), advice, unknown)
}

// unknownGroupsError returns the error for ids without a group. It suggests only groups that g
// has, so that a misspelt id reveals no others.
func (o *Org) unknownGroupsError(g grantor, what, advice string, ids []toolgroups.GroupID) error {
	return errcode.New(errcode.GroupNotFound, "%s: there is no tool group %s%s", what, o.withSuggestions(g, ids), advice).With("groups", ids)
}

// maxSuggestions limits the ids that one error names, because looking for similar ids takes
// time.
const maxSuggestions = 8

// withSuggestions lists ids, each with the similar group that g has, if there is one.
func (o *Org) withSuggestions(g grantor, ids []toolgroups.GroupID) string {
	known := o.groupsOf(g)
	var list []string
	for _, id := range ids[:min(len(ids), maxSuggestions)] {
		text := strconv.Quote(string(id))
		if hint := o.suggestGroup(id, known); hint != "" {
			text += " (" + hint + ")"
		}
		list = append(list, text)
	}
	if more := len(ids) - len(list); more > 0 {
		list = append(list, strconv.Itoa(more)+" more")
	}
	return strings.Join(list, ", ")
}

// suggestGroup returns a hint to one of the known groups. This is the group of a tool with this
// name, or a group with a similar id. It returns "" if there is none.
func (o *Org) suggestGroup(id toolgroups.GroupID, known []string) string {
	for _, group := range known {
		if o.registry().InGroups(string(id), toolgroups.GroupID(group)) {
			return "it is a tool of the group " + strconv.Quote(group)
		}
	}
	return textutil.SuggestName(string(id), known)
}

// groupsOf returns the ids of the registered groups that are within all limits of g, in
// the order of their registration. Of a group whose read part alone is, it returns that.
func (o *Org) groupsOf(g grantor) []string {
	registry := o.registry()
	var list []string
	for _, id := range registry.GroupIDs() {
		part, ok := toolgroups.WholeOrRead(id, func(part toolgroups.GroupID) bool {
			return !slices.ContainsFunc(g.limits, func(limit constraint) bool { return !registry.ReachesGroup(limit.PinnedSet, part) })
		})
		if ok {
			list = append(list, string(part))
		}
	}
	return list
}

// unknownTo returns the groups of a set that do not exist for g. These are groups that
// are neither registered nor declared, and groups in which g has nothing. A caller
// cannot tell the two kinds apart.
func (o *Org) unknownTo(g grantor, set toolgroups.GroupSet) []toolgroups.GroupID {
	known := o.groupsOf(g)
	return slices.DeleteFunc(set.GroupIDs(), func(id toolgroups.GroupID) bool {
		declared := o.registry().GroupOwner(id) == "" && o.registry().KnownOwner(id) != ""
		whole, _ := id.WholeGroup()
		return declared || slices.Contains(known, string(id)) || slices.Contains(known, string(whole))
	})
}

// registry returns the registry to which sets are pinned.
func (o *Org) registry() *toolgroups.Snapshot {
	if o.draft != nil {
		return o.draft
	}
	return o.config.Groups.CurrentSnapshot()
}
