package toolgroups

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// Snapshot is the registry at one moment. It never changes; all methods are
// safe for concurrent use.
type Snapshot struct {
	revision uint64 // moves with every change
	width    uint32 // more than any index in use
	groups   table[*group]
	tools    table[*Handle]
	toolsets []*group // groups with references
}

type group struct {
	Info              // without Tools and Count, which depend on the snapshot
	tools   []*Handle // in registration order
	refs    []ref
	prompts []*Prompt
	order   uint64 // revision of the first registration
}

// ref is the name of a tool in another group, bound to the owner the tool had
// when the reference was registered.
type ref struct {
	name  string
	owner Owner // "" when there was no such tool: inert
}

// resolveRefs binds references to the owners of the tools they name.
func (s *Snapshot) resolveRefs(names []string) []ref {
	refs := make([]ref, len(names))
	for i, name := range names {
		refs[i].name = name
		if h, ok := s.tools.get(name); ok {
			refs[i].owner = h.Owner
		}
	}
	return refs
}

// Groups lists all groups, sorted by id.
func (s *Snapshot) Groups() []Info {
	list := make([]Info, 0, s.groups.size)
	for _, g := range s.groups.all {
		list = append(list, s.info(g))
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Group describes one group; false when there is none of this id.
func (s *Snapshot) Group(id GroupID) (Info, bool) {
	g, ok := s.groups.get(string(id))
	if !ok {
		return Info{}, false
	}
	return s.info(g), true
}

// IDs lists the ids of all groups in the order of their first registration.
func (s *Snapshot) IDs() []GroupID {
	groups := s.ordered()
	ids := make([]GroupID, len(groups))
	for i, g := range groups {
		ids[i] = g.ID
	}
	return ids
}

// Owner says who owns a group; "" when there is none of this id.
func (s *Snapshot) Owner(id GroupID) Owner {
	g, ok := s.groups.get(string(id))
	if !ok {
		return ""
	}
	return g.Owner
}

// Lookup finds a tool by its exact name.
func (s *Snapshot) Lookup(name string) (*Handle, bool) { return s.tools.get(name) }

// GroupOf gives the group that owns a tool.
func (s *Snapshot) GroupOf(name string) (GroupID, bool) {
	h, ok := s.Lookup(name)
	if !ok {
		return "", false
	}
	return h.Group, true
}

// InGroups says whether one of the groups owns or references the tool; false
// for unknown tools and for no groups.
func (s *Snapshot) InGroups(name string, ids ...GroupID) bool {
	h, ok := s.Lookup(name)
	if !ok {
		return false
	}
	for _, id := range ids {
		if g, ok := s.groups.get(string(id)); ok && slices.Contains(s.members(g), h) {
			return true
		}
	}
	return false
}

// Definitions merges the tools of groups: in the order of ids, then of
// registration, each tool once, unknown ids skipped.
func (s *Snapshot) Definitions(ids ...GroupID) []tool.Definition {
	seen := newBits(s.width)
	var list []tool.Definition
	for _, id := range ids {
		g, ok := s.groups.get(string(id))
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

// Tools lists all tools, sorted by name.
func (s *Snapshot) Tools() []*Handle {
	list := make([]*Handle, 0, s.tools.size)
	for _, h := range s.tools.all {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *Handle) int { return cmp.Compare(a.Definition.Name, b.Definition.Name) })
	return list
}

func (s *Snapshot) info(g *group) Info {
	info := g.Info
	members := s.members(g)
	info.Tools, info.Count = make([]string, len(members)), len(members)
	for i, h := range members {
		info.Tools[i] = h.Definition.Name
	}
	return info
}

func (s *Snapshot) ordered() []*group {
	list := make([]*group, 0, s.groups.size)
	for _, g := range s.groups.all {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *group) int { return cmp.Compare(a.order, b.order) })
	return list
}

// members lists a group's tools, its own and those its references reach.
func (s *Snapshot) members(g *group) []*Handle {
	if len(g.refs) == 0 {
		return g.tools
	}
	list, seen := slices.Clone(g.tools), newBits(s.width)
	for _, h := range list {
		seen.add(h.index)
	}
	for _, r := range g.refs {
		if h, ok := s.tools.get(r.name); ok && h.Owner == r.owner && s.mayReference(g, h) && !seen.has(h.index) {
			seen.add(h.index)
			list = append(list, h)
		}
	}
	return list
}

// mayReference holds the rule of design §4: only the operator's configuration
// references across owners, and never into a reserved group.
func (s *Snapshot) mayReference(g *group, h *Handle) bool {
	if g.Owner == h.Owner {
		return true
	}
	target, ok := s.groups.get(string(h.Group))
	return ok && g.Owner == Config && !target.Reserved
}

// checkNames refuses a tool whose name another group owns.
func (s *Snapshot) checkNames(id GroupID, handles []*Handle) error {
	for _, h := range handles {
		if other, ok := s.tools.get(h.Definition.Name); ok && other.Group != id {
			return errcode.New(errcode.DuplicateToolName, "register tool group %q: the tool name %q belongs to group %q of %s",
				id, h.Definition.Name, other.Group, other.Owner)
		}
	}
	return nil
}

// with gives the next snapshot: after in the place of before.
func (s *Snapshot) with(before, after *group) *Snapshot {
	next := &Snapshot{revision: s.revision + 1}
	var goneGroups, goneTools []string
	if before != nil {
		goneGroups = append(goneGroups, string(before.ID))
		for _, h := range before.tools {
			goneTools = append(goneTools, h.Definition.Name)
		}
	}
	newGroups, newTools := map[string]*group{}, map[string]*Handle{}
	if after != nil {
		after.order = next.revision
		if before != nil {
			after.order = before.order
		}
		newGroups[string(after.ID)] = after
		for _, h := range after.tools {
			newTools[h.Definition.Name] = h
		}
	}
	next.groups = s.groups.edit(newGroups, goneGroups)
	next.tools = s.tools.edit(newTools, goneTools)
	next.toolsets = replaceToolset(s.toolsets, before, after)
	return next
}

func replaceToolset(list []*group, before, after *group) []*group {
	hadRefs := before != nil && len(before.refs) > 0
	hasRefs := after != nil && len(after.refs) > 0
	if !hadRefs && !hasRefs {
		return list
	}
	next := slices.DeleteFunc(slices.Clone(list), func(g *group) bool { return g == before })
	if hasRefs {
		next = append(next, after)
	}
	return next
}

// affected lists the groups whose tools a change moved: the group itself and
// the toolsets that reference one of its tools.
func (s *Snapshot) affected(before, after *group) []GroupID {
	names := map[string]bool{}
	var id GroupID
	for _, g := range []*group{before, after} {
		if g == nil {
			continue
		}
		id = g.ID
		for _, h := range g.tools {
			names[h.Definition.Name] = true
		}
	}
	changed := []GroupID{id}
	for _, g := range s.toolsets {
		if g.ID != id && slices.ContainsFunc(g.refs, func(r ref) bool { return names[r.name] }) {
			changed = append(changed, g.ID)
		}
	}
	return changed
}
