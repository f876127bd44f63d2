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
	m := memberships{cfg: cfg, sets: toolsetsOf(cfg)}
	if !slices.ContainsFunc(cfg.Toolsets, func(s toolboxfile.Toolset) bool { return s.Hours != nil }) {
		return nil
	}
	for _, r := range cfg.Roles {
		ways := m.waysOf(r.ToolGroups.IDs)
		for _, set := range gatesOf(ways) {
			if what, other := m.findOpen(set, ways); what != "" {
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

// way is how a role reaches a group: itself or below another.
type way struct {
	id    toolgroups.GroupID
	gates []toolset // with hours, from the group that the role lists down to the group itself
}

// maxWays is the most ways that are looked at for one role. Hierarchies may have many more.
const maxWays = 1000

// waysOf returns the ways to the groups that a role lists and to those below them.
func (m memberships) waysOf(groups []string) (ways []way) {
	var add func(id toolgroups.GroupID, gates []toolset, depth int)
	add = func(id toolgroups.GroupID, gates []toolset, depth int) {
		set := m.sets[id]
		if set.schedule != nil {
			gates = append(slices.Clip(gates), set)
		}
		if len(ways) == maxWays || depth == toolgroups.MaxDepth {
			return
		}
		ways = append(ways, way{id, gates})
		for _, child := range set.Children {
			add(child, gates, depth+1)
		}
	}
	for _, id := range groups {
		whole, _ := toolgroups.GroupID(id).WholeGroup()
		add(whole, nil, 0)
	}
	return ways
}

// gatesOf returns the toolsets with hours on some ways, each once.
func gatesOf(ways []way) (list []toolset) {
	for _, w := range ways {
		for _, gate := range w.gates {
			if !slices.ContainsFunc(list, func(t toolset) bool { return t.ID == gate.ID }) {
				list = append(list, gate)
			}
		}
	}
	return list
}

// isClosedWith reports whether one of the gates of a way has the hours of a toolset.
func (w way) isClosedWith(set toolset) bool { return slices.ContainsFunc(w.gates, set.sameHours) }

// findOpen returns a tool that a role has through a toolset with hours. It also returns a
// group through which the role has the tool at other hours or always; "" if there is none.
func (m memberships) findOpen(set toolset, ways []way) (what string, group toolgroups.GroupID) {
	for _, closed := range ways {
		if !slices.ContainsFunc(closed.gates, func(t toolset) bool { return t.ID == set.ID }) {
			continue
		}
		for _, other := range ways {
			if other.isClosedWith(set) {
				continue
			}
			for _, one := range m.of(closed.id) {
				for _, two := range m.of(other.id) {
					if what := one.common(two); what != "" {
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

// of returns the members of a group without the members of its children.
func (m memberships) of(id toolgroups.GroupID) (list []member) {
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
		list = append(list, member{owner: modules.OwnerOf(server), tool: foreignName(m.cfg, toolboxfile.ToolID{Server: server, Tool: api})})
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

// common returns in words a tool that both have, "" if there is none.
func (m member) common(other member) string {
	switch {
	case m.owner != other.owner:
	case m.tool == "" && other.tool == "":
		return "the tools of " + strings.TrimPrefix(string(m.owner), string(modules.OwnerOf("")))
	case m.tool == "":
		return other.common(m)
	case m.tool == other.tool || other.tool == "" && !slices.Contains(other.except, m.tool):
		return "the tool " + m.tool
	}
	return ""
}
