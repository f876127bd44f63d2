package property_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/toolgroups"
)

// 属性 1：工具组注册一致性. 对于任意工具组注册操作，注册成功后，工具组管理器应包含该工具组，
// 且工具组中的所有工具都应能通过 getToolGroup 方法找到其所属工具组。
//
// Property 1, registration consistency: after any registration that succeeds
// the manager contains the group, and getToolGroup (GroupOf) finds for each of
// its tools the group it belongs to. A rejected registration changes nothing.
func TestProperty1RegistrationConsistency(t *testing.T) {
	reached := situations{}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 300}, func(t *proptest.Choices) error {
		d, err := newBuiltinManager()
		for err == nil && !t.IsEmpty() {
			if t.OneIn(4) {
				err = d.step(t)
			}
			if err == nil {
				err = d.tryRegister(t, anyGroup(t), reached)
			}
		}
		return err
	})
	reached.check(t, "registered", "rejected: duplicate_group_id", "rejected: duplicate_tool_name", "has the name of a built-in tool")
}

// newBuiltinManager returns a manager that has the built-in groups.
func newBuiltinManager() (*checkedManager, error) {
	d := newCheckedManager()
	for _, g := range builtinSpecs {
		if _, err := d.register(g); err != nil {
			return d, err
		}
		if err := d.checkContains(g); err != nil {
			return d, err
		}
	}
	return d, nil
}

// tryRegister registers a group, in one of four cases with a tool that has the name of
// a built-in tool.
func (m *checkedManager) tryRegister(t *proptest.Choices, g groupSpec, reached situations) error {
	if t.OneIn(4) {
		g.tools = append(g.tools, toolSpec{name: proptest.PickFrom(t, builtinNames()...)})
		reached["has the name of a built-in tool"]++
	}
	before := m.CurrentSnapshot()
	code, err := m.register(g)
	switch {
	case err != nil:
		return err
	case code == "":
		reached["registered"]++
		return m.checkContains(g)
	case m.CurrentSnapshot() != before:
		return fmt.Errorf("registration of %+v was rejected with %s and changed the registry", g, code)
	}
	reached["rejected: "+string(code)]++
	return nil
}

// checkContains returns an error unless a registered group is complete.
func (m *checkedManager) checkContains(g groupSpec) error {
	s := m.CurrentSnapshot()
	if info, ok := s.LookupGroup(g.id); !ok || info.Owner != g.owner || !slices.Contains(s.GroupIDs(), g.id) {
		return fmt.Errorf("group %s was registered; the manager has %+v", g.id, info)
	}
	for _, tool := range g.tools {
		if id, ok := s.GroupOf(tool.name); !ok || id != g.id {
			return fmt.Errorf("tool %s of group %s: GroupOf returns %q, %v", tool.name, g.id, id, ok)
		}
	}
	return nil
}

// 属性 2：工具组注销完整性. 对于任意已注册的工具组，注销后，工具组管理器不应再包含该工具组，
// 且该工具组中的所有工具都不应再能通过 getToolGroup 方法找到。
//
// Property 2, unregistration completeness: after a registered group is
// unregistered the manager no longer contains it, and getToolGroup
// finds none of its tools.
func TestProperty2UnregistrationCompleteness(t *testing.T) {
	reached := situations{}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 300}, func(t *proptest.Choices) error {
		d, err := newBuiltinManager()
		for err == nil && !t.IsEmpty() {
			if err = d.step(t); err == nil && !t.OneIn(3) {
				err = d.tryUnregister(proptest.PickFrom(t, d.naive.groups...), reached)
			}
		}
		return err
	})
	reached.check(t, "unregistered", "rejected: cannot_unregister_reserved")
}

// tryUnregister unregisters a group that is registered. A built-in group stays.
func (m *checkedManager) tryUnregister(g groupSpec, reached situations) error {
	code, err := m.unregister(g.owner, g.id)
	switch {
	case err != nil:
		return err
	case code != "":
		reached["rejected: "+string(code)]++
		return m.checkContains(g)
	}
	reached["unregistered"]++
	return m.checkRemoved(g)
}

// checkRemoved returns an error if something of an unregistered group remains.
func (m *checkedManager) checkRemoved(g groupSpec) error {
	s := m.CurrentSnapshot()
	if info, ok := s.LookupGroup(g.id); ok || s.GroupOwner(g.id) != "" || slices.Contains(s.GroupIDs(), g.id) {
		return fmt.Errorf("group %s was unregistered; the manager has %+v", g.id, info)
	}
	for _, tool := range g.tools {
		if id, ok := s.GroupOf(tool.name); ok {
			return fmt.Errorf("group %s was unregistered; GroupOf finds its tool %s in %s", g.id, tool.name, id)
		}
		if s.InGroups(tool.name, slices.Concat(groupIDs, builtinIDs(), ids{g.id})...) {
			return fmt.Errorf("group %s was unregistered; InGroups finds its tool %s", g.id, tool.name)
		}
	}
	return nil
}

// 属性 3：保留标识符冲突检测. 对于任意尝试使用保留标识符注册工具组的操作，工具组管理器应拒绝注册并返回错误。
//
// Property 3, reserved id conflict: the manager rejects any attempt to register a
// group with a reserved id with the error reserved_group_id, whether or not the
// built-in group is registered already. A reserved id cannot be unregistered. The
// program registers exactly the groups and tools of builtinTools, and no
// other owner can register a tool with the name of one of them.
func TestProperty3ReservedIDConflict(t *testing.T) {
	builtins, reached := newBuiltinGroups(t), situations{}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 300}, func(t *proptest.Choices) error {
		d, empty := newCheckedManager(), newCheckedManager()
		for _, g := range builtins.groups {
			if _, err := grouptest.RegisterGroup(d.Manager, toolgroups.Builtin, g); err != nil {
				return err
			}
		}
		if err := d.checkBuiltinGroups(); err != nil {
			return err
		}
		for !t.IsEmpty() {
			g, id, name := anyGroup(t), proptest.PickFrom(t, builtinIDs()...), proptest.PickFrom(t, builtinNames()...)
			reached[string(id)]++
			reached[name]++
			if err := errors.Join(d.checkReserved(g, id), empty.checkReserved(g, id), d.checkBuiltinName(g, name)); err != nil {
				return err
			}
		}
		return nil
	})
	want := builtinNames()
	for _, id := range builtinIDs() {
		want = append(want, string(id))
	}
	reached.check(t, want...)
}

// checkBuiltinGroups compares the registered groups with builtinTools.
func (m *checkedManager) checkBuiltinGroups() error {
	s := m.CurrentSnapshot()
	if n := len(s.ListGroups()); n != len(builtinTools) {
		return fmt.Errorf("there are %d built-in groups, want %d", n, len(builtinTools))
	}
	for _, want := range builtinTools {
		got, ok := s.LookupGroup(want.group)
		if !ok || !slices.Equal(got.Tools, want.tools) || got.Owner != toolgroups.Builtin || !got.Reserved {
			return fmt.Errorf("the built-in group %s is %+v, want the tools %v", want.group, got, want.tools)
		}
	}
	return nil
}

// checkReserved tries to register a group with a reserved id, and to unregister it.
func (m *checkedManager) checkReserved(g groupSpec, id toolgroups.GroupID) error {
	g.id = id
	before := m.CurrentSnapshot()
	if _, err := grouptest.RegisterGroup(m.Manager, g.owner, g.group(m.runs)); errcode.CodeOf(err) != errcode.ReservedGroupID {
		return fmt.Errorf("register the reserved id %s for %s: %v, want reserved_group_id", id, g.owner, err)
	}
	for _, owner := range []toolgroups.GroupOwner{g.owner, toolgroups.Builtin} {
		if err := grouptest.UnregisterGroup(m.Manager, owner, id); errcode.CodeOf(err) != errcode.CannotUnregisterReserved {
			return fmt.Errorf("unregister the reserved id %s for %s: %v, want cannot_unregister_reserved", id, owner, err)
		}
	}
	if m.CurrentSnapshot() != before {
		return fmt.Errorf("a rejected registration of %s changed the registry", id)
	}
	return nil
}

// checkBuiltinName tries to register a group with a tool that has the name of a
// built-in tool.
func (m *checkedManager) checkBuiltinName(g groupSpec, name string) error {
	g.tools = []toolSpec{{name: name}}
	before := m.CurrentSnapshot()
	if _, err := grouptest.RegisterGroup(m.Manager, g.owner, g.group(m.runs)); errcode.CodeOf(err) != errcode.DuplicateToolName {
		return fmt.Errorf("register a tool %s of %s: %v, want duplicate_tool_name", name, g.owner, err)
	}
	if m.CurrentSnapshot() != before {
		return fmt.Errorf("a rejected registration of the tool %s changed the registry", name)
	}
	return nil
}

// 属性 4：工具定义构建正确性. 对于任意岗位配置的工具组列表，getToolDefinitions 返回的工具定义应：
// 1. 只包含配置工具组中的工具；2. 不包含重复的工具定义；3. 包含配置工具组中的所有工具。
//
// Property 4, definitions correctness: for any list of groups a role has,
// getToolDefinitions (Definitions) returns 1. only tools of those groups, 2. no
// definition twice, 3. all tools of those groups. In addition, the order is that
// of the list, then of registration; unknown ids are skipped; InGroups agrees.
func TestProperty4DefinitionsCorrectness(t *testing.T) {
	reached := situations{}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 400}, func(t *proptest.Choices) error {
		d, err := newBuiltinManager()
		for err == nil && !t.IsEmpty() {
			if err = d.step(t); err == nil {
				err = d.checkDefinitions(someOf(t, 9, slices.Concat(groupIDs, builtinIDs(), ids{"unknown"})), reached)
			}
		}
		return err
	})
	want := []string{"none", "few definitions", "more than ten definitions"}
	for _, id := range builtinIDs() {
		want = append(want, "with "+string(id), "without "+string(id))
	}
	reached.check(t, want...)
}

// checkDefinitions compares the definitions of a list of groups, in the registry and
// in a View, with the naive registry.
func (m *checkedManager) checkDefinitions(list ids, reached situations) error {
	s := m.CurrentSnapshot()
	want := m.naive.definitions(list...)
	if got := definitionNames(s.ToolDefinitions(list...)); !slices.Equal(got, want) {
		return fmt.Errorf("definitions of %v: %v, want %v", list, got, want)
	}
	view := s.Compile(s.BindSet(toolgroups.SetOf(list...)))
	for _, state := range states {
		visible := slices.DeleteFunc(slices.Clone(want), func(name string) bool {
			tool, _ := m.naive.tool(name)
			return !allowedInState(tool.states, state)
		})
		if got := definitionNames(view.ForState(state).ToolDefinitions()); !slices.Equal(got, visible) {
			return fmt.Errorf("visible definitions of %v in state %q: %v, want %v", list, state, got, visible)
		}
	}
	for _, name := range slices.Concat(countedNames, invalidNames) {
		if got, want := s.InGroups(name, list...), slices.Contains(want, name); got != want {
			return fmt.Errorf("InGroups(%q, %v) is %v, Definitions implies %v", name, list, got, want)
		}
	}
	for _, id := range builtinIDs() {
		reached[map[bool]string{true: "with ", false: "without "}[slices.Contains(list, id)]+string(id)]++
	}
	switch n := len(want); {
	case n == 0:
		reached["none"]++
	case n > 10:
		reached["more than ten definitions"]++
	default:
		reached["few definitions"]++
	}
	return nil
}

// 属性 6：工具组查询完整性. 对于任意工具组查询操作，返回结果应包含工具组标识符、描述和正确的工具数量。
//
// Property 6, query completeness: the result of any query of groups contains id,
// description and the correct number of tools. In addition, it contains every
// group once, sorted by id; IDs is in the order of first registration.
func TestProperty6QueryCompleteness(t *testing.T) {
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 200}, func(t *proptest.Choices) error {
		d, err := newBuiltinManager()
		for err == nil && !t.IsEmpty() {
			if err = d.step(t); err == nil {
				err = d.checkQueries()
			}
		}
		return err
	})
}

// checkQueries compares the results of all queries of groups with the naive
// registry.
func (m *checkedManager) checkQueries() error {
	s := m.CurrentSnapshot()
	want := m.naive.ids()
	if got := s.GroupIDs(); !slices.Equal(got, want) {
		return fmt.Errorf("ids %v, want %v", got, want)
	}
	slices.Sort(want)
	infos := s.ListGroups()
	if len(infos) != len(want) {
		return fmt.Errorf("%d groups are listed, want %v", len(infos), want)
	}
	for i, info := range infos {
		g := m.naive.find(want[i])
		tools := m.naive.members(g)
		if info.ID != g.id || info.Description != g.text || info.Owner != g.owner || info.Count != len(tools) ||
			!slices.Equal(info.Tools, tools) || info.Reserved != (g.owner == toolgroups.Builtin) || info.RegisteredAt.IsZero() {
			return fmt.Errorf("group %d is listed as %+v, want %+v with %v", i, info, *g, tools)
		}
		if one, ok := s.LookupGroup(g.id); !ok || one.Count != len(tools) || one.Description != g.text {
			return fmt.Errorf("group %s alone is %+v, want %d tools", g.id, one, len(tools))
		}
	}
	return nil
}
