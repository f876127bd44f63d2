package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

func TestATaskDoesNotEndBeforeItsAgentsAreDone(t *testing.T) {
	work := make(chan struct{})
	h := open(t, "", mind(func(_ context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "worker" {
			<-work
			return end("worked"), nil
		}
		switch answers(r) {
		case 0, 1:
			return manage(r, "worker"), nil
		}
		return end(fmt.Sprint("heard ", len(messages(r)))), nil // root does not wait
	}))
	id := h.start(t, org.TaskSpec{})
	h.until(t, func(e journal.Event) bool {
		m, ok := e.Body.(journal.MessageSent)
		return ok && m.Message.To == "user" && string(m.Message.Payload) == `{"text":"heard 1"}`
	})
	if task, _ := h.TaskRecord(t.Context(), id); task.Status != org.Running {
		t.Errorf("root has answered, its worker has not: the task is %s", task.Status)
	}
	close(work)
	h.want(t, h.wait(t, id), `"heard 2"`, "")
}

func TestAResultIsRootsLastAnswerAsItIs(t *testing.T) {
	for _, value := range []string{`null`, `""`, `0`, `false`, `{"a":[1.50]}`, `[]`} {
		h := open(t, "", brain(func(model.Request) model.Answer {
			return model.Answer{Finish: model.FinishEnd, Text: "not this", Value: json.RawMessage(value)}
		}))
		h.want(t, h.run(t, org.TaskSpec{}), value, "")
		h.leave(t)
	}
}

func TestAMessageAfterTheEndIsRecordedAndStartsNothing(t *testing.T) {
	var asked atomic.Int32
	dir := scratch(t)
	m := brain(func(r model.Request) model.Answer { asked.Add(1); return end("x") })
	h := open(t, dir, m)
	id := h.start(t, org.TaskSpec{})
	h.wait(t, id)
	h.tell(t, h.top(t, id), `"late"`)
	late := said[journal.MessageSent](t, h)
	if got := string(late[len(late)-1].Message.Payload); got != `"late"` {
		t.Errorf("the last message on record is %s", got)
	}
	h.leave(t)

	h = open(t, dir, m)
	h.resume(t, id)
	h.want(t, h.wait(t, id), `"x"`, "")
	if asked.Load() != 1 || h.Busy(h.top(t, id)) {
		t.Errorf("root was asked %d times, want once", asked.Load())
	}
}

func TestATaskBoundToARoleHasNoRoot(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "lead":
			return manage(r, "worker", "org_management")
		case r.Self.Role == "worker" && answers(r) < 2:
			return manage(r, "helper", "org_management")
		case r.Self.Role == "worker":
			return wait()
		case answers(r) == 0:
			return do("send_message", obj{"to": "root", "payload": "over two heads"})
		case last(r)["error"] != nil:
			return end(fmt.Sprint(last(r)["error"]))
		}
		return wait()
	}))
	if _, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "lead", Use: use("org_management")}); err != nil {
		t.Fatal(err)
	}
	task := h.run(t, org.TaskSpec{Role: "lead"})
	h.want(t, task, `"over two heads"`, "") // what it calls root leads the task
	for _, a := range h.Org().Agents("") {
		if a.Root {
			t.Errorf("agent %s is a root", a.ID)
		}
	}
	if _, err := h.Start(t.Context(), org.TaskSpec{Role: "nobody", Caller: operator}); errcode.Of(err) != errcode.RoleNotFound {
		t.Errorf("bound to a role nobody knows: %v, want role_not_found", err)
	}
}

func TestTwoTasksHaveTwoRoots(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if r.Self.Role == "root" {
			return manage(r, "worker")
		}
		return model.Answer{Finish: model.FinishEnd, Value: encode(r.Self.Task)}
	}))
	a, b := h.start(t, org.TaskSpec{}), h.start(t, org.TaskSpec{})
	h.want(t, h.wait(t, a), fmt.Sprintf("%q", a), "")
	h.want(t, h.wait(t, b), fmt.Sprintf("%q", b), "")
	if h.top(t, a) == h.top(t, b) {
		t.Error("both have the same root")
	}
	if roles := h.Org().Roles(); len(roles) != 1 || roles[0].CreatedBy != org.CreatorRoot {
		t.Errorf("roles: %+v; want the one that both roots made", roles)
	}
}

func TestCancelStopsWhoIsAtWork(t *testing.T) {
	busy, stopped := make(chan struct{}), make(chan struct{})
	slow := probe(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(busy)
		<-ctx.Done()
		close(stopped)
		return nil, ctx.Err()
	})
	h := plan{tools: []tool.Tool{slow}, model: brain(func(r model.Request) model.Answer {
		if r.Self.Role == "root" {
			return manage(r, "worker", "probe")
		}
		return do("slow", obj{})
	})}.open(t)
	id := h.start(t, org.TaskSpec{})
	<-busy
	if err := h.Cancel(t.Context(), id, "no need"); err != nil {
		t.Fatal(err)
	}
	<-stopped
	task := h.wait(t, id)
	h.want(t, task, "", errcode.TaskCancelled)
	if task.Status != org.Cancelled || task.Error.Message != "task cancelled: no need" {
		t.Errorf("the task is %s: %s", task.Status, task.Error.Message)
	}
	h.Close()
	end := happened[journal.Result](t, h)
	for _, e := range h.events(t) {
		if e.Seq > end[0].Seq {
			t.Errorf("after the end: %s", encode(e))
		}
	}
	if err := h.Cancel(t.Context(), id, "again"); err != nil {
		t.Errorf("once more: %v", err)
	}
	h.want(t, h.wait(t, id), "", errcode.TaskCancelled)
	if n := len(said[journal.Result](t, h)); n != 1 {
		t.Errorf("%d results on record", n)
	}
}

func TestCancelOfATaskNobodyWorksOn(t *testing.T) {
	dir := scratch(t)
	free := make(chan struct{})
	h := open(t, dir, busyRoot(free, waits))
	id := h.start(t, org.TaskSpec{})
	h.leave(t)
	h = open(t, dir, busyRoot(free, waits))
	if err := h.Cancel(t.Context(), id, "parked"); err != nil {
		t.Fatal(err)
	}
	h.resume(t, id) // stays ended
	h.want(t, h.wait(t, id), "", errcode.TaskCancelled)
	if err := h.Cancel(t.Context(), "nothing", ""); errcode.Of(err) != errcode.TaskNotFound {
		t.Errorf("cancel of nothing: %v, want task_not_found", err)
	}
	if err := h.Resume(t.Context(), "nothing"); errcode.Of(err) != errcode.TaskNotFound {
		t.Errorf("resume of nothing: %v, want task_not_found", err)
	}
	if _, err := h.Wait(t.Context(), "nothing"); errcode.Of(err) != errcode.TaskNotFound {
		t.Errorf("wait for nothing: %v, want task_not_found", err)
	}
}

func TestWaitGivesUpWithItsContextAndWithTheRuntime(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	id := h.start(t, org.TaskSpec{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Wait(ctx, id); err != context.Canceled {
		t.Errorf("with its context ended: %v", err)
	}
	failed := make(chan error)
	go func() {
		_, err := h.Wait(t.Context(), id)
		failed <- err
	}()
	h.Close()
	if err := <-failed; err == nil {
		t.Error("with the runtime closed Wait knows an end")
	}
}

func TestANarrowedTaskBoundsWhatRootGivesNotWhatItUses(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if r.Self.Role == "worker" {
			if answers(r) == 0 {
				return do("put_artifact", obj{"type": "t", "content": 1}, "console_print", obj{"text": "x"})
			}
			return model.Answer{Finish: model.FinishEnd, Value: encode(append(outcomes(r)[1:], r.Tools...))}
		}
		switch answers(r) {
		case 0:
			return do(
				"create_role", obj{"name": "wide", "rolePrompt": "", "toolGroups": []string{"console"}},
				"create_role", obj{"name": "all", "rolePrompt": "", "toolGroups": []string{"*"}},
				"create_role", obj{"name": "own", "rolePrompt": "", "toolGroups": []string{"org_management"}},
				"find_role_by_name", obj{"name": "worker"})
		case 1:
			return do("spawn_agent_with_task", obj{"roleId": last(r)["id"], "taskBrief": brief(), "initialMessage": "go"})
		case 2: // the operator's role is wider than the task
			return do("create_role", obj{"name": "rest", "rolePrompt": ""})
		case 3:
			return do("spawn_agent_with_task", obj{"roleId": last(r)["id"], "taskBrief": brief(), "initialMessage": "go"})
		}
		if report(r) == nil {
			return wait()
		}
		return model.Answer{Finish: model.FinishEnd, Value: encode(outcomes(r)[:5])}
	}))
	if _, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "worker", Use: use("artifact", "console")}); err != nil {
		t.Fatal(err)
	}
	id := h.start(t, org.TaskSpec{Groups: use("artifact")})
	task := h.wait(t, id)
	var codes []string
	if err := json.Unmarshal(task.Result, &codes); err != nil || len(codes) != 5 {
		t.Fatalf("%v %s\n%s", err, task.Result, h.story(t))
	}
	codes[3] = "" // the role that was found
	want := []string{"insufficient_permissions", "insufficient_permissions", "insufficient_permissions", "", "insufficient_permissions"}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("what root may give (-want +got):\n%s", diff)
	}
	if role, _ := h.Org().RoleNamed("rest"); !role.Use.Equal(*use("artifact")) {
		t.Errorf("a role without toolGroups gets %v, want artifact", role.Use)
	}
	if got := said[journal.TaskStarted](t, h)[0].Groups; !cmp.Equal(got, []string{"artifact"}) {
		t.Errorf("the record says the task is narrowed to %v", got)
	}
	for _, name := range said[journal.AgentSpawned](t, h)[0].Tools {
		if name == "create_role" {
			return
		}
	}
	t.Error("root lost org_management")
}

func TestACallerFromOutsideGivesNoMoreThanItHas(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if answers(r) == 0 {
			return do("create_role", obj{"name": "wide", "rolePrompt": "", "toolGroups": []string{"console"}}, "create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{"artifact"}})
		}
		codes := outcomes(r)
		return end(codes[0] + " " + fmt.Sprint(decode(results(r)[1].Content)["name"]))
	}))
	role, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "guest", Use: use("artifact")})
	if err != nil {
		t.Fatal(err)
	}
	guest := identity.ByCaller("ann", role.ID)
	h.want(t, h.run(t, org.TaskSpec{Caller: guest}), `"insufficient_permissions worker"`, "")
	if _, err := h.Start(t.Context(), org.TaskSpec{Caller: guest, Groups: use("console")}); errcode.Of(err) != errcode.InsufficientPermissions {
		t.Errorf("more groups than it has: %v", err)
	}
	if _, err := h.Start(t.Context(), org.TaskSpec{}); errcode.Of(err) != errcode.Unauthenticated {
		t.Errorf("a task of nobody: %v", err)
	}
	if n := len(h.Org().Tasks()); n != 1 {
		t.Errorf("%d tasks, want the one that was let in", n)
	}
}
