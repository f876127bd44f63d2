package runtime

import (
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
)

// lintSet narrows a set of a role to what is needed, and describes its groups. calls returns the
// calls of a tool that depended on the set.
func lintSet(s *toolgroups.Snapshot, b toolgroups.BoundSet, needs toolgroups.Needs, calls func(tool string) int) SetLint {
	narrow := s.NarrowSet(b, needs)
	out := SetLint{Held: b.Set, Kept: narrow.Set, KeptTools: narrow.Tools, Exact: narrow.Exact}
	held, counted := b.Set.GroupIDs(), map[string]bool{}
	if b.Set.IsAll() {
		held = s.GroupIDs()
	}
	for _, id := range appendNewIDs(held, narrow.Set.GroupIDs()) {
		g := lintGroup(s, b, id, calls, counted)
		g.Kept = narrow.Set.Has(id)
		if b.Set.IsAll() && g.Used == 0 && !slices.Contains(narrow.Set.GroupIDs(), id) {
			out.Unused++
			continue
		}
		out.Groups = append(out.Groups, g)
	}
	out.HeldTools = len(counted)
	out.addFallbacks(s)
	return out
}

// lintGroup describes a group, and adds its tools to those that are counted.
func lintGroup(s *toolgroups.Snapshot, b toolgroups.BoundSet, id toolgroups.GroupID, calls func(tool string) int, counted map[string]bool) GroupLint {
	g := GroupLint{ID: id, Held: b.Set.Has(id)}
	owner := s.GroupOwner(id)
	if g.Away = owner == "" || g.Held && !b.Set.IsAll() && owner != b.Owners[id]; g.Away {
		return g
	}
	info, _ := s.LookupGroup(id)
	g.HasHours = info.Hours != nil
	for _, h := range s.ToolsWhenOpen(id) {
		if b.Only != "" && h.Owner != b.Only {
			continue
		}
		g.Tools++
		counted[ownName(h)] = true
		n := calls(h.Definition.Name) + calls(h.OtherName())
		if g.Calls += n; n > 0 {
			g.Used++
		}
	}
	return g
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
