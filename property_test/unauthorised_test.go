package property_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
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
// the tool's name. The code is tool_not_available for a tool of another group or
// another workflow state, and unknown_tool for one that does not exist; a
// tool-gated agent is told tool_not_available for both. The handler of such a tool
// never runs; that of an allowed tool runs once.
func TestProperty5UnauthorisedCallRefused(t *testing.T) {
	dir, n, reached := newStoreDir(t), 0, situations{}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 500, MinChoices: 300, CaseFactor: 3}, func(t *proptest.Choices) error {
		n++
		return checkRejectedCalls(t, fmt.Sprint(dir, "/", n), reached)
	})
	want := []string{
		"root: allowed", "root: denied", "role: allowed", "role: denied", "tool-gated: allowed", "tool-gated: denied", "tool-gated without tools",
		"no such tool", "another state", "after a transition", "second answer", "role restricted to a server", "task narrowed to groups",
	}
	for _, g := range builtinTools {
		want = append(want, string(g.group)+": allowed", string(g.group)+": denied")
	}
	reached.check(t, want...)
}

// checkRejectedCalls runs a task whose first agent calls random names, and checks
// each result.
func checkRejectedCalls(t *proptest.Choices, dir string, reached situations) (err error) {
	store, err := persist.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, store.CheckIntegrity(context.Background()), store.Close()) }()
	c, err := newCallCase(t, store, reached)
	if c == nil {
		return err
	}
	defer c.rt.Close()
	task, err := c.chooseAgent(t)
	if err != nil {
		return err
	}
	c.chooseCalls(t)
	id, err := c.rt.StartTask(context.Background(), task)
	if err != nil {
		return err
	}
	ended, err := c.rt.WaitTask(context.Background(), id)
	return cmp.Or(err, c.checkTask(ended))
}

// callCase is an organization with an agent whose calls are checked.
type callCase struct {
	*checkedManager
	*callingModel
	rt      *runtime.Runtime
	oracle  *oracle
	agent   *agent
	reached situations
}

// newCallCase registers the built-in groups, whose tools have random effects, and
// random groups of modules. Without a runtime it returns nil.
func newCallCase(t *proptest.Choices, store *persist.Store, reached situations) (*callCase, error) {
	c := &callCase{checkedManager: newCheckedManager(), callingModel: &callingModel{}, reached: reached}
	c.oracle = newOracle(&c.Naive)
	var err error
	if c.rt, err = newRuntime(store, c.Manager, c.callingModel); err != nil {
		return nil, err
	}
	for _, g := range newBuiltinSpecs() {
		for i := range g.Tools {
			g.Tools[i].Effect = proptest.PickFrom(t, effects...)
		}
		if _, err := c.Register(g); err != nil {
			return c, err
		}
	}
	for range 1 + t.Pick(6) {
		if err := c.step(t); err != nil {
			return c, err
		}
	}
	return c, nil
}

// chooseAgent returns a task for root, or for a new role.
func (c *callCase) chooseAgent(t *proptest.Choices) (org.TaskSpec, error) {
	task := org.TaskSpec{Caller: operator, Text: "go", State: proptest.PickFrom(t, states...)}
	c.agent = &agent{taskGroups: allGroups, state: task.State}
	if t.OneIn(4) {
		narrow := toolgroups.SetOf(slices.DeleteFunc(idsOf(anyIDs(t)), func(id toolgroups.GroupID) bool { return id != "*" && c.Naive.OwnerOf(id) == "" })...)
		task.Groups, c.agent.taskGroups = &narrow, c.oracle.pinOwners(idsOf(narrow))
		c.reached["task narrowed to groups"]++
	}
	if t.OneIn(4) {
		return task, nil
	}
	use, made := anyIDs(t), &role{}
	spec := org.RoleSpec{Name: "tester", Use: &use, AllowUnknown: true}
	made.chooseLimits(t, &spec)
	if made.server != "" {
		c.reached["role restricted to a server"]++
	}
	got, err := c.rt.CreateRole(context.Background(), newCall(operator), spec)
	if err != nil {
		return task, err
	}
	made.use = c.oracle.pinOwners(idsOf(use))
	c.oracle.roles[got.ID], c.agent.role, task.Role = made, got.ID, string(got.ID)
	return task, nil
}

// anyIDs returns a random set of up to eight groups, one in eight times all groups.
func anyIDs(t *proptest.Choices) toolgroups.GroupSet {
	if t.OneIn(8) {
		return toolgroups.AllGroups()
	}
	return toolgroups.SetOf(someOf(t, 8, slices.Concat(builtinIDs(), groupIDs, withReads(groupIDs), ids{"workspace:read", "unknown"}))...)
}

// chooseCalls sets the calls of one or two answers. Half of them are of tools that
// the agent may call in some state.
func (c *callCase) chooseCalls(t *proptest.Choices) {
	own, all := c.oracle.effective(c.agent), slices.Concat(countedNames, invalidNames)
	c.answers = make([]answer, 1+t.Pick(2))
	for i := range c.answers {
		for range 4 + t.Pick(12) {
			name := proptest.PickFrom(t, all...)
			if len(own) > 0 && t.OneIn(2) {
				name = proptest.PickFrom(t, own...)
			}
			c.answers[i].calls = append(c.answers[i].calls, name)
		}
	}
}

// callingModel is a model that calls tools with {} in each of its answers and then
// ends.
type callingModel struct {
	answers []answer
	asked   int
}

// answer is an answer of a callingModel, and what its calls returned.
type answer struct {
	calls   []string
	results []model.CallResult
}

// Generate implements model.Model.
func (m *callingModel) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		if m.asked > 0 && m.asked <= len(m.answers) {
			m.answers[m.asked-1].results = lastResults(r)
		}
		a := model.Answer{Finish: model.FinishEnd, Text: "done", MessagesRead: countMessages(r)}
		if m.asked < len(m.answers) {
			a.Finish = model.FinishToolCalls
			for _, name := range m.answers[m.asked].calls {
				a.Calls = append(a.Calls, model.Call{Name: name, Args: []byte(`{}`)})
			}
		}
		m.asked++
		yield(model.AnswerDelta{Answer: &a}, nil)
	}
}

// checkTask checks all results in order, how often each handler ran, and the end of the
// task.
func (c *callCase) checkTask(ended org.Task) error {
	ran, start := map[string]int64{}, c.agent.state
	for i, answer := range c.answers {
		if !c.canAnswer() {
			break
		}
		var want []errcode.Code
		for _, name := range answer.calls {
			code := c.denial(name)
			c.count(name, code == "", c.agent.state != start, i)
			if tool, _ := c.Naive.ToolByName(name); code == "" {
				ran[name]++
				c.agent.state = cmp.Or(tool.Moves, c.agent.state)
			}
			want = append(want, code)
		}
		if err := c.checkAnswer(answer, want); err != nil {
			return err
		}
	}
	for _, name := range countedNames {
		if got := c.Runs.Of(name); got != ran[name] {
			return fmt.Errorf("the handler of %s ran %d times, want %d", name, got, ran[name])
		}
	}
	return c.checkEnd(ended)
}

// canAnswer reports whether the model is asked for the agent: a tool-gated agent needs
// a tool that it may call.
func (c *callCase) canAnswer() bool {
	return !c.oracle.isToolGated(c.agent) || len(c.oracle.visible(c.agent)) > 0
}

// checkAnswer checks the results of one answer. If the calls led to a state in which the
// model is not asked again, it did not see them.
func (c *callCase) checkAnswer(a answer, want []errcode.Code) error {
	if !c.canAnswer() {
		want = nil
	}
	if len(a.results) != len(want) {
		return fmt.Errorf("the calls %v got %d results, want %d", a.calls, len(a.results), len(want))
	}
	for i, code := range want {
		if err := checkResult(a.results[i], a.calls[i], code); err != nil {
			return err
		}
	}
	return nil
}

// checkEnd checks how the task ended.
func (c *callCase) checkEnd(ended org.Task) error {
	if c.canAnswer() {
		if ended.Error != nil {
			return fmt.Errorf("the task ended with %+v", ended.Error)
		}
		return nil
	}
	c.reached["tool-gated without tools"]++
	if ended.Error == nil || ended.Error.Code != errcode.NoToolsAvailable {
		return fmt.Errorf("the task of a tool-gated agent without tools ended with %+v, want no_tools_available", ended.Error)
	}
	return nil
}

// denial returns the code of a denied call, "" for an allowed one.
func (c *callCase) denial(name string) errcode.Code {
	switch _, known := c.Naive.ToolByName(name); {
	case slices.Contains(c.oracle.visible(c.agent), name):
		return ""
	case known || c.oracle.isToolGated(c.agent):
		return errcode.ToolNotAvailable
	}
	return errcode.UnknownTool
}

// checkResult checks the result of one call. A denial has a code and contains the
// name of the tool.
func checkResult(result model.CallResult, name string, want errcode.Code) error {
	if want == "" {
		if result.IsError {
			return fmt.Errorf("%q is allowed and returned %s", name, result.Content)
		}
		return nil
	}
	var body struct{ Error, ToolName, Message string }
	err := json.Unmarshal(result.Content, &body)
	if err != nil || !result.IsError || body.Error != string(want) || body.ToolName != name || !strings.Contains(body.Message, name) {
		return fmt.Errorf("call of %q returned %s, want %s with the tool's name in the message", name, result.Content, want)
	}
	return nil
}

// count counts the situations that a call was in.
func (c *callCase) count(name string, allowed, moved bool, answer int) {
	outcome := map[bool]string{true: "allowed", false: "denied"}[allowed]
	who := "role: "
	switch {
	case c.agent.role == "":
		who = "root: "
	case c.oracle.isToolGated(c.agent):
		who = "tool-gated: "
	}
	c.reached[who+outcome]++
	if g := c.Naive.GroupOfTool(name); g == nil {
		c.reached["no such tool"]++
	} else if slices.Contains(builtinIDs(), g.ID) {
		c.reached[string(g.ID)+": "+outcome]++
	}
	if !allowed && slices.Contains(c.oracle.effective(c.agent), name) {
		c.reached["another state"]++
	}
	if allowed && moved {
		c.reached["after a transition"]++
	}
	if answer > 0 {
		c.reached["second answer"]++
	}
}
