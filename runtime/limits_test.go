package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
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
	for _, answers := range []int{21, 41} { // a retry counts turns anew
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
