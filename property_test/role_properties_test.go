package property_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// 属性 5：未授权工具调用拒绝. 对于任意智能体尝试调用不在其岗位配置工具组中的工具，运行时应返回包含工具名称的错误消息。
//
// Property 5, unauthorised calls are rejected: when an agent calls a tool outside
// the groups of its role, the runtime returns an error whose message contains
// the tool's name. The code is tool_not_available for a tool of another group
// and unknown_tool for one that does not exist. The handler of such a tool never
// runs; that of an allowed tool runs once.
func TestProperty5UnauthorisedCallRefused(t *testing.T) {
	dir, n, builtins := newStoreDir(t), 0, newBuiltinGroups(t)
	flags.Check(t, proptest.Size{Choices: 90}, func(t *proptest.Choices) error {
		n++
		return checkRejectedCalls(t, fmt.Sprint(dir, "/", n), builtins)
	})
}

// checkRejectedCalls runs a task whose agent calls random names, and checks
// each result.
func checkRejectedCalls(t *proptest.Choices, dir string, builtins *builtinGroups) (err error) {
	d := newCheckedManager()
	m := &callingModel{}
	store, err := persist.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, store.CheckIntegrity(context.Background()), store.Close()) }()
	rt, err := newRuntime(store, d.Manager, m)
	if err != nil {
		return err
	}
	defer rt.Close()
	d.naive.groups, err = builtins.register(d.Manager, rt)
	for i := 0; err == nil && i < 6; i++ {
		err = d.step(t)
	}
	if err != nil {
		return err
	}
	use := toolgroups.Of(someOf(t, 4, append(ids{toolgroups.Console, toolgroups.OrgManagement}, groupIDs...))...)
	task, allowed := org.TaskSpec{Caller: operator, Text: "go"}, d.naive.definitions(use.IDs()...)
	if t.Chance(5) {
		allowed = d.naive.definitions(toolgroups.OrgManagement) // what root may call
	} else {
		role, err := rt.CreateRole(context.Background(), newCall(operator), org.RoleSpec{Name: "tester", Use: &use})
		if err != nil {
			return err
		}
		task.Role = string(role.ID)
	}
	m.names = append(someOf(t, 12, append(toolNames, "read_file", "console_print", "create_role", "nowhere", "T1", "")), proptest.OneOf(t, toolNames...))
	id, err := rt.StartTask(context.Background(), task)
	if err == nil {
		_, err = rt.WaitTask(context.Background(), id)
	}
	return cmp.Or(err, d.checkAnswers(m, allowed))
}

// callingModel is a model that calls the given names with {} and then ends.
type callingModel struct {
	names   []string
	answers []model.Result
}

func (m *callingModel) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := model.Answer{Finish: model.FinishEnd, Text: "done", MessagesRead: countMessages(r)}
		if m.answers = lastResults(r); m.answers == nil {
			a.Finish = model.FinishToolCalls
			for _, name := range m.names {
				a.Calls = append(a.Calls, model.Call{Name: name, Args: []byte(`{}`)})
			}
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

// checkAnswers checks all results, and how often each handler ran.
func (m *checkedManager) checkAnswers(caller *callingModel, allowed []string) error {
	if len(caller.answers) != len(caller.names) {
		return fmt.Errorf("%d calls got %d answers", len(caller.names), len(caller.answers))
	}
	state, ran := "", map[string]int64{}
	for i, answer := range caller.answers {
		name := caller.names[i]
		tool, known := m.naive.tool(name)
		may := slices.Contains(allowed, name) && allowedInState(tool.states, state)
		if may && slices.Contains(toolNames, name) {
			ran[name]++
			state = cmp.Or(tool.moves, state)
		}
		if err := checkAnswer(answer, name, known, may); err != nil {
			return err
		}
	}
	for _, name := range toolNames {
		if got := m.runs.of(name); got != ran[name] {
			return fmt.Errorf("the handler of %s ran %d times, want %d", name, got, ran[name])
		}
	}
	return nil
}

// checkAnswer checks one result. A built-in tool that is allowed may still
// reject the arguments {}.
func checkAnswer(answer model.Result, name string, known, may bool) error {
	want := ""
	switch {
	case !known:
		want = string(errcode.UnknownTool)
	case !may:
		want = string(errcode.ToolNotAvailable)
	}
	var body struct{ Error, ToolName, Message string }
	_ = json.Unmarshal(answer.Content, &body) // a successful result need not be an object
	if may && slices.Contains(toolNames, name) == answer.IsError {
		return fmt.Errorf("%q is allowed and returned %s", name, answer.Content)
	}
	if !may && (!answer.IsError || body.Error != want || body.ToolName != name || !strings.Contains(body.Message, name)) {
		return fmt.Errorf("call of %q returned %s, want %s with the tool's name in the message", name, answer.Content, want)
	}
	return nil
}

// 属性 7：岗位工具组持久化. 对于任意岗位的工具组配置更新，保存后重新加载应得到相同的工具组配置。
//
// Property 7, the tool groups of a role persist: whatever they are set to, by
// creation or update, they are the same after saving and loading, also in a
// second instance. The record on disk has them as toolGroups.
func TestProperty7RoleToolGroupsPersist(t *testing.T) {
	dir, n := newStoreDir(t), 0
	flags.Check(t, proptest.Size{Choices: 80}, func(t *proptest.Choices) error {
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
	for err == nil && !t.Done() {
		set := toolgroups.Of(someOf(t, 5, roleGroupIDs)...)
		var role org.Role
		if len(order) == 0 || t.Chance(3) {
			role, err = f.CreateRole(context.Background(), newCall(operator), org.RoleSpec{Name: fmt.Sprint("role ", len(order)), Use: &set})
			order = append(order, role.ID)
		} else {
			role, _, err = f.UpdateRole(operator, proptest.OneOf(t, order...), org.RoleSpec{Use: &set}, false)
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
		role, _ := h.Org().Role(id)
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
// definitions of all available groups, including groups that are registered
// later, whether root or the operator created the role. Root itself sees those
// of org_management.
func TestProperty8DefaultIsEveryGroup(t *testing.T) {
	flags.Check(t, proptest.Size{Choices: 150}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		rt, err := newRuntime(newMemoryStore(), d.Manager, newScriptedModel())
		if err != nil {
			return err
		}
		defer rt.Close()
		for _, g := range builtinSpecs {
			if _, err := d.register(g); err != nil {
				return err
			}
		}
		root, agents, err := createDefaultRoles(rt)
		for err == nil && !t.Done() {
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
	task, _ := rt.Org().Task(id)
	for name, by := range map[string]identity.Principal{"one": operator, "two": identity.ByAgent(task.Top)} {
		role, err := rt.CreateRole(ctx, newCall(by), org.RoleSpec{Name: name})
		if err != nil {
			return "", nil, err
		}
		spawned, err := rt.SpawnAgent(ctx, newCall(identity.ByAgent(task.Top)), org.Spawn{Role: role.ID, Brief: taskBrief}, nil)
		if err != nil {
			return "", nil, err
		}
		agents = append(agents, spawned.ID)
	}
	return task.Top, agents, nil
}

// checkDefaults checks what agents of such roles, and root, see.
func (m *checkedManager) checkDefaults(rt *runtime.Runtime, root identity.AgentID, agents []identity.AgentID) error {
	all := slices.DeleteFunc(m.naive.names(), func(name string) bool {
		tool, _ := m.naive.tool(name)
		return !allowedInState(tool.states, "")
	})
	for _, id := range agents {
		if got := definitionNames(rt.Gate().Subject(identity.ByAgent(id)).VisibleTools()); !slices.Equal(got, all) {
			return fmt.Errorf("a role without toolGroups sees %v, want %v", got, all)
		}
	}
	want := m.naive.definitions(toolgroups.OrgManagement)
	if got := definitionNames(rt.Gate().Subject(identity.ByAgent(root)).VisibleTools()); !slices.Equal(got, want) {
		return fmt.Errorf("root sees %v, want %v", got, want)
	}
	return nil
}
