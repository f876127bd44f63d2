package gateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Tool is a registered tool, or one in quarantine.
type Tool struct {
	Name        string             `json:"name"`
	Group       toolgroups.GroupID `json:"group"` // the group that owns it
	Owner       toolgroups.Owner   `json:"owner"`
	Effect      string             `json:"effect"`
	Description string             `json:"description"`
	Input       json.RawMessage    `json:"inputSchema,omitzero"`       // absent if the tool is only in quarantine
	State       string             `json:"state,omitempty"`            // workflow state after a successful call
	States      []string           `json:"availableInStates,omitzero"` // absent: available in every state
	Auth        *tool.Auth         `json:"auth,omitempty"`             // the auth services whose tokens a call needs; absent: none

	*QuarantineEntry // a pending definition under this name, or nil; only shown to the operator
}

// listGroups lists the visible groups, sorted by id.
func (a *api) listGroups(r *http.Request) (any, error) {
	byID := func(g toolgroups.Info) string { return string(g.ID) }
	return paginate(r, a.visibilityFor(r).groups(), byID, unchanged)
}

// showGroup answers with one visible group.
func (a *api) showGroup(r *http.Request) (any, error) {
	id := r.PathValue("id")
	info, ok := a.visibilityFor(r).group(toolgroups.GroupID(id))
	if !ok {
		return nil, groupNotFound(id)
	}
	return info, nil
}

// groupNotFound returns the error for a group that does not exist or is not
// visible.
func groupNotFound(id string) error {
	return errcode.New(errcode.GroupNotFound, "there is no tool group %q", id)
}

// listTools lists the visible tools, or those of one group.
func (a *api) listTools(r *http.Request) (any, error) {
	v := a.visibilityFor(r)
	list := v.tools()
	if id := r.URL.Query().Get("group"); id != "" {
		group, ok := v.group(toolgroups.GroupID(id))
		if !ok {
			return nil, groupNotFound(id)
		}
		list = slices.DeleteFunc(list, func(h *toolgroups.Handle) bool { return !slices.Contains(group.Tools, h.Definition.Name) })
	}
	byName := func(h *toolgroups.Handle) string { return h.Definition.Name }
	return paginate(r, list, byName, v.show)
}

// showTool answers with one tool and its pending definition.
func (a *api) showTool(r *http.Request) (any, error) {
	v, name := a.visibilityFor(r), r.PathValue("name")
	var t Tool
	h, ok := v.tool(name)
	if ok {
		t = v.show(h)
	}
	t, ok, err := a.withQuarantine(r, t, ok)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errcode.New(errcode.UnknownTool, "there is no tool %s", name)
	}
	return t, nil
}

// toolOf converts a registered tool for the API.
func toolOf(h *toolgroups.Handle) Tool {
	d := h.Definition
	return Tool{
		Name: d.Name, Group: h.Group, Owner: h.Owner, Effect: d.Effect.String(), Description: d.Description,
		Input: d.Input, State: d.State, States: d.States, Auth: d.Auth,
	}
}
