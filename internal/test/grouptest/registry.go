package grouptest

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Registry is a naive model of a toolgroups.Manager, made of slices. It has the groups in
// the order of their first registration.
type Registry struct {
	Reserved []toolgroups.GroupID
	Groups   []GroupSpec
}

// Find returns the group with this id, nil if there is none.
func (r *Registry) Find(id toolgroups.GroupID) *GroupSpec {
	for i := range r.Groups {
		if r.Groups[i].ID == id {
			return &r.Groups[i]
		}
	}
	return nil
}

// OwnerOf returns the owner of a group, or of the group of a read part, "" if there is none.
func (r *Registry) OwnerOf(id toolgroups.GroupID) toolgroups.GroupOwner {
	id, _ = Whole(id)
	if g := r.Find(id); g != nil {
		return g.Owner
	}
	return ""
}

// GroupOfTool returns the group that owns a tool, nil if there is none.
func (r *Registry) GroupOfTool(name string) *GroupSpec {
	for i := range r.Groups {
		if r.Groups[i].Has(name) {
			return &r.Groups[i]
		}
	}
	return nil
}

// ToolByName returns a tool, and false if there is none.
func (r *Registry) ToolByName(name string) (ToolSpec, bool) {
	if g := r.GroupOfTool(name); g != nil {
		i := slices.IndexFunc(g.Tools, func(t ToolSpec) bool { return t.Name == name })
		return g.Tools[i], true
	}
	return ToolSpec{}, false
}

// Register registers a group. It returns the code of the error, in which case
// nothing changes, or of the warning.
func (r *Registry) Register(g GroupSpec) (code, warning errcode.Code) {
	if g.Owner != toolgroups.Builtin && r.isReserved(g.ID) {
		return errcode.ReservedGroupID, ""
	}
	for i, t := range g.Tools {
		if (GroupSpec{Tools: g.Tools[:i]}).Has(t.Name) {
			return errcode.DuplicateToolName, ""
		}
	}
	if code := r.checkChildren(g); code != "" {
		return code, ""
	}
	old := r.Find(g.ID)
	if old != nil && old.Owner != g.Owner {
		return errcode.DuplicateGroupID, ""
	}
	for _, t := range g.Tools {
		if home := r.GroupOfTool(t.Name); home != nil && home.ID != g.ID {
			return errcode.DuplicateToolName, ""
		}
	}
	if code := r.checkHierarchy(g); code != "" {
		return code, ""
	}
	g.bound = map[string]toolgroups.GroupOwner{}
	for _, name := range g.Refs {
		if home := r.GroupOfTool(name); home != nil {
			g.bound[name] = home.Owner
		}
	}
	if old != nil {
		*old = g
		return "", errcode.DuplicateGroupID
	}
	r.Groups = append(r.Groups, g)
	return "", ""
}

// Unregister removes a group and returns the code of the error, "" on success.
func (r *Registry) Unregister(owner toolgroups.GroupOwner, id toolgroups.GroupID) errcode.Code {
	switch {
	case slices.Contains(r.Reserved, id):
		return errcode.CannotUnregisterReserved
	case r.OwnerOf(id) != owner || owner == "":
		return errcode.GroupNotFound
	}
	r.Groups = slices.DeleteFunc(r.Groups, func(g GroupSpec) bool { return g.ID == id })
	return ""
}

// Members lists the tools of a group: its own, the referenced ones that it is bound to, then
// those of its descendants.
func (r *Registry) Members(g *GroupSpec) []string {
	names := r.direct(g)
	for _, id := range r.Descendants(g.ID) {
		for _, name := range r.direct(r.Find(id)) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// direct lists the tools of a group without those of its descendants. Only groups of the configuration may reference tools of other
// owners, and never those of a reserved group.
func (r *Registry) direct(g *GroupSpec) []string {
	var names []string
	for _, t := range g.Tools {
		names = append(names, t.Name)
	}
	for _, name := range g.Refs {
		home := r.GroupOfTool(name)
		if home == nil || home.Owner != g.bound[name] || slices.Contains(names, name) {
			continue
		}
		if home.Owner == g.Owner || g.Owner == toolgroups.Config && !slices.Contains(r.Reserved, home.ID) {
			names = append(names, name)
		}
	}
	return names
}

// Definitions lists the tools of groups without duplicates, in the order of
// ids, then of registration.
func (r *Registry) Definitions(ids ...toolgroups.GroupID) []string {
	var names []string
	for _, id := range ids {
		for _, name := range r.Part(id) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Part lists the tools of a group, or those of the group of a read part whose effect is ReadOnly.
// It is nil without such a group.
func (r *Registry) Part(id toolgroups.GroupID) []string {
	whole, reads := Whole(id)
	g := r.Find(whole)
	if g == nil {
		return nil
	}
	return slices.DeleteFunc(r.Members(g), func(name string) bool {
		t, _ := r.ToolByName(name)
		return reads && t.Effect != tool.ReadOnly
	})
}

// Whole returns the group of the id of a read part, and true; any other id and false.
func Whole(id toolgroups.GroupID) (toolgroups.GroupID, bool) {
	text, reads := strings.CutSuffix(string(id), ":read")
	return toolgroups.GroupID(text), reads
}

// IDs lists the groups in the order of their first registration.
func (r *Registry) IDs() []toolgroups.GroupID {
	var ids []toolgroups.GroupID
	for _, g := range r.Groups {
		ids = append(ids, g.ID)
	}
	return ids
}

// Names lists all tools, in the order of their groups' registration.
func (r *Registry) Names() (names []string) {
	for i := range r.Groups {
		for _, name := range r.direct(&r.Groups[i]) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
