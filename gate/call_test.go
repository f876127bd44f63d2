package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// The result of a denial is {"error":"tool_not_available","toolName":"run_command",
// "message":"…"}. The message always contains the name of the tool.
func TestCall_RefusalResult(t *testing.T) {
	d := definition("a", tool.Mutating)
	d.Input = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	limited := definition("limited", tool.Mutating)
	limited.States = []string{"review"}
	f := newFixture(t, &fakeTool{definition: d, run: mustNotRun(t)}, &fakeTool{definition: limited, run: mustNotRun(t)})
	tests := []struct{ name, tool, args, want string }{
		{"tool of another group", "theirs", `{}`, `{"error":"tool_not_available","message":"tool theirs is not available to this role. It cannot be granted during this task: work without it, or say in your answer what you could not do.","toolName":"theirs"}`},
		{"tool of another state", "limited", `{}`, `{"error":"tool_not_available","message":"tool limited is not available in this workflow state. Your tools: a.","toolName":"limited"}`},
		{"unknown tool", "fly", `{}`, `{"error":"unknown_tool","message":"there is no tool fly. Your tools: a.","toolName":"fly"}`},
		{"missing argument", "a", `{}`, `{"error":"invalid_arguments","message":"path: missing, want string","toolName":"a"}`},
		{"argument of wrong type", "a", `{"path":1}`, `{"error":"invalid_arguments","message":"path: want string, got 1","toolName":"a"}`},
		{"a key that is almost the schema's", "a", `{"Path":"x"}`, `{"error":"invalid_arguments","message":"arguments are malformed or ambiguous JSON: key \"Path\" differs from \"path\" in case only: write \"path\" at byte 1","toolName":"a"}`},
		{"arguments that a model did not finish", "a", `"{\"path\": "`, `{"error":"invalid_arguments","message":"arguments of a are no JSON object that is safe to read: document ends where a value was expected at byte 9; they have 9 bytes","toolName":"a"}`},
		{"object in a string", "a", `"{\"path\": \"x\"}"`, `{"error":"invalid_arguments","message":"arguments of a are a string that contains an object, not an object: send the object itself","toolName":"a"}`},
		{"malformed arguments of a denied tool", "theirs", `{`, `{"error":"invalid_arguments","message":"arguments of theirs are malformed or ambiguous JSON: document ends where a key was expected at byte 1","toolName":"theirs"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := &fakeRecorder{}
			a := f.calls(rec, request(tt.tool, tt.args))[0]
			if a.Allowed() || !a.Result.IsError || a.NewState != "" || a.Interrupted || a.Superseded() {
				t.Errorf("got %+v, want a denial", a)
			}
			if got := string(a.Result.JSON()); !strings.Contains(got, `"toolName":"`+tt.tool+`"`) || !sameRefusal(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if len(rec.lines) != 2 || !strings.HasSuffix(rec.lines[0], string(a.Code())) {
				t.Errorf("got record %q", rec.lines)
			}
		})
	}
}

// sameRefusal compares two denials. It ignores the message of invalid arguments,
// which comes from package tool.
func sameRefusal(got, want string) bool {
	var g, w struct{ Error, Message string }
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil {
		return false
	}
	return g.Error == w.Error && (g.Message == w.Message || g.Error == "invalid_arguments" && g.Message != "")
}

// The schema of a denied tool is not read: the denial must reveal nothing about it.
func TestCall_HidesSchemaOfDeniedTool(t *testing.T) {
	f := newFixture(t)
	for _, args := range []string{``, `{}`, `{"secret":1}`, `{"a":{"b":[1]}}`} {
		if a := f.call("theirs", args); a.Code() != errcode.ToolNotAvailable {
			t.Errorf("%s: got %q, want tool_not_available", args, a.Code())
		}
	}
}

func TestCall_RequiresStrictJSONObject(t *testing.T) {
	ran := false
	f := newFixtureWith(t, gate.Config{MaxArgs: 1 << 20}, &fakeTool{definition: definition("a", tool.ReadOnly), run: func(context.Context, tool.Call) (tool.Result, error) {
		ran = true
		return tool.Result{}, nil
	}})
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	tests := []struct {
		name, args string
		ok         bool
	}{
		{"missing", "", true},
		{"object", `{"a":[1,null,"x"]}`, true},
		{"64 levels", deep(64), true},
		{"65 levels", deep(65), false},
		{"1 MiB of brackets", strings.Repeat("[", 1<<20), false},
		{"more bytes than allowed", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, false},
		{"almost as many bytes as allowed", `{"a":"` + strings.Repeat("x", 1<<20-8) + `"}`, true},
		{"repeated key", `{"a":1,"a":2}`, false},
		{"repeated key with an escape", `{"a":1,"\u0061":2}`, false},
		{"array", `[]`, false},
		{"null", `null`, false},
		{"object in a string", `"{}"`, false},
		{"two objects", `{}{}`, false},
		{"text after the object", `{} x`, false},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", false},
		{"lone surrogate", `{"a":"\ud800"}`, false},
		{"enormous number", `{"a":1e999999999}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ran = false
			a := f.call("a", tt.args)
			wantArguments(t, a, ran, tt.ok)
			if tt.args == "" && string(a.Request.Args) != "{}" {
				t.Errorf("got %s, want {}", a.Request.Args)
			}
		})
	}
}

func wantArguments(t *testing.T, a *gate.Admission, ran, ok bool) {
	t.Helper()
	if !ok && (a.Code() != errcode.InvalidArguments || ran) {
		t.Errorf("got %q, ran %v, want invalid_arguments", a.Code(), ran)
	}
	if ok && (a.Code() != "" || !ran) {
		t.Errorf("got %s, ran %v", a.Result.JSON(), ran)
	}
}

func TestCall_PassesAuthorizedArguments(t *testing.T) {
	var got tool.Call
	d := definition("a", tool.Mutating)
	d.State = "next"
	f := newFixture(t, &fakeTool{definition: d, run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		got = c
		return tool.Result{Structured: json.RawMessage(`{"ok":true}`)}, nil
	}})
	f.directory.setState("first")
	r := request("a", `{"x":1}`)
	r.By = identity.ByOperator("forged")
	a := f.calls(&fakeRecorder{}, r)[0]
	if diff := cmp.Diff(got, tool.Call{ID: "id of a", Name: "a", Args: json.RawMessage(`{"x":1}`), By: ann, Owner: ann.String()}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if string(a.Result.JSON()) != `{"ok":true}` || a.NewState != "next" || a.Subject.State != "first" || a.Code() != "" || !a.Decision.Allowed() {
		t.Errorf("got %s, new state %q", a.Result.JSON(), a.NewState)
	}
}

func TestCall_ClassifiesToolOutcome(t *testing.T) {
	answer := func(r tool.Result, err error) func(context.Context, tool.Call) (tool.Result, error) {
		return func(context.Context, tool.Call) (tool.Result, error) { return r, err }
	}
	tests := []struct {
		name string
		run  func(context.Context, tool.Call) (tool.Result, error)
		code errcode.Code
		text string // of the result
		log  string
	}{
		{"text", answer(tool.Result{Text: "done"}, nil), "", `"done"`, ""},
		{"failure result", answer(tool.Failure("a", errcode.New(errcode.FileNotFound, "no x")), nil), errcode.FileNotFound, "no x", ""},
		{"failure result without code", answer(tool.Result{Text: "broken", IsError: true}, nil), "", "broken", ""},
		{"error with code", answer(tool.Result{}, errcode.New(errcode.ToolUnavailable, "no sandbox")), errcode.ToolUnavailable, "no sandbox", ""},
		{"error without code", answer(tool.Result{}, errors.New("secret path /x")), errcode.ToolExecutionFailed, "a failed; see the log", "secret path"},
		{"internal error", answer(tool.Result{}, errcode.New(errcode.Internal, "secret")), errcode.ToolExecutionFailed, "a failed; see the log", "secret"},
		{"panic", func(context.Context, tool.Call) (tool.Result, error) { panic("secret cause") }, errcode.ToolExecutionFailed, "a panicked; see the log", "secret cause"},
		{"panic with an error", func(context.Context, tool.Call) (tool.Result, error) { panic(errors.New("x")) }, errcode.ToolExecutionFailed, "a panicked; see the log", "call_test.go"},
		{"write to a nil map", func(context.Context, tool.Call) (tool.Result, error) {
			nilMap()["x"] = 1
			return tool.Result{}, nil
		}, errcode.ToolExecutionFailed, "a panicked; see the log", "nil map"},
		{"largest result", answer(tool.Result{Text: strings.Repeat("x", 100)}, nil), "", "xxx", ""},
		{"result too large", answer(tool.Result{Text: strings.Repeat("x", 101)}, nil), errcode.ResultTooLarge, "101 bytes; at most 100", ""},
		{"text and structured result too large together", answer(tool.Result{Text: strings.Repeat("x", 99), Structured: json.RawMessage(`{}`)}, nil), errcode.ResultTooLarge, "101 bytes", ""},
		{"malformed JSON", answer(tool.Result{Structured: json.RawMessage(`{"a":`)}, nil), errcode.ToolExecutionFailed, "malformed or ambiguous JSON", ""},
		{"ambiguous JSON", answer(tool.Result{Structured: json.RawMessage(`{"a":1,"a":2}`)}, nil), errcode.ToolExecutionFailed, "malformed or ambiguous JSON", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := definition("a", tool.Idempotent)
			d.State = "next"
			f := newFixtureWith(t, gate.Config{MaxResult: 100}, &fakeTool{definition: d, run: tt.run})
			rec := &fakeRecorder{}
			a := f.calls(rec, request("a", ``))[0]
			if got := string(a.Result.JSON()); a.Code() != tt.code || !strings.Contains(got, tt.text) || strings.Contains(got, "secret") {
				t.Errorf("got %q %s, want %q and %q", a.Code(), got, tt.code, tt.text)
			}
			if log := f.log.String(); !strings.Contains(log, tt.log) || tt.log == "" && log != "" {
				t.Errorf("got log %q, want %q in it", log, tt.log)
			}
			if moved := a.NewState == "next"; moved == a.Result.IsError || !a.Allowed() || a.Interrupted {
				t.Errorf("moved to %q after failure %v", a.NewState, a.Result.IsError)
			}
			if len(rec.lines) != 2 {
				t.Errorf("got record %q", rec.lines)
			}
		})
	}
}

// It is unknown whether a Mutating tool that did not return a result had an effect.
func TestCall_InterruptsFailedMutatingTool(t *testing.T) {
	for name, run := range map[string]func(context.Context, tool.Call) (tool.Result, error){
		"panic":              func(context.Context, tool.Call) (tool.Result, error) { panic("x") },
		"error without code": func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("lost") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating), run: run})
			if a := f.call("a", ``); a.Code() != errcode.ToolInterrupted {
				t.Errorf("got %q %s, want tool_interrupted", a.Code(), a.Result.JSON())
			}
		})
	}
}

// A Mutating call that ends without a result (crash, timeout, cancellation, lost
// connection) is tool_interrupted: its outcome is unknown.
func TestCall_Timeout(t *testing.T) {
	tests := []struct {
		effect tool.Effect
		code   errcode.Code
		text   string
	}{
		{tool.ReadOnly, errcode.ToolTimeout, "safe to call again"},
		{tool.Idempotent, errcode.ToolTimeout, "safe to call again"},
		{tool.Mutating, errcode.ToolInterrupted, "may or may not have acted"},
	}
	for _, tt := range tests {
		t.Run(tt.effect.String()+" tool times out", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixtureWith(t, gate.Config{Timeout: time.Minute}, &fakeTool{definition: definition("a", tt.effect), run: waitForCancel})
				start := time.Now()
				a := f.call("a", ``)
				if took := time.Since(start); a.Code() != tt.code || !strings.Contains(string(a.Result.JSON()), tt.text) || took != time.Minute || a.Interrupted {
					t.Errorf("got %s after %v, cut %v", a.Result.JSON(), took, a.Interrupted)
				}
			})
		})
		t.Run(tt.effect.String()+" tool is canceled by its caller", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			f := newFixture(t, &fakeTool{definition: definition("a", tt.effect), run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
				cancel()
				return waitForCancel(ctx, c)
			}})
			list, err := f.Call(ctx, ann, []gate.CallRequest{request("a", ``), request("a", ``)}, &fakeRecorder{})
			if len(list) == 0 || list[0].Code() != tt.code || !list[0].Interrupted {
				t.Errorf("got %d outcomes, %v", len(list), err)
			}
		})
	}
	t.Run("result after cancellation is kept", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) {
			cancel()
			return tool.Result{Text: "done"}, nil
		}})
		list, err := f.Call(ctx, ann, []gate.CallRequest{request("a", ``), request("a", ``)}, &fakeRecorder{})
		if len(list) != 1 || list[0].Code() != "" || list[0].Interrupted || !errors.Is(err, context.Canceled) {
			t.Errorf("got %d outcomes, %v", len(list), err)
		}
	})
	t.Run("default timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, &fakeTool{definition: definition("a", tool.ReadOnly), run: waitForCancel})
			start := time.Now()
			if a := f.call("a", ``); a.Code() != errcode.ToolTimeout || time.Since(start) != gate.DefaultTimeout {
				t.Errorf("got %q after %v", a.Code(), time.Since(start))
			}
		})
	})
}

// waitForCancel is a tool that returns only when its context is done.
func waitForCancel(ctx context.Context, _ tool.Call) (tool.Result, error) {
	<-ctx.Done()
	return tool.Result{}, ctx.Err()
}

// No call waits for another one after its intent is recorded.
func TestCall_BatchesReadOnlyCalls(t *testing.T) {
	mover := definition("move", tool.ReadOnly)
	mover.State = "next"
	f := newFixture(t, &fakeTool{definition: definition("read", tool.ReadOnly)}, &fakeTool{definition: definition("write", tool.Mutating)},
		&fakeTool{definition: definition("put", tool.Idempotent)}, &fakeTool{definition: mover})
	rec := &fakeRecorder{}
	f.calls(rec, request("read", ``), request("put", ``), request("write", ``), request("write", ``), request("theirs", ``),
		request("write", `[`), request("read", ``), request("move", ``), request("read", ``))
	wantLines(t, rec.lines,
		"start read:allowed", "finish read:ok",
		"start put:allowed", "finish put:ok",
		"start write:allowed", "finish write:ok",
		"start write:allowed", "finish write:ok",
		"start theirs:tool_not_available write:invalid_arguments read:allowed move:allowed", "finish theirs:tool_not_available write:invalid_arguments read:ok move:ok",
		"start read:allowed", "finish read:ok")
}

// The results of a batch are in memory until they are recorded, in one commit. An answer
// with many calls must not make that large.
func TestCall_LimitsConcurrentCalls(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("read", tool.ReadOnly)})
	rec := &fakeRecorder{}
	requests := []gate.CallRequest{request("theirs", ``)} // a denied call takes no place
	for range 40 {
		requests = append(requests, request("read", ``))
	}
	all := f.calls(rec, requests...)
	var sizes []int
	for _, line := range rec.lines {
		if strings.HasPrefix(line, "start ") {
			sizes = append(sizes, strings.Count(line, "read:allowed"))
		}
	}
	if diff := cmp.Diff(sizes, []int{16, 16, 8}); diff != "" || len(all) != len(requests) {
		t.Errorf("got %d outcomes, and batches (got before want):\n%s", len(all), diff)
	}
}

// A tool that changes the workflow state is a barrier for the calls after it.
func TestCall_DecidesInNewStateAfterTransition(t *testing.T) {
	finish, publish := definition("finish", tool.Idempotent), definition("publish", tool.Idempotent)
	finish.State, finish.States = "review", []string{"undefined"}
	publish.States = []string{"review"}
	f := newFixture(t, &fakeTool{definition: finish}, &fakeTool{definition: publish})
	rec := &fakeRecorder{finished: func(calls []*gate.Admission) error {
		for _, a := range calls {
			if a.NewState != "" {
				f.directory.setState(a.NewState)
			}
		}
		return nil
	}}
	f.calls(rec, request("publish", ``), request("finish", ``), request("publish", ``), request("finish", ``))
	wantLines(t, rec.lines,
		"start publish:tool_not_available finish:allowed", "finish publish:tool_not_available finish:ok",
		"start publish:allowed", "finish publish:ok",
		"start finish:tool_not_available", "finish finish:tool_not_available")
}

func TestCall_RunsReadOnlyCallsConcurrently(t *testing.T) {
	meet := make(chan string)
	partner := func(mine, other string) func(context.Context, tool.Call) (tool.Result, error) {
		return func(ctx context.Context, _ tool.Call) (tool.Result, error) { // ends only while the other runs
			for {
				select {
				case meet <- mine:
					return tool.Result{Text: mine}, nil
				case got := <-meet:
					return tool.Result{Text: mine + " met " + got}, nil
				case <-ctx.Done():
					return tool.Result{}, errors.New("did not meet the other call")
				}
			}
		}
	}
	f := newFixtureWith(t, gate.Config{Timeout: 10 * time.Second}, &fakeTool{definition: definition("x", tool.ReadOnly), run: partner("x", "y")}, &fakeTool{definition: definition("y", tool.ReadOnly), run: partner("y", "x")})
	list := f.calls(&fakeRecorder{}, request("x", ``), request("y", ``))
	for i, name := range []string{"x", "y"} {
		if list[i].Code() != "" || !strings.HasPrefix(list[i].Result.Text, name) {
			t.Errorf("got %s in place of %s's answer", list[i].Result.JSON(), name)
		}
	}
}

func TestCall_RunsOtherCallsSequentially(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent} {
		t.Run(effect.String(), func(t *testing.T) {
			var trail []string // without a lock: the race detector would object
			step := func(_ context.Context, c tool.Call) (tool.Result, error) {
				trail = append(trail, "begin "+string(c.Args), "end "+string(c.Args))
				return tool.Result{}, nil
			}
			reads := 0
			read := func(context.Context, tool.Call) (tool.Result, error) { reads++; return tool.Result{}, nil }
			f := newFixture(t, &fakeTool{definition: definition("a", effect), run: step}, &fakeTool{definition: definition("read", tool.ReadOnly), run: read})
			f.calls(&fakeRecorder{}, request("a", `{"n":1}`), request("a", `{"n":2}`), request("read", ``), request("a", `{"n":3}`))
			want := []string{`begin {"n":1}`, `end {"n":1}`, `begin {"n":2}`, `end {"n":2}`, `begin {"n":3}`, `end {"n":3}`}
			if diff := cmp.Diff(trail, want); diff != "" || reads != 1 {
				t.Errorf("%d reads, got before want:\n%s", reads, diff)
			}
		})
	}
}

// A call starts when its intent commits. That commit rejects a decision of a View
// that was replaced, and the gate decides again.
func TestCall_DecidesAgainWhenSuperseded(t *testing.T) {
	t.Run("second decision may deny", func(t *testing.T) {
		f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating), run: mustNotRun(t)})
		rec := &fakeRecorder{}
		rec.started = func(calls []*gate.Admission) error {
			if len(rec.lines) == 1 {
				f.grant() // revoked between decision and commit
			}
			if calls[0].Superseded() {
				return gate.ErrSuperseded
			}
			return nil
		}
		a := f.calls(rec, request("a", ``))[0]
		if a.Allowed() || a.Code() != errcode.ToolNotAvailable || a.Decision.Epoch() != 2 {
			t.Errorf("got %q at epoch %d", a.Code(), a.Decision.Epoch())
		}
		wantLines(t, rec.lines, "start a:allowed", "start a:tool_not_available", "finish a:tool_not_available")
	})
	t.Run("denial is never superseded", func(t *testing.T) {
		f := newFixture(t)
		rec := &fakeRecorder{started: func(calls []*gate.Admission) error {
			f.grant("mine", "theirs")
			if calls[0].Superseded() {
				t.Error("a denial is superseded")
			}
			return nil
		}}
		if a := f.calls(rec, request("theirs", ``))[0]; a.Allowed() {
			t.Error("a denial became an allowance")
		}
	})
	for _, changes := range []int{1, 15, 16, 17, 100} {
		t.Run(fmt.Sprintf("%d changes", changes), func(t *testing.T) {
			ran := 0
			f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Result{}, nil }})
			rec := &fakeRecorder{}
			rec.started = func(calls []*gate.Admission) error {
				if len(rec.lines) <= changes {
					f.grant("mine")
				}
				if calls[0].Superseded() {
					return fmt.Errorf("wrapped: %w", gate.ErrSuperseded)
				}
				return nil
			}
			a := f.calls(rec, request("a", ``))[0]
			if changes < 16 {
				if ran != 1 || a.Code() != "" || len(rec.lines) != changes+2 {
					t.Errorf("got %q after %d tries, ran %d times", a.Code(), len(rec.lines)-1, ran)
				}
				return
			}
			if ran != 0 || a.Code() != errcode.ToolNotAvailable || len(rec.lines) != 18 || !strings.Contains(string(a.Result.JSON()), "tool a: the permissions of this role keep changing") {
				t.Errorf("got %s after %d tries, ran %d times", a.Result.JSON(), len(rec.lines)-1, ran)
			}
		})
	}
}

func TestCall_StopsOnRecorderError(t *testing.T) {
	broken := errors.New("disk full")
	t.Run("Started fails", func(t *testing.T) {
		f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating), run: mustNotRun(t)}, &fakeTool{definition: definition("r", tool.ReadOnly), run: mustNotRun(t)})
		rec := &fakeRecorder{started: func([]*gate.Admission) error { return broken }}
		list, err := f.Call(t.Context(), ann, []gate.CallRequest{request("r", ``), request("a", ``), request("a", ``)}, rec)
		if !errors.Is(err, broken) || len(list) != 0 || len(rec.lines) != 1 {
			t.Errorf("got %d outcomes, %v, record %q", len(list), err, rec.lines)
		}
	})
	t.Run("Finished fails", func(t *testing.T) {
		ran := 0
		f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Result{}, nil }})
		rec := &fakeRecorder{}
		rec.finished = func([]*gate.Admission) error {
			if len(rec.lines) == 4 {
				return broken
			}
			return nil
		}
		list, err := f.Call(t.Context(), ann, []gate.CallRequest{request("a", ``), request("a", ``), request("a", ``)}, rec)
		if !errors.Is(err, broken) || len(list) != 1 || ran != 2 {
			t.Errorf("got %d outcomes, %v, ran %d times", len(list), err, ran)
		}
	})
	t.Run("context is done", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating), run: mustNotRun(t)})
		rec := &fakeRecorder{}
		if list, err := f.Call(ctx, ann, []gate.CallRequest{request("a", ``)}, rec); !errors.Is(err, context.Canceled) || len(list) != 0 || len(rec.lines) != 0 {
			t.Errorf("got %d outcomes, %v, record %q", len(list), err, rec.lines)
		}
	})
	t.Run("no calls and no recorder", func(t *testing.T) {
		if list, err := newFixture(t).Call(t.Context(), ann, nil, nil); list != nil || err != nil {
			t.Errorf("got %v, %v", list, err)
		}
	})
}

// After a crash, calls without an outcome are decided again. ReadOnly and Idempotent
// ones run again with the same id; a Mutating one is tool_interrupted.
func TestCall_RetriesOnlyRepeatableCalls(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly} {
		t.Run(effect.String(), func(t *testing.T) {
			var ids []identity.CallID
			f := newFixture(t, &fakeTool{definition: definition("a", effect), run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				ids = append(ids, c.ID)
				return tool.Result{Text: "done"}, nil
			}})
			r := request("a", ``)
			r.Started, r.Effect = true, effect
			a := f.calls(&fakeRecorder{}, r)[0]
			if effect == tool.Mutating {
				if len(ids) != 0 || a.Code() != errcode.ToolInterrupted || a.Allowed() || !strings.Contains(string(a.Result.JSON()), "a was started and its outcome is unknown") {
					t.Errorf("ran %v, got %s", ids, a.Result.JSON())
				}
				return
			}
			if !slices.Equal(ids, []identity.CallID{"id of a"}) || a.Code() != "" {
				t.Errorf("ran %v, got %q", ids, a.Code())
			}
		})
	}
	t.Run("tool became repeatable since", func(t *testing.T) {
		f := newFixture(t, &fakeTool{definition: definition("a", tool.Idempotent)})
		r := request("a", ``)
		r.Started, r.Effect = true, tool.Mutating
		if a := f.calls(&fakeRecorder{}, r)[0]; a.Code() != errcode.ToolInterrupted || a.Allowed() {
			t.Errorf("got %s", a.Result.JSON())
		}
	})
	t.Run("tool was revoked since", func(t *testing.T) {
		r := request("theirs", ``)
		r.Started = true
		if a := newFixture(t).calls(&fakeRecorder{}, r)[0]; a.Code() != errcode.ToolNotAvailable {
			t.Errorf("got %q", a.Code())
		}
	})
	t.Run("later calls still run", func(t *testing.T) {
		f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating)})
		r, rec := request("a", ``), &fakeRecorder{}
		r.Started = true
		f.calls(rec, r, request("a", ``))
		wantLines(t, rec.lines, "start a:tool_interrupted a:allowed", "finish a:tool_interrupted a:ok")
	})
}

// Each call fails at one step and at all later ones. The first of them denies it.
func TestCall_StepOrder(t *testing.T) {
	d := definition("a", tool.Mutating)
	d.Input = json.RawMessage(`{"type":"object","required":["x"]}`)
	f := newFixture(t, &fakeTool{definition: d, run: mustNotRun(t)})
	tests := []struct {
		name, tool, args string
		code             errcode.Code
		text             string
	}{
		{"parse before authorize", "theirs", `[`, errcode.InvalidArguments, "malformed or ambiguous JSON"},
		{"authorize before validate", "theirs", `{}`, errcode.ToolNotAvailable, "not available"},
		{"validate before check retry", "a", `{}`, errcode.InvalidArguments, "x"},
		{"check retry last", "a", `{"x":1}`, errcode.ToolInterrupted, "outcome is unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(tt.tool, tt.args)
			r.Started = true
			a := f.calls(&fakeRecorder{}, r)[0]
			if a.Code() != tt.code || !strings.Contains(string(a.Result.JSON()), tt.text) {
				t.Errorf("got %s, want %q", a.Result.JSON(), tt.code)
			}
		})
	}
}

// nilMap returns a nil map, in a way that vet does not see.
func nilMap() map[string]int { return nil }

// Effect and NextState tell a Recorder what a call may do, before it runs. A denied
// call counts as Mutating and leads nowhere.
func TestAdmission_EffectAndNextState(t *testing.T) {
	mover := definition("move", tool.Idempotent)
	mover.State = "next"
	strict := definition("strict", tool.ReadOnly)
	strict.State, strict.Input = "next", json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}`)
	f := newFixture(t, &fakeTool{definition: definition("read", tool.ReadOnly)}, &fakeTool{definition: mover}, &fakeTool{definition: strict})
	for _, tt := range []struct {
		name   string
		effect tool.Effect
		next   string
	}{{"read", tool.ReadOnly, ""}, {"move", tool.Idempotent, "next"}, {"theirs", tool.Mutating, ""}, {"fly", tool.Mutating, ""}, {"strict", tool.ReadOnly, ""}} {
		rec := &fakeRecorder{started: func(calls []*gate.Admission) error {
			if a := calls[0]; a.Effect() != tt.effect || a.NextState() != tt.next {
				t.Errorf("%s: got effect %s and state %q, want %s and %q", tt.name, a.Effect(), a.NextState(), tt.effect, tt.next)
			}
			return nil
		}}
		f.calls(rec, request(tt.name, ``))
	}
}
