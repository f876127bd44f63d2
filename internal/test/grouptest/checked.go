package grouptest

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// CheckedManager is a Manager with a naive model of it. Its checks are the properties of a
// Manager that a single state has to satisfy.
type CheckedManager struct {
	*toolgroups.Manager
	Naive Registry
	Runs  RunCounts
}

// NewCheckedManager returns an empty Manager with reserved ids, which counts the runs of the
// tools with these names.
func NewCheckedManager(reserved []toolgroups.GroupID, names ...string) *CheckedManager {
	return &CheckedManager{Manager: toolgroups.NewManager(toolgroups.ReservedIDs()...), Naive: Registry{Reserved: reserved}, Runs: NewRunCounts(names...)}
}

// Register registers a group with both, which must agree.
func (m *CheckedManager) Register(g GroupSpec) (errcode.Code, error) {
	warning, err := RegisterGroup(m.Manager, g.Owner, g.Group(m.Runs))
	code, wantWarning := m.Naive.Register(g)
	if errcode.CodeOf(err) != code || warning != wantWarning {
		return code, fmt.Errorf("register %v: %v, warning %q; want code %q, warning %q", g, err, warning, code, wantWarning)
	}
	return code, nil
}

// Unregister unregisters a group with both, which must agree.
func (m *CheckedManager) Unregister(owner toolgroups.GroupOwner, id toolgroups.GroupID) (errcode.Code, error) {
	err := UnregisterGroup(m.Manager, owner, id)
	code := m.Naive.Unregister(owner, id)
	if errcode.CodeOf(err) != code {
		return code, fmt.Errorf("unregister %s of %s: %v, want code %q", id, owner, err, code)
	}
	return code, nil
}

// CheckContains returns an error unless a registered group is complete.
func (m *CheckedManager) CheckContains(g GroupSpec) error {
	s := m.CurrentSnapshot()
	if info, ok := s.LookupGroup(g.ID); !ok || info.Owner != g.Owner || !slices.Contains(s.GroupIDs(), g.ID) {
		return fmt.Errorf("group %s was registered; the manager has %+v", g.ID, info)
	}
	for _, tool := range g.Tools {
		if id, ok := s.GroupOf(tool.Name); !ok || id != g.ID {
			return fmt.Errorf("tool %s of group %s: GroupOf returns %q, %v", tool.Name, g.ID, id, ok)
		}
	}
	return nil
}

// CheckRemoved returns an error if something of an unregistered group remains.
func (m *CheckedManager) CheckRemoved(g GroupSpec) error {
	s := m.CurrentSnapshot()
	if info, ok := s.LookupGroup(g.ID); ok || s.GroupOwner(g.ID) != "" || slices.Contains(s.GroupIDs(), g.ID) {
		return fmt.Errorf("group %s was unregistered; the manager has %+v", g.ID, info)
	}
	for _, tool := range g.Tools {
		if id, ok := s.GroupOf(tool.Name); ok {
			return fmt.Errorf("group %s was unregistered; GroupOf finds its tool %s in %s", g.ID, tool.Name, id)
		}
		if s.InGroups(tool.Name, slices.Concat(m.Naive.IDs(), m.Naive.Reserved, []toolgroups.GroupID{g.ID})...) {
			return fmt.Errorf("group %s was unregistered; InGroups finds its tool %s", g.ID, tool.Name)
		}
	}
	return nil
}

// CheckReserved tries to register a group with a reserved id, and to unregister it.
func (m *CheckedManager) CheckReserved(g GroupSpec, id toolgroups.GroupID) error {
	g.ID = id
	before := m.CurrentSnapshot()
	for _, g.ID = range []toolgroups.GroupID{id, id + "/part"} {
		if _, err := RegisterGroup(m.Manager, g.Owner, g.Group(m.Runs)); errcode.CodeOf(err) != errcode.ReservedGroupID {
			return fmt.Errorf("register the reserved id %s for %s: %v, want reserved_group_id", g.ID, g.Owner, err)
		}
	}
	for _, owner := range []toolgroups.GroupOwner{g.Owner, toolgroups.Builtin} {
		if err := UnregisterGroup(m.Manager, owner, id); errcode.CodeOf(err) != errcode.CannotUnregisterReserved {
			return fmt.Errorf("unregister the reserved id %s for %s: %v, want cannot_unregister_reserved", id, owner, err)
		}
	}
	if m.CurrentSnapshot() != before {
		return fmt.Errorf("a rejected registration of %s changed the registry", id)
	}
	return nil
}

// CheckReadSuffix tries to register groups with the ids of read parts, and groups with such
// children and fallbacks.
func (m *CheckedManager) CheckReadSuffix(g GroupSpec) error {
	g.Children, g.Tools = nil, nil
	before := m.CurrentSnapshot()
	for _, id := range []toolgroups.GroupID{g.ID + ":read", g.ID + ":read/part", ":read", g.ID + ":read:read", "a:read/b"} {
		asID, asChild, asFallback := g.Group(m.Runs), g.Group(m.Runs), g.Group(m.Runs)
		asID.ID, asChild.Children, asFallback.Fallback = id, []toolgroups.GroupID{id}, []toolgroups.GroupID{id}
		for _, one := range []toolgroups.Group{asID, asChild, asFallback} {
			for _, owner := range []toolgroups.GroupOwner{g.Owner, toolgroups.Config} {
				if _, err := RegisterGroup(m.Manager, owner, one); errcode.CodeOf(err) != errcode.InvalidGroupDef {
					return fmt.Errorf("register the group %s with the id %s for %s: %v, want invalid_group_def", g.ID, id, owner, err)
				}
			}
		}
	}
	if m.CurrentSnapshot() != before {
		return fmt.Errorf("a rejected registration of a read part of %s changed the registry", g.ID)
	}
	return nil
}

// CheckBuiltinName tries to register a group with a tool that has the name of a
// built-in tool.
func (m *CheckedManager) CheckBuiltinName(g GroupSpec, name string) error {
	g.Tools, g.Children = []ToolSpec{{Name: name}}, nil
	before := m.CurrentSnapshot()
	if _, err := RegisterGroup(m.Manager, g.Owner, g.Group(m.Runs)); errcode.CodeOf(err) != errcode.DuplicateToolName {
		return fmt.Errorf("register a tool %s of %s: %v, want duplicate_tool_name", name, g.Owner, err)
	}
	if m.CurrentSnapshot() != before {
		return fmt.Errorf("a rejected registration of the tool %s changed the registry", name)
	}
	return nil
}

// CheckQueries compares the results of all queries of groups with the naive
// registry.
func (m *CheckedManager) CheckQueries() error {
	s := m.CurrentSnapshot()
	want := m.Naive.IDs()
	if got := s.GroupIDs(); !slices.Equal(got, want) {
		return fmt.Errorf("ids %v, want %v", got, want)
	}
	slices.Sort(want)
	infos := s.ListGroups()
	if len(infos) != len(want) {
		return fmt.Errorf("%d groups are listed, want %v", len(infos), want)
	}
	for i, info := range infos {
		g := m.Naive.Find(want[i])
		tools := m.Naive.Members(g)
		if info.ID != g.ID || info.Description != g.Text || info.Owner != g.Owner || info.Count != len(tools) ||
			!slices.Equal(info.Tools, tools) || info.Reserved != (g.Owner == toolgroups.Builtin) || info.RegisteredAt.IsZero() {
			return fmt.Errorf("group %d is listed as %+v, want %v with the tools %v", i, info, *g, tools)
		}
		if one, ok := s.LookupGroup(g.ID); !ok || one.Count != len(tools) || one.Description != g.Text {
			return fmt.Errorf("group %s alone is %+v, want %d tools", g.ID, one, len(tools))
		}
	}
	return nil
}

// CheckDefinitions compares the definitions of a list of groups, in the registry and
// in a View, with the naive registry.
func (m *CheckedManager) CheckDefinitions(list []toolgroups.GroupID, states, names []string) error {
	s := m.CurrentSnapshot()
	want := m.Naive.Definitions(list...)
	if got := definitionNames(s.ToolDefinitions(list...)); !slices.Equal(got, want) {
		return fmt.Errorf("definitions of %v: %v, want %v", list, got, want)
	}
	view := s.Compile(s.PinOwners(toolgroups.SetOf(list...)))
	for _, state := range states {
		visible := slices.DeleteFunc(slices.Clone(want), func(name string) bool {
			tool, _ := m.Naive.ToolByName(name)
			return !AllowedInState(tool.States, state)
		})
		if got := definitionNames(view.ForState(state).ToolDefinitions()); !slices.Equal(got, visible) {
			return fmt.Errorf("visible definitions of %v in state %q: %v, want %v", list, state, got, visible)
		}
	}
	for _, name := range names {
		if got, want := s.InGroups(name, list...), slices.Contains(want, name); got != want {
			return fmt.Errorf("InGroups(%q, %v) is %v, Definitions implies %v", name, list, got, want)
		}
	}
	return nil
}

// CheckVisible returns an error unless the tools that a role with these groups sees are those
// that it may call, in each of the states. names are further names to try.
func (m *CheckedManager) CheckVisible(list []toolgroups.GroupID, states, names []string) error {
	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf(list...)))
	for _, state := range states {
		in := view.ForState(state)
		for _, name := range slices.Concat(m.Naive.Names(), names) {
			visible := slices.Contains(in.ToolNames(), name)
			handle, ok := s.LookupTool(name)
			if callable := ok && in.EvaluateTool(handle).Rule == toolgroups.Granted; callable != visible {
				return fmt.Errorf("tool %q with the groups %v in state %q: visible %v, callable %v", name, list, state, visible, callable)
			}
		}
	}
	return nil
}

func definitionNames(list []tool.Definition) []string {
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	return names
}

// AllowedInState reports whether a tool with the given states can be called in
// a state.
func AllowedInState(states []string, state string) bool {
	if state == "" {
		state = toolgroups.UndefinedState
	}
	return states == nil || slices.Contains(states, "*") || slices.Contains(states, state)
}
