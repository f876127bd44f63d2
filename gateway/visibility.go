package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// visibility filters the registry for the sender of a request: the operator
// sees everything, a caller what its role has. The zero visibility shows
// nothing.
type visibility struct {
	org      *org.Org
	snapshot *toolgroups.Snapshot
	all      bool
	caller   identity.Principal
	role     org.Role         // the caller's role
	view     *toolgroups.View // the tools of the caller's role
}

// visibilityFor returns the visibility for the sender of a request.
func (a *api) visibilityFor(r *http.Request) visibility {
	v := visibility{org: a.org(), snapshot: a.snapshot(), view: new(toolgroups.View)}
	switch p := auth.SenderOf(r); p.Kind {
	case identity.Operator:
		v.all = true
	case identity.Caller:
		if role, ok := a.org().RoleByID(p.Role); ok && role.Status == org.Active {
			return a.visibilityOf(p, role)
		}
	}
	return v
}

// followVisibility returns a function for a stream. It returns the current visibility for the sender
// of a request, and computes it only after a change of roles or groups. One goroutine may use it.
func (a *api) followVisibility(r *http.Request) func() visibility {
	epoch := a.org().CurrentEpoch()
	v := a.visibilityFor(r)
	return func() visibility {
		if now := a.org().CurrentEpoch(); now != epoch {
			epoch, v = now, a.visibilityFor(r)
		}
		return v
	}
}

// visibilityOf returns what a caller in an active role sees.
func (a *api) visibilityOf(caller identity.Principal, role org.Role) visibility {
	return visibility{org: a.org(), snapshot: a.snapshot(), caller: caller, role: role, view: a.org().CallerRoleView(caller, toolgroups.AllGroups())}
}

// has reports whether the sender sees a tool.
func (v visibility) has(h *toolgroups.ToolHandle) bool { return v.all || v.view.HasTool(h) }

// tool returns a visible tool.
func (v visibility) tool(name string) (*toolgroups.ToolHandle, bool) {
	h, ok := v.snapshot.LookupTool(name)
	return h, ok && v.has(h)
}

// tools returns the visible tools, sorted by name.
func (v visibility) tools() []*toolgroups.ToolHandle {
	list := slices.DeleteFunc(v.snapshot.ListTools(), func(h *toolgroups.ToolHandle) bool { return !v.has(h) })
	if v.all {
		return list
	}
	for _, name := range v.view.ToolNames() { // tools of groups server/api are in no other list
		if h, ok := v.tool(name); ok && h.IsAPI() {
			list = append(list, h)
		}
	}
	return sortTools(list)
}

// toolsOf returns the tools of a visible group, sorted by name.
func (v visibility) toolsOf(group toolgroups.GroupInfo) (list []*toolgroups.ToolHandle) {
	for _, name := range group.Tools {
		if h, ok := v.tool(name); ok {
			list = append(list, h)
		}
	}
	return sortTools(list)
}

// toolsIn returns the visible tools of a visible group, or of all for "", sorted by name.
func (v visibility) toolsIn(id string) ([]*toolgroups.ToolHandle, error) {
	if id == "" {
		return v.tools(), nil
	}
	group, ok := v.group(toolgroups.GroupID(id))
	if !ok {
		return nil, v.groupNotFound(id)
	}
	return v.toolsOf(group), nil
}

// sortTools sorts tools by name.
func sortTools(list []*toolgroups.ToolHandle) []*toolgroups.ToolHandle {
	slices.SortFunc(list, func(x, y *toolgroups.ToolHandle) int { return strings.Compare(x.Definition.Name, y.Definition.Name) })
	return list
}

// group returns a group with its visible tools. It reports false if no tool of
// it is visible, or the role does not use the group.
func (v visibility) group(id toolgroups.GroupID) (toolgroups.GroupInfo, bool) {
	info, ok := v.snapshot.LookupGroup(id)
	info.Children, info.Fallback = v.shown(info.Children), v.shown(info.Fallback)
	if !ok || v.all {
		return info, ok
	}
	if !v.org.CallerHasGroup(v.caller, id) {
		return toolgroups.GroupInfo{}, false
	}
	info.Tools = slices.DeleteFunc(slices.Clone(info.Tools), func(name string) bool {
		_, visible := v.tool(name)
		return !visible
	})
	info.Count = len(info.Tools)
	return info, info.Count > 0
}

// shown returns the groups of a list that the sender sees. These are registered groups. A caller
// sees the groups that its role has with a visible tool.
func (v visibility) shown(list []toolgroups.GroupID) []toolgroups.GroupID {
	return slices.DeleteFunc(slices.Clone(list), func(id toolgroups.GroupID) bool {
		info, ok := v.snapshot.LookupGroup(id)
		if !ok || v.all {
			return !ok
		}
		visible := func(name string) bool { _, ok := v.tool(name); return ok }
		return !v.org.RoleHasGroup(v.role.ID, id) || !slices.ContainsFunc(info.Tools, visible)
	})
}

// groups returns the visible groups, sorted by id.
func (v visibility) groups() []toolgroups.GroupInfo {
	var list []toolgroups.GroupInfo
	for _, g := range v.snapshot.ListGroups() {
		id, ok := toolgroups.WholeOrRead(g.ID, func(part toolgroups.GroupID) bool { _, ok := v.group(part); return ok })
		if ok {
			group, _ := v.group(id)
			list = append(list, group)
		}
	}
	if v.all {
		return list
	}
	for _, id := range v.role.Use.GroupIDs() { // groups server/api are in no other list
		group, ok := v.group(id)
		if ok && !slices.ContainsFunc(list, func(g toolgroups.GroupInfo) bool { return g.ID == id }) {
			list = append(list, group)
		}
	}
	slices.SortFunc(list, func(x, y toolgroups.GroupInfo) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return list
}

// filter removes the groups that are not visible from a set.
func (v visibility) filter(set *toolgroups.GroupSet) *toolgroups.GroupSet {
	if set == nil || set.IsAll() || v.all {
		return set
	}
	filtered := toolgroups.SetOf(slices.DeleteFunc(set.GroupIDs(), func(id toolgroups.GroupID) bool {
		_, visible := v.group(id)
		return !visible
	})...)
	return &filtered
}

// groupOf returns the group in which a tool is shown. The operator sees the tool's own group. A
// caller sees the group through which its role has the tool.
func (v visibility) groupOf(h *toolgroups.ToolHandle) toolgroups.GroupID {
	if v.all {
		return h.Group
	}
	return v.view.GrantingGroup(h)
}

// wireTool converts a tool for the sender. A caller that has it through another group
// than its own is shown that group and its owner.
func (v visibility) wireTool(h *toolgroups.ToolHandle) wire.Tool {
	out := toolOf(h)
	out.Group, out.Owner = v.shownIn(h)
	return out
}

// shownIn returns the group in which a tool is shown, and its owner.
func (v visibility) shownIn(h *toolgroups.ToolHandle) (group toolgroups.GroupID, owner toolgroups.GroupOwner) {
	if group = v.groupOf(h); group == h.Group {
		return group, h.Owner
	}
	return group, v.snapshot.GroupOwner(group)
}

// serverOf returns the owner of a visible tool as it is shown; "" for any other name.
func (v visibility) serverOf(name string) string {
	h, visible := v.tool(name)
	if !visible {
		return ""
	}
	_, owner := v.shownIn(h)
	return string(owner)
}

// maxKnownStates limits the states that an error lists.
const maxKnownStates = 20

// checkState returns an error for a workflow state that no visible tool names. A tool names the
// states in which it is offered, and the state that it leads to. "" means no state.
func (v visibility) checkState(state string) error {
	if state == "" {
		return nil
	}
	known := map[string]bool{toolgroups.UndefinedState: true}
	for _, h := range v.tools() {
		for _, name := range append(slices.Clone(h.Definition.States), h.Definition.State) {
			known[name] = name != "" && name != "*"
		}
	}
	if known[state] {
		return nil
	}
	maps.DeleteFunc(known, func(_ string, names bool) bool { return !names })
	list := slices.Sorted(maps.Keys(known))
	text := withSuggestion(fmt.Sprintf("no tool names the workflow state %q", state), state, list)
	if more := len(list) - maxKnownStates; more > 0 {
		list = append(list[:maxKnownStates], fmt.Sprintf("%d more", more))
	}
	return errcode.New(errcode.InvalidArguments, "%s", textutil.AddHint(text, "known: "+strings.Join(list, ", "))).With("field", "state")
}

// checkGroups returns the error for the first of the groups that does not exist. A nil set
// has none.
func (v visibility) checkGroups(set *toolgroups.GroupSet) error {
	if set == nil || set.IsAll() {
		return nil
	}
	for _, id := range set.GroupIDs() {
		if _, ok := v.group(id); !ok && v.snapshot.KnownOwner(id) == "" {
			return v.groupNotFound(string(id))
		}
	}
	return nil
}
