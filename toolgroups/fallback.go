package toolgroups

import "slices"

// MaxFallbackTools limits the tools that FallbackTools returns.
const MaxFallbackTools = 8

// FallbackTools returns the names of tools that may be called instead of h, which is
// unavailable: those of the fallback groups of the groups with h. Only tools that s allows
// are among them, and only groups that its View contains have a fallback there. It returns at
// most MaxFallbackTools names.
func (s *StateView) FallbackTools(from *Snapshot, h *ToolHandle) (names []string) {
	if s.view == nil {
		return nil
	}
	for _, g := range s.view.fallbacks {
		if !slices.ContainsFunc(from.members(g), h.isSameTool) {
			continue
		}
		for _, id := range g.Fallback {
			names = s.addFallback(names, from, id, h)
		}
	}
	return names
}

// addFallback adds the tools of a fallback group that s allows, under the names by which it
// allows them.
func (s *StateView) addFallback(names []string, from *Snapshot, id GroupID, failed *ToolHandle) []string {
	g, ok := from.groups.get(string(id))
	if !ok {
		return names
	}
	for _, h := range from.members(g) {
		for _, one := range []*ToolHandle{h, h.api} {
			if len(names) < MaxFallbackTools && one != nil && !one.isSameTool(failed) && s.HasTool(one) && !slices.Contains(names, one.Definition.Name) {
				names = append(names, one.Definition.Name)
			}
		}
	}
	return names
}
