package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// An answer with too many calls runs as many as are allowed. The model reads that the
// others were dropped. The same holds when the process crashes in between.
func TestLimits_CallsOfOneAnswer(t *testing.T) {
	ran := 0
	count := newTool(t, "count", tool.Options{}, func(context.Context, obj) (any, error) { ran++; return ran, nil })
	var read []string
	m := withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			calls := callTools("count", obj{})
			for range 49 {
				calls.Calls = append(calls.Calls, calls.Calls[0])
			}
			return calls
		}
		for _, item := range r.Items {
			if item.Result != nil {
				read = append(read, string(item.Result.Content))
			}
		}
		return endWith("done")
	}))
	fx := fixtureConfig{model: m, tools: []tool.Tool{count}}.open(t)
	if err := fx.ApplyConfig(runtime.OrgConfig{Limits: runtime.Limits{Calls: 3}}); err != nil {
		t.Fatal(err)
	}
	role, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "worker", Use: groupSet("probe")})
	if err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.run(t, org.TaskSpec{Role: string(role.ID)}), `"done"`, "")
	if ran != 3 || len(read) != 4 || !strings.Contains(read[3], string(errcode.LimitExceeded)) || !strings.Contains(read[3], "50 calls") {
		t.Errorf("%d calls ran, the model read %q; want 3 and a fourth result that names the limit", ran, read)
	}
	if denied := bodiesOf[journal.ToolError](t, fx); len(denied) != 1 || denied[0].Code != errcode.LimitExceeded {
		t.Errorf("recorded denials are %+v", denied)
	}
}

// The limits of a configuration hold from the moment it is active.
func TestLimits_ChangeWithConfiguration(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	defer close(free)
	root := identity.ByAgent(fx.topAgent(t, fx.start(t, org.TaskSpec{})))
	for _, limit := range []int{1, 2, 1} {
		if err := fx.ApplyConfig(runtime.OrgConfig{Limits: runtime.Limits{TaskLimits: org.TaskLimits{Roles: limit}}}); err != nil {
			t.Fatal(err)
		}
		var err error
		for len(fx.Org().ListRoles()) < limit && err == nil {
			_, err = fx.CreateRole(t.Context(), newCall(root), org.RoleSpec{Name: fmt.Sprint("r", len(fx.Org().ListRoles())), Use: groupSet("artifact")})
		}
		_, err = fx.CreateRole(t.Context(), newCall(root), org.RoleSpec{Name: "one more", Use: groupSet("artifact")})
		if n := len(fx.Org().ListRoles()); errcode.CodeOf(err) != errcode.LimitExceeded || n < limit || n > 2 {
			t.Errorf("with a limit of %d there are %d roles: %v", limit, n, err)
		}
	}
}

// A task whose agents have had all turns that they may fails. The turns of all agents and
// of earlier processes count.
func TestLimits_TurnsOfTask(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restarted: ", restart), func(t *testing.T) {
			dir, reached := fastTempDir(t), make(chan struct{})
			m := modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
				switch {
				case r.Self.Role == "worker":
					return endWith("worked"), nil
				case answerCount(r) < 2:
					return delegate(r, "worker"), nil
				case len(messages(r)) == 3 && restart && reached != nil:
					close(reached)
					<-ctx.Done()
					return model.Answer{}, ctx.Err()
				case lastItemIsMessage(r): // starts the worker again
					return callTools("send_message", obj{"to": decodeObject(results(r)[1].Content)["id"], "payload": "more"}), nil
				}
				return endWith("more"), nil
			})
			limits := func(c *runtime.Config) { c.Limits.Turns = 7 }
			fx := fixtureConfig{dir: dir, model: m, configure: limits}.open(t)
			id := fx.start(t, org.TaskSpec{})
			if restart {
				fx.waitReached(t, id, reached)
				fx.shutdown(t)
				reached = nil
				fx = fixtureConfig{dir: dir, model: m, configure: limits}.open(t)
				fx.resume(t, id)
			}
			task := fx.wait(t, id)
			fx.wantPaused(t, task, errcode.LimitExceeded)
			if !strings.Contains(task.Pause.Message, "at most 7 are allowed") || !strings.Contains(task.Pause.Message, "limits.turns") {
				t.Errorf("the reason is %q", task.Pause.Message)
			}
			ended := 0
			for _, a := range bodiesOf[journal.ModelAnswered](t, fx) {
				if a.Answer.Finish == model.FinishEnd {
					ended++
				}
			}
			if failed := bodiesOf[journal.TurnFailed](t, fx); ended < 7 || ended > 8 || len(failed) != 0 {
				t.Errorf("%d turns ended, failures %+v; want 7, or one more that was in progress, and no failure", ended, failed)
			}
			if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
				t.Error(err)
			}
			if left := fx.storedTurns(t); len(left) > 0 {
				t.Errorf("the count of the ended task is kept: %v", left)
			}
		})
	}
}

// lastItemIsMessage reports whether a conversation ends with a message.
func lastItemIsMessage(r model.Request) bool { return r.Items[len(r.Items)-1].Message != nil }

// storedTurns returns the recorded numbers of turns by task.
func (fx *fixture) storedTurns(t *testing.T) map[string]string {
	t.Helper()
	counts := map[string]string{}
	for r, err := range fx.store.ReadRecords(t.Context(), "turns", "") {
		if err != nil {
			t.Fatal(err)
		}
		counts[r.Key] = string(r.Value)
	}
	return counts
}

// A model that never reads its messages is asked as often as the limit allows.
func TestLimits_TurnsOfModelThatReadsNothing(t *testing.T) {
	fx := fixtureConfig{configure: func(c *runtime.Config) { c.Limits.Turns = 20 }, model: rawModel(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("send_message", obj{"to": "root", "payload": "two"})
		}
		return model.Answer{Finish: model.FinishEnd, Text: "x", MessagesRead: 1}
	})}.open(t)
	task := fx.run(t, org.TaskSpec{})
	for _, answers := range []int{21, 41} { // a retry counts turns from zero
		fx.wantPaused(t, task, errcode.LimitExceeded)
		if n := len(bodiesOf[journal.ModelAnswered](t, fx)); n != answers {
			t.Errorf("%d answers, want %d", n, answers)
		}
		if err := fx.RetryTask(t.Context(), task.ID, operator, org.ModelAllowance{}); err != nil {
			t.Fatal(err)
		}
		task = fx.wait(t, task.ID)
	}
}

// A damaged number of turns pauses the task, unless the limit is above the default.
func TestLimits_DamagedNumberOfTurns(t *testing.T) {
	for limit, want := range map[int]errcode.Code{0: errcode.LimitExceeded, 20_000: ""} {
		dir, free := fastTempDir(t), make(chan struct{})
		fx := openFixture(t, dir, blockingRoot(free, alwaysWait))
		id := fx.start(t, org.TaskSpec{})
		fx.Close()
		if _, err := fx.store.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: "turns", Key: string(id), Value: []byte("many")}}}); err != nil {
			t.Fatal(err)
		}
		fx.shutdown(t)
		close(free)
		fx = fixtureConfig{dir: dir, model: blockingRoot(free, alwaysWait), configure: func(c *runtime.Config) { c.Limits.Turns = limit }}.open(t)
		fx.resume(t, id)
		if got := fx.wait(t, id); (got.Pause == nil) != (want == "") || got.Pause != nil && got.Pause.Code != want {
			t.Errorf("limit %d: the task is %s: %v, want %q", limit, got.Status, got.Pause, want)
		}
		fx.shutdown(t)
	}
}

// A task whose models have been asked as often as they may is paused. Requests of all agents
// and of earlier processes count, failed ones too, and a retry counts from zero.
func TestLimits_RequestsOfTask(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restarted: ", restart), func(t *testing.T) {
			dir, reached, requests := fastTempDir(t), make(chan struct{}), 0
			m := withWindow(100_000, modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
				if requests == 4 && restart && reached != nil {
					close(reached)
					<-ctx.Done()
					return model.Answer{}, ctx.Err()
				}
				requests++
				return callTools("console_print", obj{"text": fmt.Sprint(requests)}), nil
			}))
			limits := func(c *runtime.Config) { c.Limits.Requests = 7 }
			fx := fixtureConfig{dir: dir, model: m, configure: limits}.open(t)
			spec := fx.roleTask(t, org.RoleSpec{Use: groupSet("console")})
			id := fx.start(t, spec)
			if restart {
				fx.waitReached(t, id, reached)
				fx.shutdown(t)
				reached = nil
				fx = fixtureConfig{dir: dir, model: m, configure: limits}.open(t)
				fx.resume(t, id)
			}
			for _, want := range []int{7, 14} {
				task := fx.wait(t, id)
				fx.wantPaused(t, task, errcode.LimitExceeded)
				if task.Pause == nil {
					return
				}
				if requests != want || !strings.Contains(task.Pause.Message, "at most 7 are allowed") || !strings.Contains(task.Pause.Message, "limits.requests") {
					t.Errorf("%d requests, and the reason is %q; want %d", requests, task.Pause.Message, want)
				}
				if err := fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{}); err != nil {
					t.Fatal(err)
				}
			}
			fx.wantPaused(t, fx.wait(t, id), errcode.LimitExceeded)
			if failed := bodiesOf[journal.TurnFailed](t, fx); len(failed) != 0 {
				t.Errorf("failures %+v", failed)
			}
		})
	}
}

// Scripts are no language models: their steps are no requests.
func TestLimits_RequestsOfScript(t *testing.T) {
	fx := fixtureConfig{configure: func(c *runtime.Config) { c.Limits.Requests = 2 }, model: answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 10 {
			return endWith("done")
		}
		return callTools("console_print", obj{"text": "x"})
	})}.open(t)
	fx.wantResult(t, fx.run(t, fx.groupTask(t, "console")), `"done"`, "")
}

// An agent may spawn as many agents as the limit says, with those that have ended. Others are
// counted on their own.
func TestLimits_HiresOfAgent(t *testing.T) {
	for _, tt := range []struct{ restart, ofRole bool }{{}, {restart: true}, {restart: true, ofRole: true}} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			restart := tt.restart
			dir, reached := fastTempDir(t), make(chan struct{})
			m := modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
				n := answerCount(r)
				switch {
				case r.Self.Role != "lead":
					return waitForMessage(), nil
				case n == 3 && restart && reached != nil:
					close(reached)
					<-ctx.Done()
					return model.Answer{}, ctx.Err()
				case n%2 == 1 && !results(r)[n-1].IsError:
					return callTools("terminate_agent", obj{"agentId": lastResult(r)["id"]}), nil
				case n < 10 && n/2%2 == 0:
					return callTools("spawn_agent", obj{"roleId": "worker", "taskBrief": taskBrief()}), nil
				case n < 10:
					return callTools("spawn_agent_with_task", obj{"roleId": "worker", "taskBrief": taskBrief(), "initialMessage": "go"}), nil
				}
				return endWith(string(results(r)[n-1].Content)), nil
			})
			limits, ofLead := func(c *runtime.Config) { c.Limits.Hires = 3 }, org.AgentLimits{}
			if tt.ofRole {
				limits, ofLead.Hires = nil, 3
			}
			fx := fixtureConfig{dir: dir, model: m, configure: limits}.open(t)
			fx.declare(t, org.RoleSpec{Name: "worker", Use: groupSet()})
			fx.declare(t, org.RoleSpec{Name: "lead", Use: groupSet("org_management"), Limits: ofLead})
			id := fx.start(t, org.TaskSpec{Role: "lead"})
			if restart {
				fx.waitReached(t, id, reached)
				fx.shutdown(t)
				reached = nil
				fx = fixtureConfig{dir: dir, model: m, configure: limits}.open(t)
				fx.resume(t, id)
			}
			task := fx.wait(t, id)
			spawned := 0
			for _, e := range bodiesOf[journal.AgentSpawned](t, fx) {
				if e.Parent != "" {
					spawned++
				}
			}
			if spawned != 3 || !strings.Contains(string(task.Result), "limit_exceeded") || !strings.Contains(string(task.Result), "one agent may spawn 3") {
				t.Errorf("%d agents were spawned, and the result is %s\n%s", spawned, task.Result, fx.eventLog(t))
			}
		})
	}
}

// The defaults, what a configuration sets, and what it turns off.
func TestLimits_OfTask(t *testing.T) {
	fx := openFixture(t, "", modelFunc(alwaysWait))
	id := fx.start(t, org.TaskSpec{Budget: org.ModelAllowance{Tokens: 1 << 40}})
	want := runtime.ActiveLimits{Budget: runtime.TaskBudget{Tokens: 5_000_000, WarnAt: 80}, Requests: 5000, Turns: 10_000, Agents: 1000, Hires: 200, Rounds: 200}
	if got := fx.LimitsOf(id); got != want {
		t.Errorf("by default %+v, want %+v", got, want)
	}
	if err := fx.ApplyConfig(runtime.OrgConfig{Rounds: 5, Limits: runtime.Limits{Requests: 6, Hires: 7, Turns: 8, TaskLimits: org.TaskLimits{Agents: 9}}, Budget: runtime.TaskBudget{Tokens: runtime.NoTokenLimit, Cost: 3}}); err != nil {
		t.Fatal(err)
	}
	want = runtime.ActiveLimits{Budget: runtime.TaskBudget{Tokens: 1 << 40, Cost: 3, WarnAt: 80}, Requests: 6, Turns: 8, Agents: 9, Hires: 7, Rounds: 5}
	if got := fx.LimitsOf(id); got != want {
		t.Errorf("configured %+v, want %+v", got, want)
	}
	want.Budget.Tokens = 0
	if got := fx.LimitsOf("unknown"); got != want {
		t.Errorf("without a limit of the task %+v, want %+v", got, want)
	}
}

// failingWorker is the model of a task whose first agent sends work to another again and
// again, of which the model fails. It reports no usage.
func failingWorker(count *atomic.Int64) model.Model {
	return withWindow(100_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		count.Add(1)
		if messages(r)[0].From != runtime.User {
			return model.Answer{}, errors.New("no network")
		}
		switch n := answerCount(r); {
		case n == 0:
			return callTools("create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{}}), nil
		case n == 1:
			return callTools("spawn_agent_with_task", obj{"roleId": lastResult(r)["id"], "taskBrief": taskBrief(), "initialMessage": "go"}), nil
		case len(results(r)) == len(messages(r)): // two results are of others: the worker has failed with each message
			return callTools("send_message", obj{"to": "worker-1", "payload": n}), nil
		default:
			return waitForMessage(), nil
		}
	}))
}

// Requests to a model without usage, answered or not, count after a crash, too. Only those in
// progress when the process is killed may be made again.
func TestLimits_RequestsSurviveKill(t *testing.T) {
	const limit, agents = 20, 2
	killed := 0
	for n := 4; n < 40; n += short.Count(9, 4) {
		var count atomic.Int64
		cfg := fixtureConfig{dir: fastTempDir(t), model: failingWorker(&count), configure: func(c *runtime.Config) { c.Limits.Requests, c.Fatal = limit, func(error) {} }}
		crashing := cfg
		crashing.wrapStore = func(s journal.Store) journal.Store { return &crashingStore{Store: s, commitsLeft: n, after: true} }
		fx := crashing.open(t)
		id, err := fx.StartTask(t.Context(), org.TaskSpec{Caller: operator})
		if err == nil {
			_, err = fx.WaitTask(t.Context(), id)
		}
		fx.shutdown(t)
		if err == nil { // it was paused before
			continue
		}
		killed++
		fx = cfg.open(t)
		task := fx.Org().ListTasks()[0]
		fx.resume(t, task.ID)
		fx.wantPaused(t, fx.wait(t, task.ID), errcode.LimitExceeded)
		if got := count.Load(); got < limit || got > limit+agents {
			t.Errorf("killed at commit %d: %d requests, want %d and at most %d more", n, got, limit, agents)
		}
		fx.shutdown(t)
	}
	if killed < 3 {
		t.Errorf("the process was killed %d times", killed)
	}
}
