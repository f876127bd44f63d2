package gateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// Tool is a tool as the registry has it.
type Tool struct {
	Name        string             `json:"name"`
	Group       toolgroups.GroupID `json:"group"` // that owns it
	Owner       toolgroups.Owner   `json:"owner"`
	Effect      string             `json:"effect"`
	Description string             `json:"description"`
	Input       json.RawMessage    `json:"inputSchema"`
	State       string             `json:"state,omitempty"`            // a success moves to it
	States      []string           `json:"availableInStates,omitzero"` // absent: every state
}

func (a *api) listGroups(r *http.Request) (any, error) {
	byID := func(g toolgroups.Info) string { return string(g.ID) }
	return paginate(r, a.snapshot().Groups(), byID, same)
}

func (a *api) showGroup(r *http.Request) (any, error) {
	id := r.PathValue("id")
	info, ok := a.snapshot().Group(toolgroups.GroupID(id))
	if !ok {
		return nil, errcode.New(errcode.GroupNotFound, "there is no tool group %q", id)
	}
	return info, nil
}

// listTools lists all tools, or those a group holds.
func (a *api) listTools(r *http.Request) (any, error) {
	snapshot := a.snapshot()
	list := snapshot.Tools()
	if group := toolgroups.GroupID(r.URL.Query().Get("group")); group != "" {
		if _, ok := snapshot.Group(group); !ok {
			return nil, errcode.New(errcode.GroupNotFound, "there is no tool group %q", group)
		}
		list = slices.DeleteFunc(list, func(h *toolgroups.Handle) bool { return !snapshot.InGroups(h.Definition.Name, group) })
	}
	byName := func(h *toolgroups.Handle) string { return h.Definition.Name }
	return paginate(r, list, byName, toolOf)
}

func (a *api) showTool(r *http.Request) (any, error) {
	name := r.PathValue("name")
	h, ok := a.snapshot().Lookup(name)
	if !ok {
		return nil, errcode.New(errcode.UnknownTool, "there is no tool %s", name)
	}
	return toolOf(h), nil
}

func toolOf(h *toolgroups.Handle) Tool {
	d := h.Definition
	return Tool{
		Name: d.Name, Group: h.Group, Owner: h.Owner, Effect: d.Effect.String(), Description: d.Description,
		Input: d.Input, State: d.State, States: d.States,
	}
}
