package property_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
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
	flags.Check(t, proptest.Size{Choices: 200}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		for !t.Done() {
			if t.Chance(4) {
				if err := d.step(t); err != nil {
					return err
				}
			}
			g, before := anyGroup(t), d.Snapshot()
			code, err := d.register(g)
			if err != nil {
				return err
			}
			if code != "" {
				if d.Snapshot() != before {
					return fmt.Errorf("registration of %+v was rejected with %s and changed the registry", g, code)
				}
				continue
			}
			if err := d.checkContains(g); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkContains returns an error unless a registered group is complete.
func (m *checkedManager) checkContains(g groupSpec) error {
	s := m.Snapshot()
	if info, ok := s.Group(g.id); !ok || info.Owner != g.owner || !slices.Contains(s.GroupIDs(), g.id) {
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
	flags.Check(t, proptest.Size{Choices: 200}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		for !t.Done() {
			if err := d.step(t); err != nil {
				return err
			}
			if len(d.naive.groups) == 0 || t.Chance(3) {
				continue
			}
			gone := proptest.OneOf(t, d.naive.groups...)
			if _, err := d.unregister(gone.owner, gone.id); err != nil {
				return err
			}
			if err := d.checkRemoved(gone); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkRemoved returns an error if something of an unregistered group remains.
func (m *checkedManager) checkRemoved(g groupSpec) error {
	s := m.Snapshot()
	if info, ok := s.Group(g.id); ok || s.GroupOwner(g.id) != "" || slices.Contains(s.GroupIDs(), g.id) {
		return fmt.Errorf("group %s was unregistered; the manager has %+v", g.id, info)
	}
	for _, tool := range g.tools {
		if id, ok := s.GroupOf(tool.name); ok {
			return fmt.Errorf("group %s was unregistered; GroupOf finds its tool %s in %s", g.id, tool.name, id)
		}
		if s.InGroups(tool.name, append(groupIDs, g.id)...) {
			return fmt.Errorf("group %s was unregistered; InGroups finds its tool %s", g.id, tool.name)
		}
	}
	return nil
}

// 属性 3：保留标识符冲突检测. 对于任意尝试使用保留标识符注册工具组的操作，工具组管理器应拒绝注册并返回错误。
//
// Property 3, reserved id conflict: the manager rejects any attempt to register a
// group with a reserved id with the error reserved_group_id, whether or not the
// built-in group is registered already. A reserved id cannot be unregistered.
func TestProperty3ReservedIDConflict(t *testing.T) {
	flags.Check(t, proptest.Size{Choices: 60}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		for !t.Done() {
			id := proptest.OneOf(t, toolgroups.ReservedIDs()...)
			if t.Chance(3) {
				if _, err := d.register(groupSpec{id: id, owner: toolgroups.Builtin}); err != nil {
					return err
				}
			}
			g, before := anyGroup(t), d.Snapshot()
			g.id = id
			if _, err := d.RegisterGroup(g.owner, g.group(d.runs)); errcode.CodeOf(err) != errcode.ReservedGroupID {
				return fmt.Errorf("register the reserved id %s for %s: %v, want reserved_group_id", id, g.owner, err)
			}
			if err := d.UnregisterGroup(g.owner, id); errcode.CodeOf(err) != errcode.CannotUnregisterReserved {
				return fmt.Errorf("unregister the reserved id %s for %s: %v, want cannot_unregister_reserved", id, g.owner, err)
			}
			if d.Snapshot() != before {
				return fmt.Errorf("a rejected registration of %s changed the registry", id)
			}
		}
		return nil
	})
}

// 属性 4：工具定义构建正确性. 对于任意岗位配置的工具组列表，getToolDefinitions 返回的工具定义应：
// 1. 只包含配置工具组中的工具；2. 不包含重复的工具定义；3. 包含配置工具组中的所有工具。
//
// Property 4, definitions correctness: for any list of groups a role has,
// getToolDefinitions (Definitions) returns 1. only tools of those groups, 2. no
// definition twice, 3. all tools of those groups. In addition, the order is that
// of the list, then of registration; unknown ids are skipped; InGroups agrees.
func TestProperty4DefinitionsCorrectness(t *testing.T) {
	flags.Check(t, proptest.Size{Choices: 200}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		for !t.Done() {
			if err := d.step(t); err != nil {
				return err
			}
			ids := append(someOf(t, 5, groupIDs), "unknown")
			s := d.Snapshot()
			got, want := definitionNames(s.Definitions(ids...)), d.naive.definitions(ids...)
			if !slices.Equal(got, want) {
				return fmt.Errorf("definitions of %v: %v, want %v", ids, got, want)
			}
			for _, name := range append(toolNames, invalidNames...) {
				if got, want := s.InGroups(name, ids...), slices.Contains(want, name); got != want {
					return fmt.Errorf("InGroups(%q, %v) is %v, Definitions implies %v", name, ids, got, want)
				}
			}
		}
		return nil
	})
}

// 属性 6：工具组查询完整性. 对于任意工具组查询操作，返回结果应包含工具组标识符、描述和正确的工具数量。
//
// Property 6, query completeness: the result of any query of groups contains id,
// description and the correct number of tools. In addition, it contains every
// group once, sorted by id; IDs is in the order of first registration.
func TestProperty6QueryCompleteness(t *testing.T) {
	flags.Check(t, proptest.Size{Choices: 200}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		for !t.Done() {
			if err := d.step(t); err != nil {
				return err
			}
			if err := d.checkQueries(); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkQueries compares the results of all queries of groups with the naive
// registry.
func (m *checkedManager) checkQueries() error {
	s := m.Snapshot()
	want := m.naive.ids()
	if got := s.GroupIDs(); !slices.Equal(got, want) {
		return fmt.Errorf("ids %v, want %v", got, want)
	}
	slices.Sort(want)
	infos := s.Groups()
	if len(infos) != len(want) {
		return fmt.Errorf("%d groups are listed, want %v", len(infos), want)
	}
	for i, info := range infos {
		g := m.naive.find(want[i])
		tools := m.naive.members(g)
		if info.ID != g.id || info.Description != g.text || info.Owner != g.owner || info.Count != len(tools) ||
			!slices.Equal(info.Tools, tools) || info.Reserved || info.RegisteredAt.IsZero() {
			return fmt.Errorf("group %d is listed as %+v, want %+v with %v", i, info, *g, tools)
		}
		if one, ok := s.Group(g.id); !ok || one.Count != len(tools) || one.Description != g.text {
			return fmt.Errorf("group %s alone is %+v, want %d tools", g.id, one, len(tools))
		}
	}
	return nil
}
