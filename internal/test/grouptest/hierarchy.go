package grouptest

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// isReserved reports whether an id is reserved, or below a reserved one.
func (r *Registry) isReserved(id toolgroups.GroupID) bool {
	return slices.ContainsFunc(r.Reserved, func(reserved toolgroups.GroupID) bool {
		return id == reserved || strings.HasPrefix(string(id), string(reserved)+"/")
	})
}

// Descendants lists the groups below a group: those that it declares as children and that
// have its owner, each followed by its own descendants.
func (r *Registry) Descendants(id toolgroups.GroupID) (list []toolgroups.GroupID) {
	g := r.Find(id)
	if g == nil {
		return nil
	}
	for _, child := range g.Children {
		if r.OwnerOf(child) != g.Owner {
			continue
		}
		for _, below := range append([]toolgroups.GroupID{child}, r.Descendants(child)...) {
			if !slices.Contains(list, below) {
				list = append(list, below)
			}
		}
	}
	return list
}

// Covers reports whether a group is within another, by the declarations of children: it is the
// other, one of its descendants, or the read part of one of these. A read part is within the read
// part of a group above, too; a whole group never is.
func (r *Registry) Covers(above, id toolgroups.GroupID) bool {
	aboveWhole, aboveReads := Whole(above)
	whole, reads := Whole(id)
	return (reads || !aboveReads) && (whole == aboveWhole || slices.Contains(r.Descendants(aboveWhole), whole))
}

// checkChildren returns the code of the error if the children of a group are wrong by
// themselves.
func (r *Registry) checkChildren(g GroupSpec) errcode.Code {
	if len(g.Children) > 0 && slices.Contains(r.Reserved, g.ID) {
		return errcode.InvalidGroupDef
	}
	if slices.ContainsFunc(g.Children, r.isReserved) {
		return errcode.ReservedGroupID
	}
	for i, id := range g.Children {
		if id == g.ID || slices.Contains(g.Children[:i], id) {
			return errcode.InvalidGroupDef
		}
	}
	return ""
}

// checkHierarchy returns the code of the error if a group cannot be where the hierarchy has
// it: a child of another owner's group, above one, or below itself.
func (r *Registry) checkHierarchy(g GroupSpec) errcode.Code {
	for _, id := range g.Children {
		if owner := r.OwnerOf(id); owner != "" && owner != g.Owner {
			return errcode.DuplicateGroupID
		}
	}
	for _, parent := range r.Groups {
		if parent.Owner != g.Owner && r.Find(g.ID) == nil && slices.Contains(parent.Children, g.ID) {
			return errcode.DuplicateGroupID
		}
	}
	if slices.ContainsFunc(g.Children, func(id toolgroups.GroupID) bool { return r.declares(id, g.ID) }) {
		return errcode.InvalidGroupDef
	}
	return ""
}

// declares reports whether a group declares another as a child, or a child of it does,
// whether the other is registered or not.
func (r *Registry) declares(id, other toolgroups.GroupID) bool {
	g := r.Find(id)
	return g != nil && slices.ContainsFunc(g.Children, func(child toolgroups.GroupID) bool {
		return child == other || r.declares(child, other)
	})
}
