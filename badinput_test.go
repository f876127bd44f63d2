package rolecall_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// A data directory that is a file, or whose data file is not one, is an error and stays as
// it is.
func TestOpen_RejectsWrongData(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	dir := t.TempDir()
	damaged := filepath.Join(dir, "rolecall.db")
	for _, name := range []string{file, damaged} {
		if err := os.WriteFile(name, []byte(strings.Repeat("not a data file ", 1024)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, data := range []string{file, dir} {
		if org, err := rolecall.Open(t.Context(), rolecall.Options{Data: data, Model: rolecall.ModelFunc(agree)}); err == nil {
			org.Close()
			t.Errorf("opened %s", data)
		}
	}
	if text, err := os.ReadFile(damaged); err != nil || !strings.HasPrefix(string(text), "not a data file") {
		t.Errorf("the file was changed: %v", err)
	}
}

// badModule is a module of which one method waits until free is closed, or panics if free is
// nil.
type badModule struct {
	method string
	free   chan struct{}
}

func (m badModule) do(method string) {
	switch {
	case method != m.method:
	case m.free == nil:
		panic("boom")
	default:
		<-m.free
	}
}

func (m badModule) Name() string                     { return "bad" }
func (m badModule) Provision(context.Context) error  { m.do("Provision"); return nil }
func (m badModule) Validate() error                  { m.do("Validate"); return nil }
func (m badModule) ToolGroups() []rolecall.ToolGroup { m.do("ToolGroups"); return nil }
func (m badModule) Close() error                     { m.do("Close"); return nil }

// A module that does not return, or panics, fails Open or Close in time. The data directory is
// free afterwards.
func TestOpen_BadModule(t *testing.T) {
	for _, method := range []string{"Provision", "Validate", "ToolGroups", "Close"} {
		for name, hangs := range map[string]bool{" hangs": true, " panics": false} {
			t.Run(method+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := badModule{method: method}
					if hangs {
						m.free = make(chan struct{})
						defer close(m.free)
					}
					o := rolecall.Options{Data: t.TempDir(), Model: rolecall.ModelFunc(agree), Modules: []rolecall.Module{m}}
					begun := time.Now()
					org, err := rolecall.Open(t.Context(), o)
					if method == "Close" && err == nil {
						err = org.Close()
					}
					if err == nil || !strings.Contains(err.Error(), "bad") || time.Since(begun) > 2*time.Minute {
						t.Errorf("got the error %v after %s", err, time.Since(begun))
					}
					o.Modules = nil
					open(t, o)
				})
			})
		}
	}
}

func TestOpen_RejectsNilModule(t *testing.T) {
	_, err := rolecall.Open(t.Context(), rolecall.Options{Model: rolecall.ModelFunc(agree), Modules: []rolecall.Module{nil}})
	if err == nil {
		t.Error("opened with a nil module")
	}
}

// slowModule is a module that does not start before its context ends.
type slowModule struct{ badModule }

func (slowModule) Provision(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// A context that ends while a step waits ends the step.
func TestContext_EndsDuringEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		org := open(t, rolecall.Options{Model: rolecall.ModelFunc(func(ctx context.Context, _ rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
			<-ctx.Done()
			return rolecall.ModelAnswer{}, ctx.Err()
		})})
		task := begin(t, org, me)
		hire(t, task)
		for name, step := range map[string]func(context.Context) error{
			"Open": func(ctx context.Context) error {
				_, err := rolecall.Open(ctx, rolecall.Options{Model: rolecall.ModelFunc(agree), Modules: []rolecall.Module{slowModule{}}})
				return err
			},
			"Receive": func(ctx context.Context) error { _, err := task.Receive(ctx); return err },
			"Wait":    task.Wait,
			"Run": func(ctx context.Context) error {
				_, err := rolecall.Run[string](ctx, org, rolecall.TaskSpec{As: me})
				return err
			},
			"Events": func(ctx context.Context) error {
				for _, err := range task.Events(ctx, 0) {
					if err != nil {
						return err
					}
				}
				return ctx.Err()
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begun := time.Now()
			if err := step(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
				t.Errorf("%s returned %v after %s", name, err, time.Since(begun))
			}
			cancel()
		}
	})
}

// sequence is a model of the deltas that it returns.
type sequence func() iter.Seq2[model.AnswerDelta, error]

func (s sequence) Generate(context.Context, rolecall.ModelRequest) iter.Seq2[model.AnswerDelta, error] {
	return s()
}

// Answers that are none fail the turn of the agent that asked, and nothing else.
func TestRun_BadModel(t *testing.T) {
	var noFunction rolecall.ModelFunc
	deltas := func(list ...model.AnswerDelta) sequence {
		return func() iter.Seq2[model.AnswerDelta, error] {
			return func(yield func(model.AnswerDelta, error) bool) {
				for _, d := range list {
					if !yield(d, nil) {
						return
					}
				}
			}
		}
	}
	answer := func(a rolecall.ModelAnswer) rolecall.Model {
		return rolecall.ModelFunc(func(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) { return a, nil })
	}
	good := open(t, rolecall.Options{})
	for name, m := range map[string]rolecall.Model{
		"a function that is nil":  noFunction,
		"nothing":                 deltas(),
		"a delta without answer":  deltas(model.AnswerDelta{}),
		"a sequence that is nil":  sequence(func() iter.Seq2[model.AnswerDelta, error] { return nil }),
		"an unknown finish":       answer(rolecall.ModelAnswer{Finish: "nonsense"}),
		"calls that are missing":  answer(rolecall.ModelAnswer{Finish: rolecall.FinishToolCalls}),
		"a wait for nothing":      answer(rolecall.ModelAnswer{Finish: rolecall.FinishWait}),
		"a value that is no JSON": answer(rolecall.ModelAnswer{Value: []byte("{")}),
	} {
		t.Run(name, func(t *testing.T) {
			org := open(t, rolecall.Options{Model: m})
			got, err := rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: me})
			if err == nil || errcode.CodeOf(err) == errcode.Internal {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if got, err := rolecall.Run[string](t.Context(), good, rolecall.TaskSpec{As: me}); got != "yes" || err != nil {
		t.Errorf("another organization answered %q, %v", got, err)
	}
	_, err := good.CreateRole(t.Context(), rolecall.RoleSpec{Name: "clerk", Model: "missing"})
	if err == nil {
		_, err = rolecall.Run[string](t.Context(), good, rolecall.TaskSpec{As: me, Role: "clerk"})
	}
	wantCode(t, "a role with an unknown model", err, errcode.InvalidConfig)
}

// A task that is limited to groups grants no others, and a caller without the right to create
// roles begins no task that could.
func TestBegin_GrantsNoMoreThanTheTaskMay(t *testing.T) {
	org := open(t, rolecall.Options{})
	limited, err := org.Begin(t.Context(), rolecall.TaskSpec{As: me, ToolGroups: []rolecall.GroupID{"org_management", "artifact"}})
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	if _, err := limited.CreateRole(t.Context(), rolecall.RoleSpec{Name: "runner", Prompt: "x", ToolGroups: []rolecall.GroupID{"command"}}); err == nil {
		if tools, err := org.Tools(rolecall.Subject{Role: "runner"}); err != nil {
			t.Error(err)
		} else if agent, err := limited.Spawn(t.Context(), rolecall.AgentSpec{Role: "runner", Brief: "x"}); err == nil {
			if access, err := org.Can(rolecall.Subject{Agent: agent.ID}, "run_command"); err != nil || access.Allowed {
				t.Errorf("an agent of a limited task may run commands: %v, %+v, %v", tools, access, err)
			}
		}
	}
	weak, err := org.CreateRole(t.Context(), rolecall.RoleSpec{Name: "weak", ToolGroups: []rolecall.GroupID{"artifact"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]rolecall.TaskSpec{
		"groups of others":          {As: rolecall.Caller("ann", weak.ID), ToolGroups: []rolecall.GroupID{"command"}},
		"a directory of a caller":   {As: rolecall.Caller("ann", weak.ID), Workspace: t.TempDir()},
		"a role that is not known":  {As: rolecall.Caller("ann", "nothing")},
		"no principal":              {},
		"a group that is not known": {As: me, ToolGroups: []rolecall.GroupID{"nothing"}},
		"a role":                    {As: me, Role: "weak"},
		"input that is no object":   {As: me, Input: []byte(`1`)},
	} {
		if task, err := org.Begin(t.Context(), spec); err == nil {
			task.Close()
			t.Errorf("%s: a task began", name)
		}
	}
	task, err := org.Begin(t.Context(), rolecall.TaskSpec{As: rolecall.Caller("ann", weak.ID)})
	if err != nil {
		t.Fatal(err)
	}
	defer task.Close()
	for _, groups := range [][]rolecall.GroupID{{"command"}, {"org_management"}} {
		if _, err := task.CreateRole(t.Context(), rolecall.RoleSpec{Name: "puppet", Prompt: "x", ToolGroups: groups}); err == nil {
			t.Errorf("a weak caller granted %v", groups)
		}
	}
	for name, spec := range map[string]rolecall.AgentSpec{
		"no brief": {Role: "weak"}, "no role": {Brief: "x"}, "a message that is no JSON": {Role: "weak", Brief: "x", Message: make(chan int)},
	} {
		if _, err := task.Spawn(t.Context(), spec); err == nil || errcode.CodeOf(err) == errcode.Internal {
			t.Errorf("%s: got the error %v", name, err)
		}
	}
	wantCode(t, "a result that is no JSON", task.End(t.Context(), make(chan int)), errcode.InvalidArguments)
	wantCode(t, "an unknown receiver", task.Send(t.Context(), rolecall.MessageSpec{To: "nobody", Payload: "x"}), errcode.UnknownRecipient)
}

// Every method of an organization that was closed returns an error, or what is known.
func TestClose_EndsAllMethods(t *testing.T) {
	org := open(t, rolecall.Options{Data: t.TempDir()})
	task := begin(t, org, me)
	agent := hire(t, task)
	if err := org.Close(); err != nil {
		t.Fatal(err)
	}
	for name, step := range map[string]func() error{
		"Run":   func() error { _, err := rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: me}); return err },
		"Begin": func() error { _, err := org.Begin(t.Context(), rolecall.TaskSpec{As: me}); return err },
		"Resume": func() error {
			_, err := org.Resume(t.Context(), rolecall.ResumeSpec{As: me, Task: task.ID()})
			return err
		},
		"Cancel":     func() error { return org.Cancel(t.Context(), rolecall.CancelSpec{As: me, Task: task.ID()}) },
		"CreateRole": func() error { _, err := org.CreateRole(t.Context(), rolecall.RoleSpec{Name: "x"}); return err },
		"EnsureRole": func() error { _, err := org.EnsureRole(t.Context(), rolecall.RoleSpec{Name: "x"}); return err },
		"Register":   func() error { return org.Register(t.Context(), rolecall.ToolGroup{ID: "x", Description: "x"}) },
		"Unfinished": func() error { _, err := org.UnfinishedTasks(t.Context(), me); return err },
		"Spawn":      func() error { _, err := task.Spawn(t.Context(), clerkSpec); return err },
		"Receive":    func() error { _, err := task.Receive(t.Context()); return err },
		"Send":       func() error { return task.Send(t.Context(), rolecall.MessageSpec{To: agent.ID, Payload: "x"}) },
		"Wait":       func() error { return task.Wait(t.Context()) },
		"End":        func() error { return task.End(t.Context(), 1) },
		"Events": func() error {
			for _, err := range org.Events(t.Context(), 0) {
				if err != nil {
					return err
				}
			}
			return errors.New("the events have ended")
		},
	} {
		if err := step(); err == nil {
			t.Errorf("%s succeeded", name)
		}
	}
}

// What a program left out is named as the program knows it, with what to set.
func TestErrors_NameMissingFields(t *testing.T) {
	org := open(t, rolecall.Options{})
	task := begin(t, org, me)
	agent := hire(t, task)
	ctx := t.Context()
	for want, step := range map[string]func() error{
		`unauthenticated: TaskSpec.As is missing: set the sender of the task, for example rolecall.Operator("me")`: func() error {
			_, err := rolecall.Run[string](ctx, org, rolecall.TaskSpec{Text: "work"})
			return err
		},
		`unauthenticated: TaskSpec.As is missing`: func() error { _, err := org.Begin(ctx, rolecall.TaskSpec{Text: "work"}); return err },
		`invalid_task_brief: spawn an agent of the role "clerk": AgentSpec.Brief is missing: say what the agent has to achieve`: func() error {
			_, err := task.Spawn(ctx, rolecall.AgentSpec{Role: "clerk", Message: "Begin."})
			return err
		},
		`AgentSpec.Role is missing`:      func() error { _, err := task.Spawn(ctx, rolecall.AgentSpec{Brief: "work"}); return err },
		`MessageSpec.To is missing`:      func() error { return task.Send(ctx, rolecall.MessageSpec{Payload: "Hi."}) },
		`TerminateSpec.Agent is missing`: func() error { return task.Terminate(ctx, rolecall.TerminateSpec{Reason: "done"}) },
	} {
		if err := step(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := task.Terminate(ctx, rolecall.TerminateSpec{Agent: agent.ID}); err != nil {
		t.Error(err)
	}
}

// An error of a model has its cause in the log. What the program gets says how to see it.
func TestErrors_NameTheLog(t *testing.T) {
	for name, model := range map[string]rolecall.ModelFunc{
		"error": func(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
			return rolecall.ModelAnswer{}, errors.New("the secret cause")
		},
		"panic": func(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) { panic("the secret cause") },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			org := open(t, rolecall.Options{Model: model, Log: slog.New(slog.NewTextHandler(&log, nil))})
			const want = "model request failed; see the log (set Options.Log)"
			_, err := rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: me})
			if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("Run: %v", err)
			}
			task := begin(t, org, me)
			hire(t, task)
			list, err := task.Receive(t.Context())
			if err != nil || len(list) != 1 || !strings.HasSuffix(list[0].Failure().Error(), want) {
				t.Errorf("received %+v, %v", list, err)
			}
			if err := org.Close(); err != nil || !strings.Contains(log.String(), "the secret cause") {
				t.Errorf("%v, the log: %s", err, log.String())
			}
		})
	}
}
