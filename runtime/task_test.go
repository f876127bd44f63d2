package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

func TestRuntime_TaskEndsAfterItsAgents(t *testing.T) {
	work := make(chan struct{})
	fx := openFixture(t, "", modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "worker" {
			<-work
			return endWith("worked"), nil
		}
		switch answerCount(r) {
		case 0, 1:
			return delegate(r, "worker"), nil
		}
		return endWith(fmt.Sprint("heard ", len(messages(r)))), nil // root does not wait for its worker
	}))
	id := fx.start(t, org.TaskSpec{})
	fx.waitEvent(t, func(e journal.Event) bool {
		m, ok := e.Body.(journal.MessageSent)
		return ok && m.Message.To == "user" && string(m.Message.Payload) == `{"text":"heard 1"}`
	})
	if task, _ := fx.TaskRecord(t.Context(), id); task.Status != org.Running {
		t.Errorf("root has answered, its worker has not: the task is %s", task.Status)
	}
	close(work)
	fx.wantResult(t, fx.wait(t, id), `"heard 2"`, "")
}

func TestRuntime_ResultIsUnchangedValue(t *testing.T) {
	for _, value := range []string{`null`, `""`, `0`, `false`, `{"a":[1.50]}`, `[]`} {
		fx := openFixture(t, "", answerFunc(func(model.Request) model.Answer {
			return model.Answer{Finish: model.FinishEnd, Text: "not this", Value: json.RawMessage(value)}
		}))
		fx.wantResult(t, fx.run(t, org.TaskSpec{}), value, "")
		fx.shutdown(t)
	}
}

// A message to an agent of a task that has ended is rejected, in the process that ended
// the task and in a later one.
func TestSend_AfterTaskEndIsRejected(t *testing.T) {
	for _, c := range []struct {
		name, first, status string // status of the task in the end
	}{
		{"by its result", `role("root", function* () { yield* hire("probe"); return "x"; });`, "done"},
		{"by a failure", `role("root", function* () { yield* hire("probe"); throw new Error("no"); });`, "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fastTempDir(t)
			m := newScript(t, hireHelpers+c.first+`role("worker", function* () { for (;;) yield receive(); });`)
			fx := openFixture(t, dir, m)
			id := fx.start(t, org.TaskSpec{})
			fx.wait(t, id)
			for range 2 {
				before := len(fx.events(t))
				for _, agent := range eventsOf[journal.AgentSpawned](t, fx) {
					_, err := fx.SendMessage(t.Context(), newCall(operator), string(agent.Agent), json.RawMessage(`"late"`), 0)
					if errcode.CodeOf(err) != errcode.Conflict || !strings.Contains(err.Error(), string(id)+" has ended ("+c.status+")") {
						t.Errorf("to %s: got %v, want a conflict that names the task and %q", agent.Role, err, c.status)
					}
				}
				if after := len(fx.events(t)); after != before {
					t.Errorf("%d events were recorded", after-before)
				}
				fx.shutdown(t)
				fx = openFixture(t, dir, m)
				fx.resume(t, id)
			}
		})
	}
}

func TestStart_TaskOfRoleHasNoRoot(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "lead":
			return delegate(r, "worker", "org_management")
		case r.Self.Role == "worker" && answerCount(r) < 2:
			return delegate(r, "helper", "org_management")
		case r.Self.Role == "worker":
			return waitForMessage()
		case answerCount(r) == 0:
			return callTools("send_message", obj{"to": "root", "payload": "over two heads"})
		case lastResult(r)["error"] != nil:
			return endWith(fmt.Sprint(lastResult(r)["error"]))
		}
		return waitForMessage()
	}))
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "lead", Use: groupSet("org_management")}); err != nil {
		t.Fatal(err)
	}
	task := fx.run(t, org.TaskSpec{Role: "lead"})
	fx.wantResult(t, task, `"over two heads"`, "") // "root" means the top agent of the task
	for _, a := range fx.Org().ListAgents("") {
		if a.Root {
			t.Errorf("agent %s is a root", a.ID)
		}
	}
	if _, err := fx.StartTask(t.Context(), org.TaskSpec{Role: "nobody", Caller: operator}); errcode.CodeOf(err) != errcode.RoleNotFound {
		t.Errorf("task with an unknown role: %v, want role_not_found", err)
	}
}

func TestStart_TasksHaveOwnRoots(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role == "root" {
			return delegate(r, "worker")
		}
		return model.Answer{Finish: model.FinishEnd, Value: mustJSON(r.Self.Task)}
	}))
	a, b := fx.start(t, org.TaskSpec{}), fx.start(t, org.TaskSpec{})
	fx.wantResult(t, fx.wait(t, a), fmt.Sprintf("%q", a), "")
	fx.wantResult(t, fx.wait(t, b), fmt.Sprintf("%q", b), "")
	if fx.topAgent(t, a) == fx.topAgent(t, b) {
		t.Error("both have the same root")
	}
	if roles := fx.Org().ListRoles(); len(roles) != 1 || roles[0].CreatedBy != org.CreatorRoot {
		t.Errorf("roles: %+v; want the one that both roots made", roles)
	}
}

func TestCancel_StopsActiveAgents(t *testing.T) {
	busy, stopped := make(chan struct{}), make(chan struct{})
	slow := newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(busy)
		<-ctx.Done()
		close(stopped)
		return nil, ctx.Err()
	})
	fx := fixtureConfig{tools: []tool.Tool{slow}, model: answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role == "root" {
			return delegate(r, "worker", "probe")
		}
		return callTools("slow", obj{})
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	<-busy
	if err := fx.CancelTask(t.Context(), id, "no need"); err != nil {
		t.Fatal(err)
	}
	<-stopped
	task := fx.wait(t, id)
	fx.wantResult(t, task, "", errcode.TaskCancelled)
	if task.Status != org.Cancelled || task.Error.Message != "task cancelled: no need" {
		t.Errorf("the task is %s: %s", task.Status, task.Error.Message)
	}
	fx.Close()
	end := eventsOf[journal.TaskEnded](t, fx)
	for _, e := range fx.events(t) {
		if e.Seq > end[0].Seq {
			t.Errorf("after the end: %s", mustJSON(e))
		}
	}
	if err := fx.CancelTask(t.Context(), id, "again"); err != nil {
		t.Errorf("once more: %v", err)
	}
	fx.wantResult(t, fx.wait(t, id), "", errcode.TaskCancelled)
	if n := len(bodiesOf[journal.TaskEnded](t, fx)); n != 1 {
		t.Errorf("%d results on record", n)
	}
}

func TestCancel_TaskThatIsNotRunning(t *testing.T) {
	dir := fastTempDir(t)
	free := make(chan struct{})
	fx := openFixture(t, dir, blockingRoot(free, alwaysWait))
	id := fx.start(t, org.TaskSpec{})
	fx.shutdown(t)
	fx = openFixture(t, dir, blockingRoot(free, alwaysWait))
	if err := fx.CancelTask(t.Context(), id, "parked"); err != nil {
		t.Fatal(err)
	}
	fx.resume(t, id) // stays ended
	fx.wantResult(t, fx.wait(t, id), "", errcode.TaskCancelled)
	if err := fx.CancelTask(t.Context(), "nothing", ""); errcode.CodeOf(err) != errcode.TaskNotFound {
		t.Errorf("cancel of nothing: %v, want task_not_found", err)
	}
	if err := fx.ResumeTask(t.Context(), "nothing"); errcode.CodeOf(err) != errcode.TaskNotFound {
		t.Errorf("resume of nothing: %v, want task_not_found", err)
	}
	if _, err := fx.WaitTask(t.Context(), "nothing"); errcode.CodeOf(err) != errcode.TaskNotFound {
		t.Errorf("wait for nothing: %v, want task_not_found", err)
	}
}

func TestWait_EndsWithContextOrRuntime(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	id := fx.start(t, org.TaskSpec{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fx.WaitTask(ctx, id); err != context.Canceled {
		t.Errorf("with its context ended: %v", err)
	}
	failed := make(chan error)
	go func() {
		_, err := fx.WaitTask(t.Context(), id)
		failed <- err
	}()
	fx.Close()
	if err := <-failed; err == nil {
		t.Error("Wait returned no error after Close")
	}
}

func TestStart_GroupsLimitGrantNotUseOfRoot(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role == "worker" {
			if answerCount(r) == 0 {
				return callTools("put_artifact", obj{"type": "t", "content": 1}, "console_print", obj{"text": "x"})
			}
			return model.Answer{Finish: model.FinishEnd, Value: mustJSON(append(outcomes(r)[1:], r.Tools...))}
		}
		switch answerCount(r) {
		case 0:
			return callTools(
				"create_role", obj{"name": "wide", "rolePrompt": "", "toolGroups": []string{"console"}},
				"create_role", obj{"name": "all", "rolePrompt": "", "toolGroups": []string{"*"}},
				"create_role", obj{"name": "own", "rolePrompt": "", "toolGroups": []string{"org_management"}},
				"find_role_by_name", obj{"name": "worker"})
		case 1:
			return callTools("spawn_agent_with_task", obj{"roleId": lastResult(r)["id"], "taskBrief": taskBrief(), "initialMessage": "go"})
		case 2: // the role of the operator may use more than the task
			return callTools("create_role", obj{"name": "rest", "rolePrompt": ""})
		case 3:
			return callTools("spawn_agent_with_task", obj{"roleId": lastResult(r)["id"], "taskBrief": taskBrief(), "initialMessage": "go"})
		}
		if lastReport(r) == nil {
			return waitForMessage()
		}
		return model.Answer{Finish: model.FinishEnd, Value: mustJSON(outcomes(r)[:5])}
	}))
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "worker", Use: groupSet("artifact", "console")}); err != nil {
		t.Fatal(err)
	}
	id := fx.start(t, org.TaskSpec{Groups: groupSet("artifact")})
	task := fx.wait(t, id)
	var codes []string
	if err := json.Unmarshal(task.Result, &codes); err != nil || len(codes) != 5 {
		t.Fatalf("%v %s\n%s", err, task.Result, fx.eventLog(t))
	}
	codes[3] = "" // the role that find_role_by_name returned
	want := []string{"insufficient_permissions", "insufficient_permissions", "insufficient_permissions", "", "insufficient_permissions"}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("what root may grant (-want +got):\n%s", diff)
	}
	if role, _ := fx.Org().RoleByName("rest"); !role.Use.Equal(*groupSet("artifact")) {
		t.Errorf("a role without toolGroups gets %v, want artifact", role.Use)
	}
	if got := bodiesOf[journal.TaskStarted](t, fx)[0].Groups; !cmp.Equal(got, []string{"artifact"}) {
		t.Errorf("the record says the task is narrowed to %v", got)
	}
	for _, name := range bodiesOf[journal.AgentSpawned](t, fx)[0].Tools {
		if name == "create_role" {
			return
		}
	}
	t.Error("root lost org_management")
}

func TestStart_CallerLimitsTask(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("create_role", obj{"name": "wide", "rolePrompt": "", "toolGroups": []string{"console"}}, "create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{"artifact"}})
		}
		codes := outcomes(r)
		return endWith(codes[0] + " " + fmt.Sprint(decodeObject(results(r)[1].Content)["name"]))
	}))
	role, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "guest", Use: groupSet("artifact")})
	if err != nil {
		t.Fatal(err)
	}
	guest := identity.ByCaller("ann", role.ID)
	fx.wantResult(t, fx.run(t, org.TaskSpec{Caller: guest}), `"insufficient_permissions worker"`, "")
	if _, err := fx.StartTask(t.Context(), org.TaskSpec{Caller: guest, Groups: groupSet("console")}); errcode.CodeOf(err) != errcode.InsufficientPermissions {
		t.Errorf("more groups than it has: %v", err)
	}
	if _, err := fx.StartTask(t.Context(), org.TaskSpec{}); errcode.CodeOf(err) != errcode.Unauthenticated {
		t.Errorf("a task without a caller: %v", err)
	}
	if n := len(fx.Org().ListTasks()); n != 1 {
		t.Errorf("%d tasks, want 1", n)
	}
}
