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
// Property 5, unauthorised calls are refused: whatever tool outside the groups
// of its role an agent tries to call, the runtime answers with an error message
// that holds the tool's name: tool_not_available for a tool known elsewhere,
// unknown_tool for one known nowhere. Its handler never runs; a tool that is
// the role's runs once.
func TestProperty5UnauthorisedCallRefused(t *testing.T) {
	dir, n, staff := scratch(t), 0, newStaff(t)
	flags.Check(t, proptest.Size{Choices: 90}, func(t *proptest.Choices) error {
		n++
		return refusals(t, fmt.Sprint(dir, "/", n), staff)
	})
}

// refusals plays a task whose agent calls random names, and looks at each answer.
func refusals(t *proptest.Choices, dir string, staff *staff) (err error) {
	d := newDesk()
	talk := &talker{}
	store, err := persist.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, store.Check(context.Background()), store.Close()) }()
	rt, err := newRuntime(store, d.Manager, talk)
	if err != nil {
		return err
	}
	defer rt.Close()
	d.naive.groups, err = staff.register(d.Manager, rt)
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
		role, err := rt.CreateRole(context.Background(), call(operator), org.RoleSpec{Name: "tester", Use: &use})
		if err != nil {
			return err
		}
		task.Role = string(role.ID)
	}
	talk.names = append(someOf(t, 12, append(toolNames, "read_file", "console_print", "create_role", "nowhere", "T1", "")), proptest.OneOf(t, toolNames...))
	id, err := rt.Start(context.Background(), task)
	if err == nil {
		_, err = rt.Wait(context.Background(), id)
	}
	return cmp.Or(err, d.checkAnswers(talk, allowed))
}

// talker is a model that calls names, each with {}, then ends.
type talker struct {
	names   []string
	answers []model.Result
}

func (m *talker) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := model.Answer{Finish: model.FinishEnd, Text: "done", MessagesRead: read(r)}
		if m.answers = results(r); m.answers == nil {
			a.Finish = model.FinishToolCalls
			for _, name := range m.names {
				a.Calls = append(a.Calls, model.Call{Name: name, Args: []byte(`{}`)})
			}
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

func (d *desk) checkAnswers(talk *talker, allowed []string) error {
	if len(talk.answers) != len(talk.names) {
		return fmt.Errorf("%d calls got %d answers", len(talk.names), len(talk.answers))
	}
	state, ran := "", map[string]int64{}
	for i, answer := range talk.answers {
		name := talk.names[i]
		tool, known := d.naive.tool(name)
		may := slices.Contains(allowed, name) && offers(tool.states, state)
		if may && slices.Contains(toolNames, name) {
			ran[name]++
			state = cmp.Or(tool.moves, state)
		}
		if err := checkAnswer(answer, name, known, may); err != nil {
			return err
		}
	}
	for _, name := range toolNames {
		if got := d.runs.of(name); got != ran[name] {
			return fmt.Errorf("the handler of %s ran %d times, want %d", name, got, ran[name])
		}
	}
	return nil
}

// checkAnswer holds one answer against what should have been decided. A
// built-in tool that is allowed may still dislike the arguments {}.
func checkAnswer(answer model.Result, name string, known, may bool) error {
	want := ""
	switch {
	case !known:
		want = string(errcode.UnknownTool)
	case !may:
		want = string(errcode.ToolNotAvailable)
	}
	var body struct{ Error, ToolName, Message string }
	_ = json.Unmarshal(answer.Content, &body) // a success may be no object
	if may && slices.Contains(toolNames, name) == answer.IsError {
		return fmt.Errorf("%q is allowed and answered %s", name, answer.Content)
	}
	if !may && (!answer.IsError || body.Error != want || body.ToolName != name || !strings.Contains(body.Message, name)) {
		return fmt.Errorf("call of %q answered %s, want %s with the tool's name in the message", name, answer.Content, want)
	}
	return nil
}

// 属性 7：岗位工具组持久化. 对于任意岗位的工具组配置更新，保存后重新加载应得到相同的工具组配置。
//
// Property 7, a role's tool groups last: whatever they are set to, at creation
// or by an update, after saving and loading again they are the same, for a
// second instance too; and the record on disk has them under the seed's name,
// toolGroups.
func TestProperty7RoleToolGroupsPersist(t *testing.T) {
	dir, n := scratch(t), 0
	flags.Check(t, proptest.Size{Choices: 80}, func(t *proptest.Choices) error {
		n++
		return roundTrip(t, fmt.Sprint(dir, "/", n))
	})
}

func roundTrip(t *proptest.Choices, dir string) error {
	house, err := openHouse(dir, newDesk().Manager)
	if err != nil {
		return err
	}
	want := map[identity.RoleID]ids{}
	var order []identity.RoleID
	for err == nil && !t.Done() {
		set := toolgroups.Of(someOf(t, 5, choices)...)
		var role org.Role
		if len(order) == 0 || t.Chance(3) {
			role, err = house.CreateRole(context.Background(), call(operator), org.RoleSpec{Name: fmt.Sprint("role ", len(order)), Use: &set})
			order = append(order, role.ID)
		} else {
			role, _, err = house.UpdateRole(operator, proptest.OneOf(t, order...), org.RoleSpec{Use: &set}, false)
		}
		want[role.ID] = listed(set)
	}
	if err = cmp.Or(err, sameRoles(house, want), house.close(true)); err != nil {
		return err
	}
	if house, err = openHouse(dir, newDesk().Manager); err != nil {
		return err
	}
	return cmp.Or(sameRoles(house, want), house.close(true))
}

// sameRoles compares roles in memory and on disk with what they should be.
func sameRoles(h *house, want map[identity.RoleID]ids) error {
	if n := len(h.Org().Roles()); n != len(want) {
		return fmt.Errorf("there are %d roles, want %d", n, len(want))
	}
	for id, use := range want {
		role, _ := h.Org().Role(id)
		record, err := h.store.Record(context.Background(), "role", string(id))
		var disk struct{ ToolGroups ids }
		if err = errors.Join(err, json.Unmarshal(record, &disk)); err != nil {
			return err
		}
		exact := string(mustJSON(append(ids{}, use...)))
		if !slices.Equal(listed(role.Use), use) || !slices.Equal(disk.ToolGroups, use) || !strings.Contains(string(record), `"toolGroups":`+exact) {
			return fmt.Errorf("role %s has %s, on disk %s; want toolGroups %s", id, role.Use, record, exact)
		}
	}
	return nil
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// 属性 8：默认工具组行为. 对于任意非 root 岗位，如果未指定 toolGroups，应返回所有可用工具组的工具定义。
//
// Property 8, the default: for any role but root's that names no toolGroups
// the tool definitions of all available groups are given, also of those that
// are registered later, whether root or the operator made the role. Root's own
// are those of org_management.
func TestProperty8DefaultIsEveryGroup(t *testing.T) {
	flags.Check(t, proptest.Size{Choices: 150}, func(t *proptest.Choices) error {
		d := newDesk()
		rt, err := newRuntime(newMemory(), d.Manager, newBrain())
		if err != nil {
			return err
		}
		defer rt.Close()
		for _, g := range builtins {
			if _, err := d.register(g); err != nil {
				return err
			}
		}
		root, agents, err := defaults(rt)
		for err == nil && !t.Done() {
			if err = d.step(t); err == nil {
				err = d.checkDefaults(rt, root, agents)
			}
		}
		return err
	})
}

// defaults makes roles without toolGroups, by root and by the operator, and an
// agent of each.
func defaults(rt *runtime.Runtime) (root identity.AgentID, agents []identity.AgentID, err error) {
	ctx := context.Background()
	id, err := rt.Start(ctx, org.TaskSpec{Caller: operator, Text: "go"})
	if err != nil {
		return "", nil, err
	}
	task, _ := rt.Org().Task(id)
	for name, by := range map[string]identity.Principal{"one": operator, "two": identity.ByAgent(task.Top)} {
		role, err := rt.CreateRole(ctx, call(by), org.RoleSpec{Name: name})
		if err != nil {
			return "", nil, err
		}
		spawned, err := rt.Spawn(ctx, call(identity.ByAgent(task.Top)), org.Spawn{Role: role.ID, Brief: brief}, nil)
		if err != nil {
			return "", nil, err
		}
		agents = append(agents, spawned.ID)
	}
	return task.Top, agents, nil
}

func (d *desk) checkDefaults(rt *runtime.Runtime, root identity.AgentID, agents []identity.AgentID) error {
	all := slices.DeleteFunc(d.naive.names(), func(name string) bool {
		tool, _ := d.naive.tool(name)
		return !offers(tool.states, "")
	})
	for _, id := range agents {
		if got := definitionNames(rt.Gate().Subject(identity.ByAgent(id)).Visible()); !slices.Equal(got, all) {
			return fmt.Errorf("a role without toolGroups sees %v, want %v", got, all)
		}
	}
	want := d.naive.definitions(toolgroups.OrgManagement)
	if got := definitionNames(rt.Gate().Subject(identity.ByAgent(root)).Visible()); !slices.Equal(got, want) {
		return fmt.Errorf("root sees %v, want %v", got, want)
	}
	return nil
}
