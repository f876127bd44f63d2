package property_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// 属性 7：岗位工具组持久化. 对于任意岗位的工具组配置更新，保存后重新加载应得到相同的工具组配置。
//
// Property 7, the tool groups of a role persist: creation or an update may
// set them to anything. They are the same after saving and loading, also in a
// second instance. The record on disk has them as toolGroups.
func TestProperty7RoleToolGroupsPersist(t *testing.T) {
	dir, n := newStoreDir(t), 0
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 80}, func(t *proptest.Choices) error {
		n++
		return saveAndReload(t, fmt.Sprint(dir, "/", n))
	})
}

// saveAndReload creates and updates roles, and compares them before and after
// reopening the store.
func saveAndReload(t *proptest.Choices, dir string) error {
	f, err := openFixture(dir, newCheckedManager().Manager)
	if err != nil {
		return err
	}
	want := map[identity.RoleID]ids{}
	var order []identity.RoleID
	for err == nil && !t.IsEmpty() {
		set := toolgroups.SetOf(someOf(t, 5, roleGroupIDs)...)
		var role org.Role
		if len(order) == 0 || t.OneIn(3) {
			role, err = f.CreateRole(context.Background(), newCall(operator), org.RoleSpec{Name: fmt.Sprint("role ", len(order)), Use: &set, AllowUnknown: true})
			order = append(order, role.ID)
		} else {
			role, _, err = f.UpdateRole(operator, proptest.PickFrom(t, order...), org.RoleSpec{Use: &set, AllowUnknown: true}, false)
		}
		want[role.ID] = idsOf(set)
	}
	if err = cmp.Or(err, checkRoles(f, want), f.close(true)); err != nil {
		return err
	}
	if f, err = openFixture(dir, newCheckedManager().Manager); err != nil {
		return err
	}
	return cmp.Or(checkRoles(f, want), f.close(true))
}

// checkRoles compares the roles in memory and on disk with the expected ones.
func checkRoles(h *fixture, want map[identity.RoleID]ids) error {
	if n := len(h.Org().ListRoles()); n != len(want) {
		return fmt.Errorf("there are %d roles, want %d", n, len(want))
	}
	for id, use := range want {
		role, _ := h.Org().RoleByID(id)
		record, err := h.store.ReadRecord(context.Background(), "role", string(id))
		var disk struct{ ToolGroups ids }
		if err = errors.Join(err, json.Unmarshal(record, &disk)); err != nil {
			return err
		}
		exact := string(mustJSON(append(ids{}, use...)))
		if !slices.Equal(idsOf(role.Use), use) || !slices.Equal(disk.ToolGroups, use) || !strings.Contains(string(record), `"toolGroups":`+exact) {
			return fmt.Errorf("role %s has %s, on disk %s; want toolGroups %s", id, role.Use, record, exact)
		}
	}
	return nil
}

// mustJSON marshals a value that can be marshalled.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// 属性 8：默认工具组行为. 对于任意非 root 岗位，如果未指定 toolGroups，应返回所有可用工具组的工具定义。
//
// Property 8, the default: an agent of any role without toolGroups sees the tool
// definitions of all available groups. It sees groups that are registered later
// too. It does not matter whether root or the operator created the role. Root
// itself sees those of org_management.
func TestProperty8DefaultIsEveryGroup(t *testing.T) {
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 150}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		rt, err := newRuntime(newMemoryStore(), d.Manager, newScriptedModel())
		if err != nil {
			return err
		}
		defer rt.Close()
		for _, g := range builtinSpecs {
			if _, err := d.Register(g); err != nil {
				return err
			}
		}
		root, agents, err := createDefaultRoles(rt)
		for err == nil && !t.IsEmpty() {
			if err = d.step(t); err == nil {
				err = d.checkDefaults(rt, root, agents)
			}
		}
		return err
	})
}

// createDefaultRoles creates roles without toolGroups, as root and as the
// operator, and an agent of each.
func createDefaultRoles(rt *runtime.Runtime) (root identity.AgentID, agents []identity.AgentID, err error) {
	ctx := context.Background()
	id, err := rt.StartTask(ctx, org.TaskSpec{Caller: operator, Text: "go"})
	if err != nil {
		return "", nil, err
	}
	task, _ := rt.Org().TaskByID(id)
	for name, by := range map[string]identity.Principal{"one": operator, "two": identity.ByAgent(task.Top)} {
		role, err := rt.CreateRole(ctx, newCall(by), org.RoleSpec{Name: name})
		if err != nil {
			return "", nil, err
		}
		spawned, err := rt.SpawnAgent(ctx, newCall(identity.ByAgent(task.Top)), org.SpawnSpec{Role: role.ID, Brief: taskBrief}, nil)
		if err != nil {
			return "", nil, err
		}
		agents = append(agents, spawned.ID)
	}
	return task.Top, agents, nil
}

// checkDefaults checks what agents of such roles, and root, see.
func (m *checkedManager) checkDefaults(rt *runtime.Runtime, root identity.AgentID, agents []identity.AgentID) error {
	all := slices.DeleteFunc(m.Naive.Names(), func(name string) bool {
		tool, _ := m.Naive.ToolByName(name)
		return !grouptest.AllowedInState(tool.States, "")
	})
	for _, id := range agents {
		if got := definitionNames(rt.Gate().Subject(identity.ByAgent(id)).VisibleTools()); !slices.Equal(got, all) {
			return fmt.Errorf("a role without toolGroups sees %v, want %v", got, all)
		}
	}
	want := m.Naive.Definitions(toolgroups.OrgManagement)
	if got := definitionNames(rt.Gate().Subject(identity.ByAgent(root)).VisibleTools()); !slices.Equal(got, want) {
		return fmt.Errorf("root sees %v, want %v", got, want)
	}
	return nil
}
