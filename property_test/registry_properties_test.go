package property_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/tool"
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
				err = d.TryRegister(t, anyGroup(t), reached)
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
		if _, err := d.Register(g); err != nil {
			return d, err
		}
		if err := d.CheckContains(g); err != nil {
			return d, err
		}
	}
	return d, nil
}

// tryRegister registers a group, in one of four cases with a tool that has the name of
// a built-in tool.
func (m *checkedManager) TryRegister(t *proptest.Choices, g groupSpec, reached situations) error {
	if t.OneIn(4) {
		g.Tools = append(g.Tools, toolSpec{Name: proptest.PickFrom(t, builtinNames()...)})
		reached["has the name of a built-in tool"]++
	}
	before := m.CurrentSnapshot()
	code, err := m.Register(g)
	switch {
	case err != nil:
		return err
	case code == "":
		reached["registered"]++
		return m.CheckContains(g)
	case m.CurrentSnapshot() != before:
		return fmt.Errorf("registration of %+v was rejected with %s and changed the registry", g, code)
	}
	reached["rejected: "+string(code)]++
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
				err = d.TryUnregister(proptest.PickFrom(t, d.Naive.Groups...), reached)
			}
		}
		return err
	})
	reached.check(t, "unregistered", "rejected: cannot_unregister_reserved")
}

// tryUnregister unregisters a group that is registered. A built-in group stays.
func (m *checkedManager) TryUnregister(g groupSpec, reached situations) error {
	code, err := m.Unregister(g.Owner, g.ID)
	switch {
	case err != nil:
		return err
	case code != "":
		reached["rejected: "+string(code)]++
		return m.CheckContains(g)
	}
	reached["unregistered"]++
	return m.CheckRemoved(g)
}

// 属性 3：保留标识符冲突检测. 对于任意尝试使用保留标识符注册工具组的操作，工具组管理器应拒绝注册并返回错误。
//
// Property 3, reserved id conflict: the manager rejects any attempt to register a
// group with a reserved id with the error reserved_group_id. It does not matter
// whether the built-in group is registered already. A reserved id cannot be
// unregistered. The program registers exactly the groups and tools of
// builtinTools, and no other owner can register a tool with the name of one of
// them.
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
			if err := errors.Join(d.CheckReserved(g, id), empty.CheckReserved(g, id), d.CheckBuiltinName(g, name), d.CheckReadSuffix(g)); err != nil {
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
		if err == nil && t.OneIn(2) { // random groups rarely have children
			_, err = d.Register(groupSpec{ID: groupIDs[0], Owner: owners[0], Children: ids{groupIDs[1]}})
			if err == nil {
				_, err = d.Register(groupSpec{ID: groupIDs[1], Owner: owners[0], Tools: []toolSpec{{Name: toolNames[0], Effect: tool.ReadOnly}, {Name: toolNames[1]}}})
			}
		}
		for err == nil && !t.IsEmpty() {
			if err = d.step(t); err == nil {
				err = d.checkDefinitions(someOf(t, 9, slices.Concat(groupIDs, builtinIDs(), withReads(groupIDs), ids{"workspace:read", "unknown:read", "unknown"})), reached)
			}
		}
		return err
	})
	want := []string{"none", "few definitions", "more than ten definitions", "with a group that has children", "with a smaller read part", "with a read part that has children"}
	for _, id := range builtinIDs() {
		want = append(want, "with "+string(id), "without "+string(id))
	}
	reached.check(t, want...)
}

// checkDefinitions compares the definitions of a list of groups, in the registry and
// in a View, with the naive registry.
func (m *checkedManager) checkDefinitions(list ids, reached situations) error {
	if err := m.CheckDefinitions(list, states, slices.Concat(countedNames, invalidNames)); err != nil {
		return err
	}
	want := m.Naive.Definitions(list...)
	if slices.ContainsFunc(list, func(id toolgroups.GroupID) bool { return len(m.Naive.Descendants(id)) > 0 }) {
		reached["with a group that has children"]++
	}
	for _, id := range list {
		whole, reads := grouptest.Whole(id)
		part := len(m.Naive.Part(id))
		if reads && part > 0 && part < len(m.Naive.Part(whole)) {
			reached["with a smaller read part"]++
		}
		if reads && part > 0 && len(m.Naive.Descendants(whole)) > 0 {
			reached["with a read part that has children"]++
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
				err = d.CheckQueries()
			}
		}
		return err
	})
}
