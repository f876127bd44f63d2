package gateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Tool is a tool as the registry has it.
type Tool struct {
	Name        string             `json:"name"`
	Group       toolgroups.GroupID `json:"group"` // that owns it
	Owner       toolgroups.Owner   `json:"owner"`
	Effect      string             `json:"effect"`
	Description string             `json:"description"`
	Input       json.RawMessage    `json:"inputSchema,omitzero"`       // absent while the tool is only in quarantine
	State       string             `json:"state,omitempty"`            // a success moves to it
	States      []string           `json:"availableInStates,omitzero"` // absent: every state
	Auth        *tool.Auth         `json:"auth,omitempty"`             // who has to vouch for the caller; absent: nobody

	*QuarantineEntry // what waits under this name; nil when nothing does. For the operator
}

func (a *api) listGroups(r *http.Request) (any, error) {
	byID := func(g toolgroups.Info) string { return string(g.ID) }
	return paginate(r, a.sight(r).groups(), byID, same)
}

func (a *api) showGroup(r *http.Request) (any, error) {
	id := r.PathValue("id")
	info, ok := a.sight(r).group(toolgroups.GroupID(id))
	if !ok {
		return nil, noGroup(id)
	}
	return info, nil
}

func noGroup(id string) error {
	return errcode.New(errcode.GroupNotFound, "there is no tool group %q", id)
}

// listTools lists all tools, or those a group holds.
func (a *api) listTools(r *http.Request) (any, error) {
	sight := a.sight(r)
	list := sight.tools()
	if id := r.URL.Query().Get("group"); id != "" {
		group, ok := sight.group(toolgroups.GroupID(id))
		if !ok {
			return nil, noGroup(id)
		}
		list = slices.DeleteFunc(list, func(h *toolgroups.Handle) bool { return !slices.Contains(group.Tools, h.Definition.Name) })
	}
	byName := func(h *toolgroups.Handle) string { return h.Definition.Name }
	return paginate(r, list, byName, sight.show)
}

func (a *api) showTool(r *http.Request) (any, error) {
	sight, name := a.sight(r), r.PathValue("name")
	var t Tool
	h, ok := sight.tool(name)
	if ok {
		t = sight.show(h)
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

func toolOf(h *toolgroups.Handle) Tool {
	d := h.Definition
	return Tool{
		Name: d.Name, Group: h.Group, Owner: h.Owner, Effect: d.Effect.String(), Description: d.Description,
		Input: d.Input, State: d.State, States: d.States, Auth: d.Auth,
	}
}
