package rolecall_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

var me = rolecall.Operator("me")

// open opens an organization and closes it after the test.
func open(t *testing.T, o rolecall.Options) *rolecall.Organization {
	t.Helper()
	if o.Model == nil {
		o.Model = rolecall.ModelFunc(agree)
	}
	org, err := rolecall.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := org.Close(); err != nil {
			t.Error(err)
		}
	})
	return org
}

func begin(t *testing.T, org *rolecall.Organization, as rolecall.Principal) *rolecall.Task {
	t.Helper()
	task, err := org.Begin(t.Context(), rolecall.TaskSpec{As: as, Text: "work"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { task.Close() })
	return task
}

// hire creates the role clerk without tools, and one agent of it.
func hire(t *testing.T, task *rolecall.Task) rolecall.Agent {
	t.Helper()
	if _, err := task.CreateRole(t.Context(), rolecall.RoleSpec{Name: "clerk", Prompt: "work"}); err != nil {
		t.Fatal(err)
	}
	agent, err := task.Spawn(t.Context(), clerkSpec)
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

var clerkSpec = rolecall.AgentSpec{Role: "clerk", Brief: "work", Message: "go"}

func wantCode(t *testing.T, what string, err error, code errcode.Code) {
	t.Helper()
	if err == nil || errcode.CodeOf(err) != code {
		t.Errorf("%s: got the error %v, want %s", what, err, code)
	}
}

func TestOpen_RejectsBadOptions(t *testing.T) {
	_, err := rolecall.Open(t.Context(), rolecall.Options{})
	wantCode(t, "no model", err, errcode.InvalidConfig)
	dir := t.TempDir()
	open(t, rolecall.Options{Data: dir})
	_, err = rolecall.Open(t.Context(), rolecall.Options{Data: dir, Model: rolecall.ModelFunc(agree)})
	wantCode(t, "a directory that is open", err, errcode.Conflict)
}

// kit is a module with one group.
type kit struct{ group rolecall.ToolGroup }

func (k kit) Name() string                     { return "kit" }
func (k kit) ToolGroups() []rolecall.ToolGroup { return []rolecall.ToolGroup{k.group} }

// A module that cannot be registered fails Open, which releases the data directory.
func TestOpen_ReportsFailedModule(t *testing.T) {
	o := rolecall.Options{Data: t.TempDir(), Model: rolecall.ModelFunc(agree), Modules: []rolecall.Module{kit{rolecall.ToolGroup{ID: "workspace"}}}}
	if _, err := rolecall.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "workspace") {
		t.Fatalf("got the error %v", err)
	}
	o.Modules = nil
	open(t, o)
}

// Without Enter the log says once what will not run, and run_command says why.
func TestOpen_SaysThatThereIsNoSandbox(t *testing.T) {
	var log bytes.Buffer
	org := open(t, rolecall.Options{Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil)), Model: callOnce("run_command", `{"argv":["true"]}`)})
	if n := strings.Count(log.String(), "rolecall.Enter"); n != 1 {
		t.Errorf("the log has %d lines about the sandbox:\n%s", n, &log)
	}
	if _, err := org.CreateRole(t.Context(), rolecall.RoleSpec{Name: "runner", ToolGroups: []rolecall.GroupID{"command"}}); err != nil {
		t.Fatal(err)
	}
	text, err := rolecall.Run[json.RawMessage](t.Context(), org, rolecall.TaskSpec{As: me, Role: "runner"})
	if err != nil || !strings.Contains(string(text), "tool_unavailable") || !strings.Contains(string(text), "rolecall.Enter") {
		t.Errorf("run_command returned %s, %v", text, err)
	}
}

// callOnce calls a tool, and ends with its result.
func callOnce(tool, args string) rolecall.Model {
	return rolecall.ModelFunc(func(_ context.Context, r rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
		if last := r.Items[len(r.Items)-1]; last.Result != nil {
			return rolecall.ModelAnswer{Value: last.Result.Content}, nil
		}
		return rolecall.ModelAnswer{Calls: []rolecall.ModelCall{{Name: tool, Args: []byte(args)}}}, nil
	})
}

type report struct {
	Count int      `json:"count"`
	Names []string `json:"names"`
}

func TestRun_DecodesResult(t *testing.T) {
	for _, text := range []string{`{"count":2,"names":["a","b"]}`, "```json\n{\"count\":2,\"names\":[\"a\",\"b\"]}\n```"} {
		org := open(t, rolecall.Options{Model: rolecall.ModelFunc(func(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
			return rolecall.ModelAnswer{Text: text}, nil
		})})
		got, err := rolecall.Run[report](t.Context(), org, rolecall.TaskSpec{As: me})
		if err != nil || got.Count != 2 || !slices.Equal(got.Names, []string{"a", "b"}) {
			t.Errorf("got %+v, %v", got, err)
		}
		_, err = rolecall.Run[int](t.Context(), org, rolecall.TaskSpec{As: me})
		wantCode(t, "a result of another type", err, errcode.InvalidResult)
	}
}

// A result that was cut, filtered or refused comes with an error. So does such a message.
func TestRun_ReportsIncompleteResult(t *testing.T) {
	for _, stop := range []model.StopReason{rolecall.StopLength, rolecall.StopContentFilter, rolecall.StopRefusal} {
		org := open(t, rolecall.Options{Model: rolecall.ModelFunc(func(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
			return rolecall.ModelAnswer{Text: "half of", Stop: stop}, nil
		})})
		got, err := rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: me})
		wantCode(t, string(stop), err, errcode.IncompleteResult)
		if got != "half of" || err == nil || !strings.Contains(err.Error(), string(stop)) {
			t.Errorf("got %q, %v", got, err)
		}
		raw, err := rolecall.Run[json.RawMessage](t.Context(), org, rolecall.TaskSpec{As: me})
		wantCode(t, string(stop), err, errcode.IncompleteResult)
		if string(raw) != `"half of"` {
			t.Errorf("got %s", raw)
		}
		task := begin(t, org, me)
		hire(t, task)
		list, err := task.Receive(t.Context())
		if err != nil || len(list) != 1 || list[0].Text() != "half of" {
			t.Fatalf("received %+v, %v", list, err)
		}
		wantCode(t, "a message", list[0].Failure(), errcode.IncompleteResult)
	}
}

// A task has a caller, and ends with the context of the program that waits for it.
func TestRun_Rejects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	org := open(t, rolecall.Options{Model: rolecall.ModelFunc(func(asked context.Context, _ rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
		cancel()
		<-asked.Done()
		return rolecall.ModelAnswer{}, asked.Err()
	})})
	if _, err := rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{Text: "x"}); err == nil {
		t.Error("a task without a caller ran")
	}
	if _, err := rolecall.Run[string](ctx, org, rolecall.TaskSpec{As: me}); !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v", err)
	}
	for e, err := range org.Events(t.Context(), 0) {
		if ended, ok := e.Body.(journal.TaskEnded); ok {
			if ended.Status != "cancelled" {
				t.Errorf("the task is %s", ended.Status)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A panic of a model fails the turn of its agent, and the program goes on.
func TestTask_ModelPanics(t *testing.T) {
	org := open(t, rolecall.Options{Model: rolecall.ModelFunc(func(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
		panic("boom")
	})})
	task := begin(t, org, me)
	agent := hire(t, task)
	list, err := task.Receive(t.Context())
	if err != nil || len(list) != 1 || list[0].From != string(agent.ID) {
		t.Fatalf("received %+v, %v", list, err)
	}
	wantCode(t, "the failure of the agent", list[0].Failure(), errcode.LLMCallFailed)
	if err := errors.Join(task.End(t.Context(), nil), task.Wait(t.Context())); err != nil {
		t.Error(err)
	}
	_, err = rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: me})
	wantCode(t, "Run", err, errcode.LLMCallFailed)
}

func TestTask_SendsAndTerminates(t *testing.T) {
	org := open(t, rolecall.Options{})
	task := begin(t, org, me)
	agent := hire(t, task)
	first, err := task.Receive(t.Context())
	if err != nil || first[0].Text() != "yes" || first[0].Failure() != nil {
		t.Fatalf("received %+v, %v", first, err)
	}
	if err := task.Send(t.Context(), rolecall.MessageSpec{To: agent.ID, Payload: "again"}); err != nil {
		t.Fatal(err)
	}
	if list, err := task.Receive(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("received %+v, %v", list, err)
	}
	if err := task.Terminate(t.Context(), rolecall.TerminateSpec{Agent: agent.ID, Reason: "done"}); err != nil {
		t.Fatal(err)
	}
	if err := task.Send(t.Context(), rolecall.MessageSpec{To: agent.ID, Payload: "again"}); err == nil {
		t.Error("a terminated agent received a message")
	}
	wantCode(t, "terminate itself", task.Terminate(t.Context(), rolecall.TerminateSpec{Agent: task.AgentID()}), errcode.NotChildAgent)
}

// The rights of a task are those of its principal. What it may not do is denied on record.
func TestTask_IsLimitedToItsPrincipal(t *testing.T) {
	org := open(t, rolecall.Options{})
	member, err := org.CreateRole(t.Context(), rolecall.RoleSpec{Name: "member", ToolGroups: []rolecall.GroupID{"org_management", "artifact"}})
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := begin(t, org, rolecall.Caller("ann", member.ID)), begin(t, org, rolecall.Caller("bob", member.ID))
	role, err := ann.CreateRole(t.Context(), rolecall.RoleSpec{Name: "writer", Prompt: "x", ToolGroups: []rolecall.GroupID{"artifact"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []rolecall.RoleSpec{
		{Name: "puppet", Prompt: "x", ToolGroups: []rolecall.GroupID{"artifact", "command"}},
		{Name: "puppet", Prompt: "x", Grant: []rolecall.GroupID{"command"}},
	} {
		if _, err = ann.CreateRole(t.Context(), spec); err == nil {
			t.Errorf("created the role %+v", spec)
		}
	}
	_, err = ann.CreateRole(t.Context(), rolecall.RoleSpec{Name: "puppet", Prompt: "x", Model: "m"})
	wantCode(t, "a role of a task with a model", err, errcode.InvalidArguments)
	for _, name := range []string{"writer", string(role.ID)} {
		_, err = bob.Spawn(t.Context(), rolecall.AgentSpec{Role: name, Brief: "x"})
		wantCode(t, "an agent of another caller's role", err, errcode.RoleNotFound)
	}
	_, err = org.Resume(t.Context(), rolecall.ResumeSpec{As: rolecall.Caller("bob", member.ID), Task: ann.ID()})
	wantCode(t, "another caller's task", err, errcode.TaskNotFound)
	if err := ann.End(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for e, err := range ann.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(journal.ToolError); ok {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d failed calls are on record, want 2", failed)
	}
	if access, err := org.Can(rolecall.Subject{Agent: bob.AgentID()}, "run_command"); err != nil || access.Allowed || access.Reason == "" {
		t.Errorf("got %+v, %v", access, err)
	}
	if tools, err := org.Tools(rolecall.Subject{Role: "member"}); err != nil || !slices.Contains(tools, "put_artifact") || slices.Contains(tools, "run_command") {
		t.Errorf("got %v, %v", tools, err)
	}
	_, err = org.Tools(rolecall.Subject{})
	wantCode(t, "no subject", err, errcode.InvalidArguments)
}

func TestTask_RejectsCallsAfterEnd(t *testing.T) {
	org := open(t, rolecall.Options{})
	task := begin(t, org, me)
	hire(t, task)
	if err := task.End(t.Context(), "done"); err != nil {
		t.Fatal(err)
	}
	_, err := task.Spawn(t.Context(), clerkSpec)
	wantCode(t, "Spawn", err, errcode.Conflict)
	_, err = task.Receive(t.Context())
	wantCode(t, "Receive", err, errcode.Conflict)
	wantCode(t, "End", task.End(t.Context(), "again"), errcode.Conflict)
}

func TestContext_EndsBeforeEachStep(t *testing.T) {
	org := open(t, rolecall.Options{})
	task := begin(t, org, me)
	hire(t, task)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	steps := map[string]func() error{
		"Open": func() error {
			_, err := rolecall.Open(ctx, rolecall.Options{Model: rolecall.ModelFunc(agree)})
			return err
		},
		"Register":   func() error { return org.Register(ctx, rolecall.ToolGroup{ID: "x"}) },
		"CreateRole": func() error { _, err := org.CreateRole(ctx, rolecall.RoleSpec{Name: "x"}); return err },
		"Begin":      func() error { _, err := org.Begin(ctx, rolecall.TaskSpec{As: me}); return err },
		"Run":        func() error { _, err := rolecall.Run[string](ctx, org, rolecall.TaskSpec{As: me}); return err },
		"Spawn":      func() error { _, err := task.Spawn(ctx, clerkSpec); return err },
		"Receive":    func() error { _, err := task.Receive(ctx); return err },
		"Send":       func() error { return task.Send(ctx, rolecall.MessageSpec{To: task.AgentID(), Payload: "x"}) },
		"Wait":       func() error { return task.Wait(ctx) },
		"End":        func() error { return task.End(ctx, 1) },
	}
	for name, step := range steps {
		if err := step(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s returned %v", name, err)
		}
	}
	if list, err := task.Receive(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("received %+v, %v", list, err)
	}
}

// Close waits for what runs, and later calls fail.
func TestClose_DuringSpawn(t *testing.T) {
	org := open(t, rolecall.Options{})
	task := begin(t, org, me)
	hire(t, task)
	const n = 16
	failed := make(chan error, n)
	for range n {
		go func() { _, err := task.Spawn(t.Context(), clerkSpec); failed <- err }()
	}
	if err := errors.Join(org.Close(), org.Close()); err != nil {
		t.Error(err)
	}
	for range n {
		if err := <-failed; err != nil && errcode.CodeOf(err) != errcode.ToolUnavailable {
			t.Errorf("got the error %v", err)
		}
	}
	_, err := task.Spawn(t.Context(), clerkSpec)
	wantCode(t, "Spawn", err, errcode.ToolUnavailable)
	_, err = org.Begin(t.Context(), rolecall.TaskSpec{As: me})
	if err == nil {
		t.Error("a task began after Close")
	}
}

// A task that Close has left goes on in another Organization, and so do its agents.
func TestResume_GoesOn(t *testing.T) {
	o := rolecall.Options{Data: t.TempDir()}
	org := open(t, o)
	task := begin(t, org, me)
	hire(t, task)
	if err := errors.Join(org.Close(), task.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := open(t, o).Resume(t.Context(), rolecall.ResumeSpec{As: me, Task: task.ID()})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := again.Receive(t.Context()); err != nil || len(list) != 1 || list[0].Text() != "yes" {
		t.Errorf("received %+v, %v", list, err)
	}
	if err := errors.Join(again.End(t.Context(), 1), again.Wait(t.Context())); err != nil {
		t.Error(err)
	}
}

// A Receive that waits returns with a message, or with the end of the task.
func TestTask_ReceiveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		org := open(t, rolecall.Options{Model: rolecall.ModelFunc(func(ctx context.Context, _ rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
			select {
			case <-answer:
				return rolecall.ModelAnswer{Text: "yes"}, nil
			case <-ctx.Done():
				return rolecall.ModelAnswer{}, ctx.Err()
			}
		})})
		task := begin(t, org, me)
		hire(t, task)
		type received struct {
			list []rolecall.Message
			err  error
		}
		got := make(chan received, 1)
		receive := func() {
			list, err := task.Receive(t.Context())
			got <- received{list, err}
		}
		go receive()
		synctest.Wait() // Receive has found no message
		answer <- struct{}{}
		if r := <-got; r.err != nil || len(r.list) != 1 || r.list[0].Text() != "yes" {
			t.Errorf("received %+v, %v", r.list, r.err)
		}
		if _, err := task.Receive(t.Context()); errcode.CodeOf(err) != errcode.TaskStalled {
			t.Errorf("Receive without an agent at work returned %v", err)
		}
		if _, err := task.Spawn(t.Context(), clerkSpec); err != nil {
			t.Fatal(err)
		}
		go receive()
		synctest.Wait()
		if err := task.Close(); err != nil {
			t.Error(err)
		}
		r := <-got
		wantCode(t, "Receive of a task that is cancelled", r.err, errcode.Conflict)
		wantCode(t, "Wait", task.Wait(t.Context()), errcode.TaskCancelled)
	})
}
