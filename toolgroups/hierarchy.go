package toolgroups

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// The bounds of hierarchies.
const (
	MaxChildren  = 64 // of one group
	MaxFallbacks = 16 // of one group
	MaxDepth     = 8  // levels of groups, the topmost included
)

// withDescendants returns the groups of a list, each followed by its descendants, each
// group once. Descendants that are reached through closed groups only are left out.
func (s *Snapshot) withDescendants(list ...*group) []*group {
	if len(s.parents) == 0 {
		return list
	}
	all, seen := make([]*group, 0, len(list)), map[GroupID]bool{}
	var add func(*group)
	add = func(g *group) {
		if seen[g.ID] {
			return
		}
		seen[g.ID], all = true, append(all, g)
		if g.isClosed() {
			return
		}
		for _, child := range s.childrenOf(g) {
			add(child)
		}
	}
	for _, g := range list {
		add(g)
	}
	return all
}

// childrenOf returns the registered children of a group, closed or not. Those of a read part are
// the read parts of the children.
func (s *Snapshot) childrenOf(g *group) (list []*group) {
	for _, id := range g.Children {
		whole, _ := id.WholeGroup()
		child, ok := s.groups.get(string(whole))
		if !ok || !g.isParentOf(child) {
			continue
		}
		if g.onlyReads {
			child = child.readPart()
		}
		list = append(list, child)
	}
	return list
}

// isParentOf reports whether a group that g declares as a child is really a child. The group must
// belong to the owner of g, and neither may be reserved.
func (g *group) isParentOf(child *group) bool {
	return child.Owner == g.Owner && !g.Reserved && !child.Reserved
}

// ancestors returns the groups above a registered group, the nearest first. It returns nil
// for an unknown id. Above a read part are its group, and the groups above that with their read
// parts.
func (s *Snapshot) ancestors(id GroupID) (ids []GroupID) {
	return s.ancestorsAmong(id, func(*group) bool { return true })
}

// ancestorsAmong returns the groups above a registered group that are reached through groups
// that among accepts, and are accepted.
func (s *Snapshot) ancestorsAmong(id GroupID, among func(*group) bool) (ids []GroupID) {
	if whole, reads := id.WholeGroup(); reads {
		return append([]GroupID{whole}, withReadParts(s.ancestorsAmong(whole, among))...)
	}
	if len(s.above[id]) == 0 {
		return nil
	}
	for next := []GroupID{id}; len(next) > 0; next = next[1:] {
		child, ok := s.groups.get(string(next[0]))
		for _, parent := range s.above[next[0]] {
			if ok && parent.isParentOf(child) && among(parent) && !slices.Contains(ids, parent.ID) {
				ids, next = append(ids, parent.ID), append(next, parent.ID)
			}
		}
	}
	return ids
}

// isBelow reports whether b contains an ancestor of a group.
func (s *Snapshot) isBelow(id GroupID, b PinnedSet) bool { return s.hasOneOf(b, s.ancestors(id)) }

// hasOneOf reports whether b lists one of some groups, with the owner that it has.
func (s *Snapshot) hasOneOf(b PinnedSet, ids []GroupID) bool {
	return slices.ContainsFunc(ids, func(id GroupID) bool {
		return b.Set.Has(id) && b.Owners[id] == s.GroupOwner(id)
	})
}

// CoversAlways reports whether b lists a group or, through groups without hours, one above it.
// Hours of other groups then do not close the group for b. Like MissingFrom it compares ids.
func (s *Snapshot) CoversAlways(b PinnedSet, id GroupID) bool {
	alwaysOpen := func(g *group) bool { return g.hours == nil }
	return b.lists(id) || s.hasOneOf(b, s.ancestorsAmong(id, alwaysOpen))
}

// MissingFrom returns the ids of set that are neither in b nor descendants of a group in b. The
// read part of a group is missing only if the group is missing, too.
// If set is AllGroups and b is not, it returns "*". Like GroupSet.MissingFrom it compares
// ids, and the owners only of the groups above.
func (s *Snapshot) MissingFrom(b PinnedSet, set GroupSet) []GroupID {
	return slices.DeleteFunc(b.Set.MissingFrom(set), func(id GroupID) bool { return s.hasID(b, id) })
}

// lists reports whether b lists a group. For a read part, it is enough that b lists the whole
// group. It compares ids.
func (b PinnedSet) lists(id GroupID) bool {
	whole, _ := id.WholeGroup()
	return b.Set.Has(id) || b.Set.Has(whole)
}

// hasID reports whether b lists a group or contains one above it. It compares ids, and the owners
// only of the groups above.
func (s *Snapshot) hasID(b PinnedSet, id GroupID) bool { return b.lists(id) || s.isBelow(id, b) }

// IntersectSets returns the ids of each set that the other set contains, or that are below one of
// its groups. The ids of a come first, then the ids of b. If the other set contains only the read
// part of a group, IntersectSets returns the read part. The intersection with AllGroups is the
// other set. IntersectSets compares ids and ignores hours. So a recorded result must not replace a
// set whose groups have hours, see CoversAlways.
func (s *Snapshot) IntersectSets(a, b PinnedSet) GroupSet {
	common := a.Set.Intersect(b.Set)
	if a.Set.all || b.Set.all {
		return common
	}
	return SetOf(slices.Concat(s.idsWithin(a, b), s.idsWithin(b, a))...)
}

// idsWithin returns the ids of b that limit contains. If limit contains only the read part of a
// group, it returns the id of the read part.
func (s *Snapshot) idsWithin(b, limit PinnedSet) (ids []GroupID) {
	for _, id := range b.Set.ids {
		switch {
		case s.hasID(limit, id):
			ids = append(ids, id)
		case s.hasID(limit, id.ReadPart()):
			ids = append(ids, id.ReadPart())
		}
	}
	return ids
}

// groupsAbove returns the groups that declare a child, by its id.
func groupsAbove(parents []*group) map[GroupID][]*group {
	above := make(map[GroupID][]*group, len(parents))
	for _, g := range parents {
		for _, id := range g.Children {
			above[id] = append(above[id], g)
		}
	}
	return above
}

// checkRelated returns an error if the children or the fallback of a group that is to be
// registered are not valid by themselves.
func (m *Manager) checkRelated(g Group) error {
	if m.reserved[g.ID] && len(g.Children)+len(g.Fallback) > 0 {
		return errcode.New(errcode.InvalidGroupDef, "register tool group %q: built-in groups have no children and no fallback", g.ID)
	}
	for _, id := range g.Children {
		if m.isReserved(id) {
			return errcode.New(errcode.ReservedGroupID, "register tool group %q: its child %q is reserved; built-in groups are no children", g.ID, id)
		}
	}
	if err := checkIDs(g.ID, "child", g.Children, MaxChildren); err != nil {
		return err
	}
	return checkIDs(g.ID, "fallback", g.Fallback, MaxFallbacks)
}

// checkIDs checks a list of other groups that a group names.
func checkIDs(id GroupID, what string, list []GroupID, most int) error {
	if len(list) > most {
		return errcode.New(errcode.InvalidGroupDef, "register tool group %q: it names %d groups as its %s; at most %d are allowed", id, len(list), what, most)
	}
	for i, other := range list {
		if err := CheckID(other); err != nil {
			return errcode.Wrap(errcode.InvalidGroupDef, err, "register tool group %q: %s: %s", id, what, errcode.Message(err))
		}
		if other == id {
			return errcode.New(errcode.InvalidGroupDef, "register tool group %q: it names itself as its %s", id, what)
		}
		if slices.Contains(list[:i], other) {
			return errcode.New(errcode.InvalidGroupDef, "register tool group %q: it names %q as its %s twice", id, other, what)
		}
	}
	return nil
}

// checkHierarchy returns an error if an edit makes a group of another owner a child. It also
// returns an error if an edit makes a cycle, or a hierarchy that is too deep.
func (tx *Tx) checkHierarchy(edits []*groupEdit) error {
	parents := tx.parentsAfter()
	if len(parents) == 0 {
		return nil
	}
	above := groupsAbove(parents)
	for _, e := range edits {
		if e.after == nil {
			continue
		}
		if err := tx.checkOwners(e.after, above[e.id()]); err != nil {
			return err
		}
	}
	d := descent{children: tx.childrenOf, heights: map[GroupID]int{}}
	for _, g := range parents {
		if _, err := d.height(g.ID); err != nil {
			return tx.hierarchyError(edits, d.path, err)
		}
	}
	return nil
}

// hierarchyError returns err as the error of the first edit of a group on the path.
func (tx *Tx) hierarchyError(edits []*groupEdit, path []GroupID, err error) error {
	for _, e := range edits {
		if e.after != nil && slices.Contains(path, e.id()) {
			return errcode.Wrap(errcode.InvalidGroupDef, err, "register tool group %q: %s", e.id(), errcode.Message(err)).With("owner", e.after.Owner)
		}
	}
	return err
}

// checkOwners returns an error if a group of another owner declares g as its child, or if a
// child of g belongs to another owner. parents are the groups that declare g.
func (tx *Tx) checkOwners(g *group, parents []*group) error {
	for _, id := range g.Children {
		if child, isNew := tx.groupAfter(id); child != nil && !isNew && child.Owner != g.Owner {
			return errcode.New(errcode.DuplicateGroupID, "register tool group %q for %s: its child %q belongs to %s; name children of your own",
				g.ID, g.Owner, id, child.Owner).With("owner", g.Owner)
		}
	}
	for _, parent := range parents {
		if _, isNew := tx.groupAfter(g.ID); isNew && parent.Owner != g.Owner {
			return errcode.New(errcode.DuplicateGroupID, "register tool group %q for %s: %s has declared the id as a child of its group %q; choose another id",
				g.ID, g.Owner, parent.Owner, parent.ID).With("owner", g.Owner)
		}
	}
	return nil
}

// groupAfter returns the group that will have an id, nil if there will be none. It reports
// whether its owner did not have the id before.
func (tx *Tx) groupAfter(id GroupID) (g *group, isNew bool) {
	before, _ := tx.base.groups.get(string(id))
	if !tx.replaces(id) {
		return before, false
	}
	g = tx.edits[id].after
	return g, g != nil && (before == nil || before.Owner != g.Owner)
}

// parentsAfter returns the groups that will have children.
func (tx *Tx) parentsAfter() []*group {
	list := slices.DeleteFunc(slices.Clone(tx.base.parents), func(g *group) bool { return tx.replaces(g.ID) })
	for _, e := range tx.edits {
		if e.after != nil && len(e.after.Children) > 0 {
			list = append(list, e.after)
		}
	}
	return list
}

// childrenOf returns the children that a group will declare.
func (tx *Tx) childrenOf(id GroupID) []GroupID {
	if g, _ := tx.groupAfter(id); g != nil {
		return g.Children
	}
	return nil
}

// CheckChildren returns an error with the code InvalidGroupDef if the hierarchy below one of
// the ids has a cycle or more than MaxDepth levels. The error names the path. children
// returns what a group declares.
func CheckChildren(ids []GroupID, children func(GroupID) []GroupID) error {
	d := descent{children: children, heights: map[GroupID]int{}}
	for _, id := range ids {
		if _, err := d.height(id); err != nil {
			return err
		}
	}
	return nil
}

// descent checks hierarchies. Each group is visited once.
type descent struct {
	children func(GroupID) []GroupID
	heights  map[GroupID]int // levels of the hierarchies that were checked
	path     []GroupID       // from the topmost group to the current one
}

// height returns the number of levels from a group down.
func (d *descent) height(id GroupID) (int, error) {
	at := slices.Index(d.path, id)
	d.path = append(d.path, id)
	if at >= 0 {
		return 0, errcode.New(errcode.InvalidGroupDef, "its children form a cycle: %s", pathText(d.path[at:]))
	}
	height, known := d.heights[id]
	if levels := len(d.path) + max(height-1, 0); levels > MaxDepth {
		return 0, errcode.New(errcode.InvalidGroupDef, "its children have more than %d levels: %s", MaxDepth, pathText(d.path))
	}
	defer func() { d.path = d.path[:len(d.path)-1] }()
	if known {
		return height, nil
	}
	for _, child := range d.children(id) {
		below, err := d.height(child)
		if err != nil {
			return 0, err
		}
		height = max(height, below)
	}
	d.heights[id] = height + 1
	return height + 1, nil
}

func pathText(path []GroupID) string {
	names := make([]string, len(path))
	for i, id := range path {
		names[i] = string(id)
	}
	return strings.Join(names, " > ")
}
