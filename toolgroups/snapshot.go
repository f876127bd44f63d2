package toolgroups

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/tool"
)

// Snapshot is the registry at one moment. It is immutable, and all of its methods are
// safe for concurrent use. Lists that it returns belong to the caller.
type Snapshot struct {
	revision uint64 // incremented with every change
	width    uint32 // greater than all indexes in use
	groups   cowMap[*group]
	tools    cowMap[*ToolHandle]
	apis     cowMap[*group]       // the groups server/api, by id
	servers  cowMap[*group]       // the groups with OpenAPIs, by the server's name
	owned    cowMap[[]*group]     // the groups with tools of their own, by owner, in the order of compareGroups
	toolsets []*group             // groups with references
	parents  []*group             // groups with children
	above    map[GroupID][]*group // the groups of parents that declare a child, by its id
	declared map[GroupID]GroupOwner
}

// group is a registered Group. It is immutable once it is published.
type group struct {
	GroupInfo               // without Tools, Count and Hours, which depend on the Snapshot and on hours
	tools     []*ToolHandle // in registration order
	refs      []toolRef
	ownerRefs []OwnerRef
	prompts   []Prompt
	apis      []*group // the groups server/api of its tools
	apiNames  map[string]string
	openAPIs  bool
	onlyReads bool   // the group is the read part of the registered one
	hours     Hours  // nil if the group is always open
	open      bool   // not used without hours
	order     uint64 // revision of the first registration of the id
}

// toolRef is a reference to a tool of another group. It is bound to the owner that
// the tool had when the reference was registered. It does not refer to a tool that
// another owner registers later under the same name.
type toolRef struct {
	name  string
	owner GroupOwner // "" if there was no such tool; the reference then has no effect
}

// ListGroups returns all groups, sorted by id.
func (s *Snapshot) ListGroups() []GroupInfo {
	list := make([]GroupInfo, 0, s.groups.size)
	for _, g := range s.groups.values() {
		list = append(list, s.info(g))
	}
	slices.SortFunc(list, func(a, b GroupInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// LookupGroup returns the group with the given id. It reports false if there is none.
func (s *Snapshot) LookupGroup(id GroupID) (GroupInfo, bool) {
	g, ok := s.group(id)
	if !ok {
		return GroupInfo{}, false
	}
	return s.info(g), true
}

// DirectTools returns the names of the tools of a group. It leaves out tools that the group only
// has through its children.
func (s *Snapshot) DirectTools(id GroupID) (names []string) {
	g, ok := s.group(id)
	if !ok {
		return nil
	}
	for _, h := range s.ownMembers(g) {
		names = append(names, h.Definition.Name)
	}
	return names
}

// GroupIDs returns the ids of all groups in the order of their first registration.
func (s *Snapshot) GroupIDs() []GroupID {
	groups := s.orderedGroups()
	ids := make([]GroupID, len(groups))
	for i, g := range groups {
		ids[i] = g.ID
	}
	return ids
}

// GroupOwner returns the owner of a group, "" if there is no group with this id.
func (s *Snapshot) GroupOwner(id GroupID) GroupOwner {
	g, ok := s.group(id)
	if !ok {
		return ""
	}
	return g.Owner
}

// LookupTool returns the tool with exactly this name. It does not allocate.
func (s *Snapshot) LookupTool(name string) (*ToolHandle, bool) { return s.tools.get(name) }

// GroupOf returns the group that owns the named tool.
func (s *Snapshot) GroupOf(name string) (GroupID, bool) {
	h, ok := s.LookupTool(name)
	if !ok {
		return "", false
	}
	return h.Group, true
}

// InGroups reports whether one of the groups owns or references the named tool.
func (s *Snapshot) InGroups(name string, ids ...GroupID) bool {
	h, ok := s.LookupTool(name)
	if !ok {
		return false
	}
	for _, id := range ids {
		if g, ok := s.group(id); ok && slices.Contains(s.members(g), h) {
			return true
		}
	}
	return false
}

// ToolDefinitions returns the tools of the given groups, ordered by ids and then by
// registration, each tool once. It ignores unknown ids.
func (s *Snapshot) ToolDefinitions(ids ...GroupID) []tool.Definition {
	seen := newBits(s.width)
	var list []tool.Definition
	for _, id := range ids {
		g, ok := s.group(id)
		if !ok {
			continue
		}
		for _, h := range s.members(g) {
			if !seen.has(h.index) {
				seen.add(h.index)
				list = append(list, h.Definition)
			}
		}
	}
	return list
}

// ListTools returns all tools under their own names, sorted by name. Those of groups
// server/api are found by LookupTool only.
func (s *Snapshot) ListTools() []*ToolHandle {
	list := slices.DeleteFunc(s.tools.values(), (*ToolHandle).IsAPI)
	slices.SortFunc(list, func(a, b *ToolHandle) int { return cmp.Compare(a.Definition.Name, b.Definition.Name) })
	return list
}

// info returns the description of g with the tools that it has in s.
func (s *Snapshot) info(g *group) GroupInfo {
	info := g.GroupInfo
	members := s.members(g)
	info.Hours = g.describeHours()
	info.Tools, info.Count = make([]string, len(members)), len(members)
	for i, h := range members {
		info.Tools[i] = h.Definition.Name
	}
	return info
}

// orderedGroups returns all groups in the order of their first registration.
func (s *Snapshot) orderedGroups() []*group {
	list := s.groups.values()
	slices.SortFunc(list, func(a, b *group) int { return cmp.Compare(a.order, b.order) })
	return list
}

// members returns the tools of a group and of its descendants, each once.
func (s *Snapshot) members(g *group) []*ToolHandle {
	if len(g.Children) == 0 {
		return s.ownMembers(g)
	}
	seen := newBits(s.width)
	var list []*ToolHandle
	for _, one := range s.withDescendants(g) {
		list = appendNew(list, seen, s.ownMembers(one))
	}
	return list
}

// appendNew appends the tools that are not in seen, and adds them to it.
func appendNew(list []*ToolHandle, seen bits, more []*ToolHandle) []*ToolHandle {
	for _, h := range more {
		if seen.has(h.index) {
			continue
		}
		seen.add(h.index)
		list = append(list, h)
	}
	return list
}

// ownMembers returns the tools of a group without its children. Its own tools come first, then the
// tools of its valid references. A closed group has no tools. A read part has only tools that are
// ReadOnly.
func (s *Snapshot) ownMembers(g *group) []*ToolHandle {
	if g.isClosed() {
		return nil
	}
	if g.onlyReads {
		return readOnlyTools(s.openMembers(g))
	}
	return s.openMembers(g)
}

// openMembers returns the tools of an open group without its children, whatever their effect.
func (s *Snapshot) openMembers(g *group) []*ToolHandle {
	if !g.isToolset() {
		return g.tools
	}
	list, seen := slices.Clone(g.tools), newBits(s.width)
	for _, h := range list {
		seen.add(h.index)
	}
	add := func(h *ToolHandle) {
		if s.mayReference(g, h) && !seen.has(h.index) {
			seen.add(h.index)
			list = append(list, h)
		}
	}
	for _, r := range g.refs {
		if h, ok := s.tools.get(r.name); ok && h.Owner == r.owner {
			add(h)
		}
	}
	for _, r := range g.ownerRefs {
		for _, h := range s.ownTools(r) {
			add(h)
		}
	}
	return list
}

// isToolset reports whether g has references.
func (g *group) isToolset() bool { return len(g.refs)+len(g.ownerRefs) > 0 }

// ownTools returns the tools that a reference to an owner means, in the order of
// registration.
func (s *Snapshot) ownTools(r OwnerRef) (list []*ToolHandle) {
	groups, _ := s.owned.get(string(r.Owner))
	for _, g := range groups {
		for _, h := range g.tools {
			if !slices.Contains(r.Except, h.Definition.Name) {
				list = append(list, h)
			}
		}
	}
	return list
}

// compareGroups compares groups by their first registration.
func compareGroups(a, b *group) int {
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.ID, b.ID))
}

// mayReference reports whether g may reference the tool h. Only groups of the
// operator's configuration may reference tools of other owners. No group may
// reference a tool in a reserved group of another owner.
func (s *Snapshot) mayReference(g *group, h *ToolHandle) bool {
	if g.Owner == h.Owner {
		return true
	}
	target, ok := s.groups.get(string(h.Group))
	return ok && g.Owner == Config && !target.Reserved
}

// withEdits returns the next Snapshot, with the changes of edits. The caller sets its width
// and the indexes of the new tools.
func (s *Snapshot) withEdits(edits []*groupEdit) *Snapshot {
	next := &Snapshot{revision: s.revision + 1, toolsets: s.toolsets, parents: s.parents, declared: s.declared}
	old, added := newRegistryIndex(), newRegistryIndex()
	for _, e := range edits {
		if e.before != nil {
			old.add(e.before)
		}
		if e.after != nil {
			e.after.order = next.revision
			if e.before != nil {
				e.after.order = e.before.order
			}
			added.add(e.after)
		}
		next.toolsets = replaceGroup(next.toolsets, e.before, e.after, (*group).isToolset)
		next.parents = replaceGroup(next.parents, e.before, e.after, func(g *group) bool { return len(g.Children) > 0 })
	}
	if next.above = s.above; !slices.Equal(next.parents, s.parents) {
		next.above = groupsAbove(next.parents)
	}
	lists := s.ownedAfter(edits)
	changed := slices.Collect(maps.Keys(lists))
	maps.DeleteFunc(lists, func(_ string, list []*group) bool { return len(list) == 0 })
	next.owned = s.owned.withEdits(lists, changed)
	next.groups = s.groups.withEdits(added.groups, slices.Collect(maps.Keys(old.groups)))
	next.tools = s.tools.withEdits(added.tools, slices.Collect(maps.Keys(old.tools)))
	next.apis = s.apis.withEdits(added.apis, slices.Collect(maps.Keys(old.apis)))
	next.servers = s.servers.withEdits(added.servers, slices.Collect(maps.Keys(old.servers)))
	return next
}

// ownedAfter returns the lists of owned that edits change.
func (s *Snapshot) ownedAfter(edits []*groupEdit) map[string][]*group {
	lists := map[string][]*group{}
	listOf := func(owner GroupOwner) []*group {
		if list, changed := lists[string(owner)]; changed {
			return list
		}
		list, _ := s.owned.get(string(owner))
		return slices.Clone(list)
	}
	for _, e := range edits {
		if g := e.before; g != nil && len(g.tools) > 0 {
			list := listOf(g.Owner)
			at, _ := slices.BinarySearchFunc(list, g, compareGroups)
			lists[string(g.Owner)] = slices.Delete(list, at, at+1)
		}
		if g := e.after; g != nil && len(g.tools) > 0 {
			list := listOf(g.Owner)
			at, _ := slices.BinarySearchFunc(list, g, compareGroups)
			lists[string(g.Owner)] = slices.Insert(list, at, g)
		}
	}
	return lists
}

// registryIndex has what the maps of a Snapshot have of some groups.
type registryIndex struct {
	groups, apis, servers map[string]*group
	tools                 map[string]*ToolHandle
}

func newRegistryIndex() registryIndex {
	return registryIndex{map[string]*group{}, map[string]*group{}, map[string]*group{}, map[string]*ToolHandle{}}
}

// add adds a group.
func (x registryIndex) add(g *group) {
	x.groups[string(g.ID)] = g
	for _, h := range g.allHandles() {
		x.tools[h.Definition.Name] = h
	}
	for _, api := range g.apis {
		x.apis[string(api.ID)] = api
	}
	if server, ok := serverName(g.Owner); ok && g.openAPIs {
		x.servers[server] = g
	}
}

// replaceGroup returns a list of the groups that belong in it, with after in the place of
// before. It returns list itself if neither belongs.
func replaceGroup(list []*group, before, after *group, belongs func(*group) bool) []*group {
	had, has := before != nil && belongs(before), after != nil && belongs(after)
	if !had && !has {
		return list
	}
	next := slices.DeleteFunc(slices.Clone(list), func(g *group) bool { return g == before })
	if has {
		next = append(next, after)
	}
	return next
}

// affected returns the groups whose tools a change may have changed since base. These are
// the groups themselves and the toolsets that reference one of their tools. The groups
// above these, in base or in s, are affected too.
func (s *Snapshot) affected(base *Snapshot, edits []*groupEdit) []GroupID {
	names, owners, changed := map[string]bool{}, map[GroupOwner]bool{}, map[GroupID]bool{}
	for _, e := range edits {
		for _, g := range []*group{e.before, e.after} {
			if g == nil {
				continue
			}
			changed[g.ID], owners[g.Owner] = true, true
			for _, api := range g.apis {
				changed[api.ID] = true
			}
			for _, h := range g.tools {
				names[h.Definition.Name] = true
			}
		}
	}
	for _, g := range s.toolsets {
		if !changed[g.ID] && (slices.ContainsFunc(g.refs, func(r toolRef) bool { return names[r.name] }) ||
			slices.ContainsFunc(g.ownerRefs, func(r OwnerRef) bool { return owners[r.Owner] })) {
			changed[g.ID] = true
		}
	}
	for _, id := range slices.Collect(maps.Keys(changed)) {
		for _, above := range slices.Concat(base.ancestors(id), s.ancestors(id)) {
			changed[above] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}
