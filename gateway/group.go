package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/toolgroups"
)

// listGroups lists the visible groups, sorted by id.
func (a *api) listGroups(r *http.Request) (any, error) {
	byID := func(g toolgroups.GroupInfo) string { return string(g.ID) }
	return paginate(r, a.visibilityFor(r).groups(), byID, unchanged)
}

// showGroup answers with one visible group.
func (a *api) showGroup(r *http.Request) (any, error) {
	v, id := a.visibilityFor(r), r.PathValue("id")
	info, ok := v.group(toolgroups.GroupID(id))
	if !ok {
		return nil, v.groupNotFound(id)
	}
	return info, nil
}

// listTools lists the visible tools, or the visible tools of one group.
func (a *api) listTools(r *http.Request) (any, error) {
	v := a.visibilityFor(r)
	list, err := v.toolsIn(r.URL.Query().Get("group"))
	if err != nil {
		return nil, err
	}
	byName := func(h *toolgroups.ToolHandle) string { return h.Definition.Name }
	return paginate(r, list, byName, v.wireTool)
}

// showTool answers with one tool and its pending definition.
func (a *api) showTool(r *http.Request) (any, error) {
	v, name := a.visibilityFor(r), r.PathValue("name")
	var t wire.Tool
	h, ok := v.tool(name)
	if ok {
		t = v.wireTool(h)
	}
	t, ok, err := a.withPending(r, t, ok)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errcode.New(errcode.UnknownTool, "%s", withSuggestion("there is no tool "+name, name, v.suggestibleNames()))
	}
	return t, nil
}

// toolOf converts a registered tool for the API.
func toolOf(h *toolgroups.ToolHandle) wire.Tool {
	d := h.Definition
	return wire.Tool{
		Name: d.Name, Group: h.Group, Owner: h.Owner, Effect: d.Effect.String(), ToolFlags: wire.FlagsOf(d.Flags), Description: d.Description,
		Input: d.Input, State: d.State, States: d.States, Auth: d.Auth,
	}
}
