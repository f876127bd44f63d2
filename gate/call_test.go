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

// contract §3: {"error":"tool_not_available","toolName":"run_command",
// "message":"…"}, the message always contains the tool's name.
func TestWhatARefusalTells(t *testing.T) {
	d := definition("a", tool.Mutating)
	d.Input = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	limited := definition("limited", tool.Mutating)
	limited.States = []string{"review"}
	h := open(t, &fake{d: d, run: mustNotRun(t)}, &fake{d: limited, run: mustNotRun(t)})
	tests := []struct{ name, tool, args, want string }{
		{"a tool that is somebody else's", "theirs", `{}`, `{"error":"tool_not_available","message":"tool theirs is not available to this role","toolName":"theirs"}`},
		{"a tool of another state", "limited", `{}`, `{"error":"tool_not_available","message":"tool limited is not available in this workflow state","toolName":"limited"}`},
		{"a tool nobody has", "fly", `{}`, `{"error":"unknown_tool","message":"there is no tool fly","toolName":"fly"}`},
		{"an argument that is missing", "a", `{}`, `{"error":"invalid_arguments","message":"path: missing, want string","toolName":"a"}`},
		{"an argument of a wrong type", "a", `{"path":1}`, `{"error":"invalid_arguments","message":"path: want string, got 1","toolName":"a"}`},
		{"a key that is almost the schema's", "a", `{"Path":"x"}`, `{"error":"invalid_arguments","message":"arguments are malformed or ambiguous JSON: key \"Path\" differs from \"path\" in case only: write \"path\" at byte 1","toolName":"a"}`},
		{"arguments that a model did not finish", "a", `"{\"path\": "`, `{"error":"invalid_arguments","message":"arguments of a are no JSON object that is safe to read: document ends where a value was expected at byte 9; they have 9 bytes","toolName":"a"}`},
		{"an object within a text", "a", `"{\"path\": \"x\"}"`, `{"error":"invalid_arguments","message":"arguments of a are a text that holds an object, not an object: send the object itself","toolName":"a"}`},
		{"arguments of somebody else's tool that are no JSON", "theirs", `{`, `{"error":"invalid_arguments","message":"arguments of theirs are no JSON object that is safe to read: document ends where a key was expected at byte 1","toolName":"theirs"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &book{}
			a := h.calls(b, request(tt.tool, tt.args))[0]
			if a.Allowed() || !a.Result.IsError || a.NewState != "" || a.Interrupted || a.Superseded() {
				t.Errorf("got %+v, want a refusal", a)
			}
			if got := string(a.Result.JSON()); !strings.Contains(got, `"toolName":"`+tt.tool+`"`) || !sameRefusal(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if len(b.lines) != 2 || !strings.HasSuffix(b.lines[0], string(a.Code())) {
				t.Errorf("got record %q", b.lines)
			}
		})
	}
}

// sameRefusal compares all of a refusal but the wording of invalid arguments,
// which is package tool's.
func sameRefusal(got, want string) bool {
	var g, w struct{ Error, Message string }
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil {
		return false
	}
	return g.Error == w.Error && (g.Message == w.Message || g.Error == "invalid_arguments" && g.Message != "")
}

// A denied call's schema is not looked at: the answer tells nothing about it.
func TestTheArgumentsOfSomebodyElsesToolTellNothing(t *testing.T) {
	h := open(t)
	for _, args := range []string{``, `{}`, `{"secret":1}`, `{"a":{"b":[1]}}`} {
		if a := h.call("theirs", args); a.Code() != errcode.ToolNotAvailable {
			t.Errorf("%s: got %q, want tool_not_available", args, a.Code())
		}
	}
}

func TestArgumentsAreOneStrictObject(t *testing.T) {
	ran := false
	h := openWith(t, gate.Config{MaxArgs: 1 << 20}, &fake{d: definition("a", tool.ReadOnly), run: func(context.Context, tool.Call) (tool.Result, error) {
		ran = true
		return tool.Result{}, nil
	}})
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	tests := []struct {
		name, args string
		ok         bool
	}{
		{"left out", "", true},
		{"an object", `{"a":[1,null,"x"]}`, true},
		{"64 levels", deep(64), true},
		{"65 levels", deep(65), false},
		{"a few megabytes of brackets", strings.Repeat("[", 1<<20), false},
		{"more bytes than are taken", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, false},
		{"almost as many bytes", `{"a":"` + strings.Repeat("x", 1<<20-8) + `"}`, true},
		{"a repeated key", `{"a":1,"a":2}`, false},
		{"a key repeated by an escape", `{"a":1,"\u0061":2}`, false},
		{"an array", `[]`, false},
		{"null", `null`, false},
		{"a quoted text, as providers pass on what is no JSON", `"{}"`, false},
		{"two objects", `{}{}`, false},
		{"text behind", `{} x`, false},
		{"no UTF-8", "{\"a\":\"\xff\"}", false},
		{"a lone surrogate", `{"a":"\ud800"}`, false},
		{"an enormous number", `{"a":1e999999999}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ran = false
			a := h.call("a", tt.args)
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

func TestTheToolGetsWhatWasAuthorised(t *testing.T) {
	var got tool.Call
	d := definition("a", tool.Mutating)
	d.State = "next"
	h := open(t, &fake{d: d, run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		got = c
		return tool.Result{Structured: json.RawMessage(`{"ok":true}`)}, nil
	}})
	h.desk.move("first")
	r := request("a", `{"x":1}`)
	r.By = identity.ByOperator("forged")
	a := h.calls(&book{}, r)[0]
	if diff := cmp.Diff(got, tool.Call{ID: "id of a", Name: "a", Args: json.RawMessage(`{"x":1}`), By: ann}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if string(a.Result.JSON()) != `{"ok":true}` || a.NewState != "next" || a.Seat.State != "first" || a.Code() != "" || !a.Decision.Allowed() {
		t.Errorf("got %s, new state %q", a.Result.JSON(), a.NewState)
	}
}

func TestWhatAToolsEndBecomes(t *testing.T) {
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
		{"a failure of its own", answer(tool.Failure("a", errcode.New(errcode.FileNotFound, "no x")), nil), errcode.FileNotFound, "no x", ""},
		{"a failure without a code", answer(tool.Result{Text: "broken", IsError: true}, nil), "", "broken", ""},
		{"an error with a code", answer(tool.Result{}, errcode.New(errcode.ToolUnavailable, "no sandbox")), errcode.ToolUnavailable, "no sandbox", ""},
		{"an error without a code", answer(tool.Result{}, errors.New("secret path /x")), errcode.ToolExecutionFailed, "a could not be run", "secret path"},
		{"an internal error", answer(tool.Result{}, errcode.New(errcode.Internal, "secret")), errcode.ToolExecutionFailed, "a could not be run", "secret"},
		{"a panic", func(context.Context, tool.Call) (tool.Result, error) { panic("secret cause") }, errcode.ToolExecutionFailed, "a broke down", "secret cause"},
		{"a panic with an error", func(context.Context, tool.Call) (tool.Result, error) { panic(errors.New("x")) }, errcode.ToolExecutionFailed, "a broke down", "call_test.go"},
		{"a nil map", func(context.Context, tool.Call) (tool.Result, error) {
			noMap()["x"] = 1
			return tool.Result{}, nil
		}, errcode.ToolExecutionFailed, "a broke down", "nil map"},
		{"as much as is passed on", answer(tool.Result{Text: strings.Repeat("x", 100)}, nil), "", "xxx", ""},
		{"more than is passed on", answer(tool.Result{Text: strings.Repeat("x", 101)}, nil), errcode.ResultTooLarge, "101 bytes; at most 100", ""},
		{"more in two parts", answer(tool.Result{Text: strings.Repeat("x", 99), Structured: json.RawMessage(`{}`)}, nil), errcode.ResultTooLarge, "101 bytes", ""},
		{"something that is no JSON", answer(tool.Result{Structured: json.RawMessage(`{"a":`)}, nil), errcode.ToolExecutionFailed, "not JSON", ""},
		{"JSON that readers read differently", answer(tool.Result{Structured: json.RawMessage(`{"a":1,"a":2}`)}, nil), errcode.ToolExecutionFailed, "not JSON", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := definition("a", tool.Idempotent)
			d.State = "next"
			h := openWith(t, gate.Config{MaxResult: 100}, &fake{d: d, run: tt.run})
			b := &book{}
			a := h.calls(b, request("a", ``))[0]
			if got := string(a.Result.JSON()); a.Code() != tt.code || !strings.Contains(got, tt.text) || strings.Contains(got, "secret") {
				t.Errorf("got %q %s, want %q and %q", a.Code(), got, tt.code, tt.text)
			}
			if log := h.log.String(); !strings.Contains(log, tt.log) || tt.log == "" && log != "" {
				t.Errorf("got log %q, want %q in it", log, tt.log)
			}
			if moved := a.NewState == "next"; moved == a.Result.IsError || !a.Allowed() || a.Interrupted {
				t.Errorf("moved to %q after failure %v", a.NewState, a.Result.IsError)
			}
			if len(b.lines) != 2 {
				t.Errorf("got record %q", b.lines)
			}
		})
	}
}

// Nobody knows whether a Mutating tool acted that ended without an answer.
func TestAMutatingToolThatBreaksIsInterrupted(t *testing.T) {
	for name, run := range map[string]func(context.Context, tool.Call) (tool.Result, error){
		"a panic":               func(context.Context, tool.Call) (tool.Result, error) { panic("x") },
		"an error without code": func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("lost") },
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, &fake{d: definition("a", tool.Mutating), run: run})
			if a := h.call("a", ``); a.Code() != errcode.ToolInterrupted {
				t.Errorf("got %q %s, want tool_interrupted", a.Code(), a.Result.JSON())
			}
		})
	}
}

// Design §5: "a Mutating one that ended without an answer (crash, timeout,
// abort, lost connection) is tool_interrupted, outcome unknown".
func TestDeadlines(t *testing.T) {
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
		t.Run(tt.effect.String()+" tools that run out of time", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openWith(t, gate.Config{Timeout: time.Minute}, &fake{d: definition("a", tt.effect), run: waits})
				start := time.Now()
				a := h.call("a", ``)
				if took := time.Since(start); a.Code() != tt.code || !strings.Contains(string(a.Result.JSON()), tt.text) || took != time.Minute || a.Interrupted {
					t.Errorf("got %s after %v, cut %v", a.Result.JSON(), took, a.Interrupted)
				}
			})
		})
		t.Run(tt.effect.String()+" tools that are cut short by their caller", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			h := open(t, &fake{d: definition("a", tt.effect), run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
				cancel()
				return waits(ctx, c)
			}})
			list, err := h.Call(ctx, ann, []gate.Request{request("a", ``), request("a", ``)}, &book{})
			if len(list) == 0 || list[0].Code() != tt.code || !list[0].Interrupted {
				t.Errorf("got %d outcomes, %v", len(list), err)
			}
		})
	}
	t.Run("a tool that answers in spite of its end is heard", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := open(t, &fake{d: definition("a", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) {
			cancel()
			return tool.Result{Text: "done"}, nil
		}})
		list, err := h.Call(ctx, ann, []gate.Request{request("a", ``), request("a", ``)}, &book{})
		if len(list) != 1 || list[0].Code() != "" || list[0].Interrupted || !errors.Is(err, context.Canceled) {
			t.Errorf("got %d outcomes, %v", len(list), err)
		}
	})
	t.Run("without a limit of its own a gate waits five minutes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := open(t, &fake{d: definition("a", tool.ReadOnly), run: waits})
			start := time.Now()
			if a := h.call("a", ``); a.Code() != errcode.ToolTimeout || time.Since(start) != 5*time.Minute {
				t.Errorf("got %q after %v", a.Code(), time.Since(start))
			}
		})
	})
}

// waits is a tool that only ends when it must.
func waits(ctx context.Context, _ tool.Call) (tool.Result, error) {
	<-ctx.Done()
	return tool.Result{}, ctx.Err()
}

// No call waits behind another when its intent is on record.
func TestOnlyCallsThatReadShareARun(t *testing.T) {
	mover := definition("move", tool.ReadOnly)
	mover.State = "next"
	h := open(t, &fake{d: definition("read", tool.ReadOnly)}, &fake{d: definition("write", tool.Mutating)},
		&fake{d: definition("put", tool.Idempotent)}, &fake{d: mover})
	b := &book{}
	h.calls(b, request("read", ``), request("put", ``), request("write", ``), request("write", ``), request("theirs", ``),
		request("write", `[`), request("read", ``), request("move", ``), request("read", ``))
	wantLines(t, b.lines,
		"start read:allowed", "finish read:ok",
		"start put:allowed", "finish put:ok",
		"start write:allowed", "finish write:ok",
		"start write:allowed", "finish write:ok",
		"start theirs:tool_not_available write:invalid_arguments read:allowed move:allowed", "finish theirs:tool_not_available write:invalid_arguments read:ok move:ok",
		"start read:allowed", "finish read:ok")
}

// Design §4: "a tool that moves the state is a barrier for the ones after it."
func TestACallBehindOneThatMovesTheStateIsDecidedInTheNewState(t *testing.T) {
	finish, publish := definition("finish", tool.Idempotent), definition("publish", tool.Idempotent)
	finish.State, finish.States = "review", []string{"undefined"}
	publish.States = []string{"review"}
	h := open(t, &fake{d: finish}, &fake{d: publish})
	b := &book{finished: func(calls []*gate.Admission) error {
		for _, a := range calls {
			if a.NewState != "" {
				h.desk.move(a.NewState)
			}
		}
		return nil
	}}
	h.calls(b, request("publish", ``), request("finish", ``), request("publish", ``), request("finish", ``))
	wantLines(t, b.lines,
		"start publish:tool_not_available finish:allowed", "finish publish:tool_not_available finish:ok",
		"start publish:allowed", "finish publish:ok",
		"start finish:tool_not_available", "finish finish:tool_not_available")
}

func TestReadOnlyCallsGoSideBySide(t *testing.T) {
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
					return tool.Result{}, errors.New("met nobody")
				}
			}
		}
	}
	h := openWith(t, gate.Config{Timeout: 10 * time.Second}, &fake{d: definition("x", tool.ReadOnly), run: partner("x", "y")}, &fake{d: definition("y", tool.ReadOnly), run: partner("y", "x")})
	list := h.calls(&book{}, request("x", ``), request("y", ``))
	for i, name := range []string{"x", "y"} {
		if list[i].Code() != "" || !strings.HasPrefix(list[i].Result.Text, name) {
			t.Errorf("got %s in place of %s's answer", list[i].Result.JSON(), name)
		}
	}
}

func TestOtherCallsRunOneAfterAnother(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent} {
		t.Run(effect.String(), func(t *testing.T) {
			var trail []string // without a lock: the race detector would object
			step := func(_ context.Context, c tool.Call) (tool.Result, error) {
				trail = append(trail, "begin "+string(c.Args), "end "+string(c.Args))
				return tool.Result{}, nil
			}
			reads := 0
			read := func(context.Context, tool.Call) (tool.Result, error) { reads++; return tool.Result{}, nil }
			h := open(t, &fake{d: definition("a", effect), run: step}, &fake{d: definition("read", tool.ReadOnly), run: read})
			h.calls(&book{}, request("a", `{"n":1}`), request("a", `{"n":2}`), request("read", ``), request("a", `{"n":3}`))
			want := []string{`begin {"n":1}`, `end {"n":1}`, `begin {"n":2}`, `end {"n":2}`, `begin {"n":3}`, `end {"n":3}`}
			if diff := cmp.Diff(trail, want); diff != "" || reads != 1 {
				t.Errorf("%d reads, got before want:\n%s", reads, diff)
			}
		})
	}
}

// Design §4: "A call starts when its intent commits; that commit refuses a
// superseded View, and then steps 2–5 run again."
func TestASupersededDecisionIsMadeAgain(t *testing.T) {
	t.Run("and may be a denial then", func(t *testing.T) {
		h := open(t, &fake{d: definition("a", tool.Mutating), run: mustNotRun(t)})
		b := &book{}
		b.started = func(calls []*gate.Admission) error {
			if len(b.lines) == 1 {
				h.grant() // revoked between decision and commit
			}
			if calls[0].Superseded() {
				return gate.ErrSuperseded
			}
			return nil
		}
		a := h.calls(b, request("a", ``))[0]
		if a.Allowed() || a.Code() != errcode.ToolNotAvailable || a.Decision.Epoch() != 2 {
			t.Errorf("got %q at epoch %d", a.Code(), a.Decision.Epoch())
		}
		wantLines(t, b.lines, "start a:allowed", "start a:tool_not_available", "finish a:tool_not_available")
	})
	t.Run("and a denial is never superseded", func(t *testing.T) {
		h := open(t)
		b := &book{started: func(calls []*gate.Admission) error {
			h.grant("mine", "theirs")
			if calls[0].Superseded() {
				t.Error("a denial is superseded")
			}
			return nil
		}}
		if a := h.calls(b, request("theirs", ``))[0]; a.Allowed() {
			t.Error("a denial became an allowance")
		}
	})
	for _, changes := range []int{1, 15, 16, 17, 100} {
		t.Run(fmt.Sprintf("at most sixteen times: %d changes", changes), func(t *testing.T) {
			ran := 0
			h := open(t, &fake{d: definition("a", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Result{}, nil }})
			b := &book{}
			b.started = func(calls []*gate.Admission) error {
				if len(b.lines) <= changes {
					h.grant("mine")
				}
				if calls[0].Superseded() {
					return fmt.Errorf("wrapped: %w", gate.ErrSuperseded)
				}
				return nil
			}
			a := h.calls(b, request("a", ``))[0]
			if changes < 16 {
				if ran != 1 || a.Code() != "" || len(b.lines) != changes+2 {
					t.Errorf("got %q after %d tries, ran %d times", a.Code(), len(b.lines)-1, ran)
				}
				return
			}
			if ran != 0 || a.Code() != errcode.ToolNotAvailable || len(b.lines) != 18 || !strings.Contains(string(a.Result.JSON()), "tool a: what this role may call keeps changing") {
				t.Errorf("got %s after %d tries, ran %d times", a.Result.JSON(), len(b.lines)-1, ran)
			}
		})
	}
}

func TestARecordersErrorStopsEverything(t *testing.T) {
	broken := errors.New("disk full")
	t.Run("before anything has run", func(t *testing.T) {
		h := open(t, &fake{d: definition("a", tool.Mutating), run: mustNotRun(t)}, &fake{d: definition("r", tool.ReadOnly), run: mustNotRun(t)})
		b := &book{started: func([]*gate.Admission) error { return broken }}
		list, err := h.Call(t.Context(), ann, []gate.Request{request("r", ``), request("a", ``), request("a", ``)}, b)
		if !errors.Is(err, broken) || len(list) != 0 || len(b.lines) != 1 {
			t.Errorf("got %d outcomes, %v, record %q", len(list), err, b.lines)
		}
	})
	t.Run("when outcomes cannot be recorded", func(t *testing.T) {
		ran := 0
		h := open(t, &fake{d: definition("a", tool.Mutating), run: func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Result{}, nil }})
		b := &book{}
		b.finished = func([]*gate.Admission) error {
			if len(b.lines) == 4 {
				return broken
			}
			return nil
		}
		list, err := h.Call(t.Context(), ann, []gate.Request{request("a", ``), request("a", ``), request("a", ``)}, b)
		if !errors.Is(err, broken) || len(list) != 1 || ran != 2 {
			t.Errorf("got %d outcomes, %v, ran %d times", len(list), err, ran)
		}
	})
	t.Run("and so does a context that has ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h := open(t, &fake{d: definition("a", tool.Mutating), run: mustNotRun(t)})
		b := &book{}
		if list, err := h.Call(ctx, ann, []gate.Request{request("a", ``)}, b); !errors.Is(err, context.Canceled) || len(list) != 0 || len(b.lines) != 0 {
			t.Errorf("got %d outcomes, %v, record %q", len(list), err, b.lines)
		}
	})
	t.Run("no calls need no recorder", func(t *testing.T) {
		if list, err := open(t).Call(t.Context(), ann, nil, nil); list != nil || err != nil {
			t.Errorf("got %v, %v", list, err)
		}
	})
}

// Design §5: "calls in flight are decided again first. ReadOnly and Idempotent
// ones run again with the same id; a Mutating one … is tool_interrupted".
func TestACallWhoseOutcomeIsUnknown(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly} {
		t.Run(effect.String(), func(t *testing.T) {
			var ids []identity.CallID
			h := open(t, &fake{d: definition("a", effect), run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				ids = append(ids, c.ID)
				return tool.Result{Text: "done"}, nil
			}})
			r := request("a", ``)
			r.Started, r.Effect = true, effect
			a := h.calls(&book{}, r)[0]
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
	t.Run("is not repeated when the tool has become one that may be", func(t *testing.T) {
		h := open(t, &fake{d: definition("a", tool.Idempotent)})
		r := request("a", ``)
		r.Started, r.Effect = true, tool.Mutating
		if a := h.calls(&book{}, r)[0]; a.Code() != errcode.ToolInterrupted || a.Allowed() {
			t.Errorf("got %s", a.Result.JSON())
		}
	})
	t.Run("is decided again: what was revoked meanwhile is denied", func(t *testing.T) {
		r := request("theirs", ``)
		r.Started = true
		if a := open(t).calls(&book{}, r)[0]; a.Code() != errcode.ToolNotAvailable {
			t.Errorf("got %q", a.Code())
		}
	})
	t.Run("and lets the calls behind it go on", func(t *testing.T) {
		h := open(t, &fake{d: definition("a", tool.Mutating)})
		r, b := request("a", ``), &book{}
		r.Started = true
		h.calls(b, r, request("a", ``))
		wantLines(t, b.lines, "start a:tool_interrupted a:allowed", "finish a:tool_interrupted a:ok")
	})
}

// The steps come in their order: each case is wrong in everything from one
// step on, and the first of them answers.
func TestTheStepsComeInOrder(t *testing.T) {
	d := definition("a", tool.Mutating)
	d.Input = json.RawMessage(`{"type":"object","required":["x"]}`)
	h := open(t, &fake{d: d, run: mustNotRun(t)})
	tests := []struct {
		name, tool, args string
		code             errcode.Code
		text             string
	}{
		{"parse comes before authorize", "theirs", `[`, errcode.InvalidArguments, "no JSON object"},
		{"authorize comes before check", "theirs", `{}`, errcode.ToolNotAvailable, "not available"},
		{"check comes before repeat", "a", `{}`, errcode.InvalidArguments, "x"},
		{"repeat comes last", "a", `{"x":1}`, errcode.ToolInterrupted, "outcome is unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(tt.tool, tt.args)
			r.Started = true
			a := h.calls(&book{}, r)[0]
			if a.Code() != tt.code || !strings.Contains(string(a.Result.JSON()), tt.text) {
				t.Errorf("got %s, want %q", a.Result.JSON(), tt.code)
			}
		})
	}
}

// noMap gives a map that cannot be written to.
func noMap() map[string]int { return nil }
