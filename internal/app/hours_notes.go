package app

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/toolgroups"
)

// hoursNotes lists the toolsets with hours whose tools a role also has through another group
// that it lists: the hours do not close such a tool for the role. Of each toolset of a role it
// names one tool.
func hoursNotes(cfg *config.Config) (list []string) {
	if cfg == nil {
		return nil
	}
	sets, sources := toolsetsOf(cfg), map[string]toolgroups.GroupID{} // groups of sources by tool
	for _, t := range cfg.Tools {
		sources[t.Name] = toolbox.GroupID(t.Source)
	}
	for _, r := range cfg.Roles {
		for _, id := range r.ToolGroups.IDs {
			set := sets[toolgroups.GroupID(id)]
			if set.schedule == nil {
				continue
			}
			if tool, other := sets.findOpen(set, r.ToolGroups.IDs, sources); tool != "" {
				list = append(list, fmt.Sprintf("role %s has the tool %s also through the group %s, so the hours of toolset %s do not close it", r.Name, tool, other, id))
			}
		}
	}
	return list
}

// findOpen returns a tool of a toolset with hours, and another of the groups that has the
// tool at other hours or always; "" if there is none.
func (t toolsets) findOpen(set toolset, groups []string, sources map[string]toolgroups.GroupID) (tool, group string) {
	for _, id := range groups {
		other := t[toolgroups.GroupID(id)]
		if other.ID == set.ID || other.schedule != nil && other.sameHours(set) {
			continue
		}
		for _, name := range set.Refs {
			if slices.Contains(other.Refs, name) || sources[name] == toolgroups.GroupID(id) {
				return name, id
			}
		}
	}
	return "", ""
}
