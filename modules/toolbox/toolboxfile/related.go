package toolboxfile

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/toolgroups"
)

// GroupRef is the id of a tool group that a toolset names. The caller checks that the group
// exists.
type GroupRef struct {
	ID  toolgroups.GroupID
	Pos yamldoc.Pos `json:"-"`
}

// GroupRefIDs returns the ids in order.
func GroupRefIDs(list []GroupRef) (ids []toolgroups.GroupID) {
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	return ids
}

// relatedGroups reads a list of other tool groups, at most so many. check returns what is
// wrong with an id, and a hint; "" accepts it.
func (it item) relatedGroups(to *[]GroupRef, most int, check func(id string) (message, hint string)) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of tool groups", "for example [reading]")
			return
		}
		for _, one := range v.ListItems() {
			id, ok := one.ReadNonEmpty()
			if !ok {
				continue
			}
			message, hint := check(id)
			switch {
			case message != "":
				one.AddError(message, hint)
			case id == it.Name:
				one.AddError("is the toolset itself", "name other groups")
			case slices.Contains(GroupRefIDs(*to), toolgroups.GroupID(id)):
				one.AddError(yamldoc.QuoteText(id)+" is listed twice", "")
			case len(*to) == most:
				v.AddError(fmt.Sprintf("has more than %d entries", most), "")
				return
			default:
				*to = append(*to, GroupRef{toolgroups.GroupID(id), one.Pos})
			}
		}
	}
}

// checkChild returns the fault in the id of a child, if any. It applies the rules for a group of
// declared tools, because only such groups and toolsets are children.
func checkChild(id string) (message, hint string) {
	switch {
	case id == "*":
		return `"*" is no tool group that can be a child`, "name the groups"
	case toolgroups.IsBuiltinID(toolgroups.GroupID(id)):
		return yamldoc.QuoteText(id) + " is a built-in group, which cannot be a child", "name toolsets, or groups of declared tools"
	}
	return checkGroup(id)
}

// checkFallback returns what is wrong with the id of a fallback.
func checkFallback(id string) (message, hint string) {
	switch {
	case id == "*":
		return `"*" is no tool group that can be a fallback`, "name the groups"
	case toolgroups.IsBuiltinID(toolgroups.GroupID(id)):
		return "", ""
	}
	return checkGroup(id)
}
