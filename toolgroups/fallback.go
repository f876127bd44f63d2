package toolgroups

import "slices"

// MaxFallbackTools limits the tools that FallbackTools returns.
const MaxFallbackTools = 8

// FallbackTools returns the names of tools that may be called instead of h, which is
// unavailable. They are in the fallback groups of the groups that contain h. FallbackTools
// returns only tools that s allows. It uses only the fallbacks of groups that the View of s
// contains. It returns at most MaxFallbackTools names.
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
