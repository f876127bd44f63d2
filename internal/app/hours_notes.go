package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/toolgroups"
)

// hoursNotes lists the toolsets with hours whose tools a role also has in another way. The hours do
// not close such a tool for the role. For each toolset of a role, it names one tool.
func hoursNotes(cfg *config.Config) (list []string) {
	if cfg == nil {
		return nil
	}
	if !slices.ContainsFunc(cfg.Toolsets, func(s toolboxfile.Toolset) bool { return s.Hours != nil }) {
		return nil
	}
	m := memberships{cfg: cfg, sets: toolsetsOf(cfg)}
	for _, r := range cfg.Roles {
		paths := m.pathsTo(r.ToolGroups.IDs)
		for _, set := range timedSetsOf(paths) {
			if what, other := m.findOpen(set, paths); what != "" {
				list = append(list, fmt.Sprintf("role %s has %s also through the group %s, so the hours of toolset %s do not close it", r.Name, what, other, set.ID))
			}
		}
	}
	return list
}

// memberships answers which tools the groups of a configuration have.
type memberships struct {
	cfg  *config.Config
	sets toolsets
}

// groupPath is how a role reaches a group: itself or below another.
type groupPath struct {
	id        toolgroups.GroupID
	timedSets []toolset // with hours, from the group that the role lists down to the group itself
}

// maxPaths is the most paths that are looked at for one role. Hierarchies may have many more.
const maxPaths = 1000

// pathsTo returns the paths to the groups that a role lists and to those below them.
func (m memberships) pathsTo(groups []string) (paths []groupPath) {
	var add func(id toolgroups.GroupID, timed []toolset, depth int)
	add = func(id toolgroups.GroupID, timed []toolset, depth int) {
		set := m.sets[id]
		if set.schedule != nil {
			timed = append(slices.Clip(timed), set)
		}
		if len(paths) == maxPaths || depth == toolgroups.MaxDepth {
			return
		}
		paths = append(paths, groupPath{id, timed})
		for _, child := range set.Children {
			add(child, timed, depth+1)
		}
	}
	for _, id := range groups {
		whole, _ := toolgroups.GroupID(id).WholeGroup()
		add(whole, nil, 0)
	}
	return paths
}

// timedSetsOf returns the toolsets with hours on some paths, each once.
func timedSetsOf(paths []groupPath) (list []toolset) {
	for _, p := range paths {
		for _, set := range p.timedSets {
			if !slices.ContainsFunc(list, func(t toolset) bool { return t.ID == set.ID }) {
				list = append(list, set)
			}
		}
	}
	return list
}

// isClosedWith reports whether one of the timed sets of a path has the hours of a toolset.
func (p groupPath) isClosedWith(set toolset) bool {
	return slices.ContainsFunc(p.timedSets, set.sameHours)
}

// findOpen returns a tool that a role has through a toolset with hours. It also returns a
// group through which the role has the tool at other hours or always; "" if there is none.
func (m memberships) findOpen(set toolset, paths []groupPath) (what string, group toolgroups.GroupID) {
	for _, closed := range paths {
		if !slices.ContainsFunc(closed.timedSets, func(t toolset) bool { return t.ID == set.ID }) {
			continue
		}
		for _, other := range paths {
			if other.isClosedWith(set) {
				continue
			}
			for _, one := range m.membersOf(closed.id) {
				for _, two := range m.membersOf(other.id) {
					if what := one.commonTool(two); what != "" {
						return what, other.id
					}
				}
			}
		}
	}
	return "", ""
}

// member is a tool of a group, or all tools of an owner.
type member struct {
	owner  toolgroups.GroupOwner
	tool   string   // "" for all tools of the owner
	except []string // of all tools
}

// membersOf returns the members of a group without the members of its children.
func (m memberships) membersOf(id toolgroups.GroupID) (list []member) {
	set := m.sets[id]
	for i, name := range set.Refs {
		list = append(list, member{owner: set.owners[i], tool: name})
	}
	for _, ref := range set.OwnerRefs {
		list = append(list, member{owner: ref.Owner, except: ref.Except})
	}
	for _, t := range m.cfg.Tools {
		if toolbox.GroupID(t.Source) == id {
			list = append(list, member{owner: toolOwner(t), tool: t.Name})
		}
	}
	server, api, alone := strings.Cut(string(id), "/")
	switch {
	case !m.isModule(server):
	case alone:
		list = append(list, member{owner: modules.OwnerOf(server), tool: offeredName(m.cfg, toolboxfile.ToolID{Server: server, Tool: api})})
	default:
		list = append(list, member{owner: modules.OwnerOf(server)})
	}
	return list
}

// isModule reports whether an MCP server or a module of the configuration has a name.
func (m memberships) isModule(name string) bool {
	return slices.ContainsFunc(m.cfg.MCPServers, func(s config.MCPServer) bool { return s.Name == name }) ||
		slices.ContainsFunc(m.cfg.Modules, func(s config.Module) bool { return s.Name == name })
}

// commonTool returns in words a tool that both have, "" if there is none.
func (m member) commonTool(other member) string {
	switch {
	case m.owner != other.owner:
	case m.tool == "" && other.tool == "":
		return "the tools of " + strings.TrimPrefix(string(m.owner), string(modules.OwnerOf("")))
	case m.tool == "":
		return other.commonTool(m)
	case m.tool == other.tool || other.tool == "" && !slices.Contains(other.except, m.tool):
		return "the tool " + m.tool
	}
	return ""
}
