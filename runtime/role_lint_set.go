package runtime

import (
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
)

// lintSet narrows a set of a role to what is needed, and describes its groups. calls returns the
// calls of a tool that depended on the set.
func lintSet(s *toolgroups.Snapshot, b toolgroups.PinnedSet, needs toolgroups.Needs, calls func(tool string) int) SetLint {
	narrow := s.NarrowSet(b, needs)
	held, all := b.Set.GroupIDs(), heldTools(s, b)
	if !b.Set.IsAll() && narrow.Tools == all && len(narrow.Set.GroupIDs()) >= len(held) {
		narrow.Set = b.Set // another choice is not better
	}
	out := SetLint{Held: b.Set, Kept: narrow.Set, HeldTools: all, KeptTools: narrow.Tools, Exact: narrow.Exact}
	if b.Set.IsAll() {
		held = s.GroupIDs()
	}
	for _, id := range appendNewIDs(held, narrow.Set.GroupIDs()) {
		g := lintGroup(s, b, id, calls)
		g.Kept = narrow.Set.Has(id)
		if b.Set.IsAll() && g.Used == 0 && !slices.Contains(narrow.Set.GroupIDs(), id) {
			out.Unused++
			continue
		}
		out.Groups = append(out.Groups, g)
	}
	out.addFallbacks(s)
	return out
}

// lintGroup describes a group.
func lintGroup(s *toolgroups.Snapshot, b toolgroups.PinnedSet, id toolgroups.GroupID, calls func(tool string) int) GroupLint {
	g := GroupLint{ID: id, Held: b.Set.Has(id)}
	owner := s.GroupOwner(id)
	if g.Away = owner == "" || g.Held && !b.Set.IsAll() && owner != b.Owners[id]; g.Away {
		return g
	}
	info, _ := s.LookupGroup(id)
	g.HasHours = info.Hours != nil
	for _, h := range s.AllTools(id) {
		if b.Only != "" && h.Owner != b.Only {
			continue
		}
		g.Tools++
		n := calls(h.Definition.Name) + calls(h.OtherName())
		if g.Calls += n; n > 0 {
			g.Used++
			g.Called = append(g.Called, h.Definition.Name)
		}
	}
	return g
}

// heldTools counts the tools of a set while all groups with hours are open, each once.
func heldTools(s *toolgroups.Snapshot, b toolgroups.PinnedSet) int {
	ids, seen := b.Set.GroupIDs(), map[string]bool{}
	if b.Set.IsAll() {
		ids = s.GroupIDs()
	}
	for _, id := range ids {
		if owner := s.GroupOwner(id); !b.Set.IsAll() && owner != b.Owners[id] {
			continue
		}
		for _, h := range s.AllTools(id) {
			if b.Only == "" || h.Owner == b.Only {
				seen[ownName(h)] = true
			}
		}
	}
	return len(seen)
}

// ownName returns the name under which a tool is registered.
func ownName(h *toolgroups.ToolHandle) string {
	if h.IsAPI() {
		return h.OtherName()
	}
	return h.Definition.Name
}

// addFallbacks says which groups that stand in for a kept one would be lost.
func (l *SetLint) addFallbacks(s *toolgroups.Snapshot) {
	for i, g := range l.Groups {
		info, ok := s.LookupGroup(g.ID)
		if !ok || !g.Kept {
			continue
		}
		for _, id := range info.Fallback {
			if l.Held.Has(id) && !l.Kept.Has(id) {
				l.Groups[i].Fallbacks = append(l.Groups[i].Fallbacks, id)
			}
		}
	}
}
