package toolgroups

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/tool"
)

// A tool of a server can be in a role in two ways. A role that lists a group of the server
// has the tool under its own name. A role that lists the id server/api has this tool
// alone, under the CallName of the id. Such an id is a group with one ToolHandle of its
// own, which is registered and removed with the group of the tool. It is found by its id
// and is in no list of groups, so AllGroups stands for the tools under their own names.
//
// Both ToolHandles are one tool. A limit that contains one of them allows the other. A
// View that has the tool under its own name does not offer it a second time.

// newAPIGroups returns the groups server/api of the tools of g.
func newAPIGroups(g *group) []*group {
	var list []*group
	server, ok := serverName(g.Owner)
	if !ok || len(g.apiNames) == 0 {
		return nil
	}
	for _, h := range g.tools {
		id := server + "/" + g.apiNames[h.Definition.Name]
		name, err := CallName(id)
		if err != nil {
			continue
		}
		api := &ToolHandle{Tool: h.Tool, Definition: h.Definition, Schema: h.Schema, Group: GroupID(id), Owner: h.Owner, original: h}
		api.Definition.Name, h.api = name, api
		info := GroupInfo{ID: GroupID(id), Description: h.Definition.Description, Owner: g.Owner, RegisteredAt: g.RegisteredAt}
		list = append(list, &group{GroupInfo: info, tools: []*ToolHandle{api}})
	}
	return list
}

// allHandles returns the tools of g and the tools of its groups server/api.
func (g *group) allHandles() []*ToolHandle {
	list := g.tools[:len(g.tools):len(g.tools)]
	for _, api := range g.apis {
		list = append(list, api.tools...)
	}
	return list
}

// registeredGroup returns the group that h is registered with.
func (h *ToolHandle) registeredGroup() GroupID {
	if h.original != nil {
		return h.original.Group
	}
	return h.Group
}

// IsAPI reports whether h is the tool of a group server/api.
func (h *ToolHandle) IsAPI() bool { return h.original != nil }

// OtherName returns the second name under which roles can have the tool: its own, or the
// CallName of its group server/api. It returns "" if there is none.
func (h *ToolHandle) OtherName() string {
	for _, other := range []*ToolHandle{h.original, h.api} {
		if other != nil {
			return other.Definition.Name
		}
	}
	return ""
}

// isSameTool reports whether h and other are one tool.
func (h *ToolHandle) isSameTool(other *ToolHandle) bool {
	return h == other || h.original == other || h.api == other
}

// dropTakenAPIs removes the groups server/api whose tool name or id is taken. names are
// the tools that tx registers.
func (tx *Tx) dropTakenAPIs(edits []*groupEdit, names map[string]*ToolHandle) {
	ids := map[GroupID]bool{}
	for _, e := range edits {
		if e.after == nil {
			continue
		}
		e.after.apis = slices.DeleteFunc(e.after.apis, func(api *group) bool {
			h := api.tools[0]
			if ids[api.ID] || tx.conflictingTool(names, h) != nil {
				h.original.api = nil
				return true
			}
			ids[api.ID], names[h.Definition.Name] = true, h
			return false
		})
	}
}

// group returns the group with an id. The id may have the form server/api, or be the id of a read
// part.
func (s *Snapshot) group(id GroupID) (*group, bool) {
	whole, reads := id.WholeGroup()
	g, ok := s.wholeGroup(whole)
	if !ok || !reads {
		return g, ok
	}
	return g.readPart(), true
}

// wholeGroup returns the group with an id, which may be of the form server/api.
func (s *Snapshot) wholeGroup(id GroupID) (*group, bool) {
	if g, ok := s.groups.get(string(id)); ok {
		return g, true
	}
	if g, ok := s.apis.get(string(id)); ok {
		return g, true
	}
	server, api, _ := strings.Cut(string(id), "/")
	home, reserved := s.servers.get(server)
	if !reserved || tool.CheckName(api) != nil {
		return nil, false
	}
	return &group{GroupInfo: GroupInfo{ID: id, Description: "A tool that the server " + server + " does not offer", Owner: home.Owner}}, true
}

// withoutAPIs returns handles without tools that it also has under their own names.
func withoutAPIs(handles []*ToolHandle) []*ToolHandle {
	if !slices.ContainsFunc(handles, (*ToolHandle).IsAPI) {
		return handles
	}
	own := make(map[*ToolHandle]bool, len(handles))
	for _, h := range handles {
		own[h] = true
	}
	return slices.DeleteFunc(handles, func(h *ToolHandle) bool { return h.IsAPI() && own[h.original] })
}
