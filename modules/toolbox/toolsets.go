package toolbox

import (
	"slices"

	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/toolgroups"
)

// BuildToolsets returns the groups, sorted by id, that refer to declared tools: the
// toolsets, and a group for each id that tools name. A toolset that a tool names as
// its group contains the tool too. Tools whose Groups are nil are in toolgroups.DefaultGroup,
// unless there is a toolset of that id. The owner toolgroups.Config registers them.
func BuildToolsets(tools []toolboxfile.DeclaredTool, sets []toolboxfile.Toolset) []toolgroups.Group {
	groups, members := map[toolgroups.GroupID]*toolgroups.Group{}, map[toolgroups.GroupID]map[string]bool{}
	for _, s := range sets {
		if s.Name == "" { // describes the default list of clients, not a group of roles
			continue
		}
		id := toolgroups.GroupID(s.Name)
		groups[id] = &toolgroups.Group{ID: id, Description: s.Description, Refs: slices.Clone(s.Tools)}
		members[id] = map[string]bool{}
		for _, name := range s.Tools {
			members[id][name] = true
		}
	}
	_, taken := groups[toolgroups.DefaultGroup]
	for _, t := range tools {
		names := t.Groups
		if names == nil && !taken {
			names = []string{string(toolgroups.DefaultGroup)}
		}
		for _, name := range names {
			if id := toolgroups.GroupID(name); !members[id][t.Name] {
				addRef(groups, id, t.Name)
			}
		}
	}
	list := make([]toolgroups.Group, 0, len(groups))
	for _, g := range groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b toolgroups.Group) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return list
}

// addRef adds a tool to a group, which it creates if necessary.
func addRef(groups map[toolgroups.GroupID]*toolgroups.Group, id toolgroups.GroupID, name string) {
	g := groups[id]
	if g == nil {
		g = &toolgroups.Group{ID: id, Description: "Declared tools of the group " + string(id)}
		groups[id] = g
	}
	g.Refs = append(g.Refs, name)
}
