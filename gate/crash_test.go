package gate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/tool"
)

// stepPause blocks a goroutine before or after a step of the gate, as if the
// process had been killed there.
type stepPause struct {
	reached, resume chan struct{}
	step            string
	after           bool
	stopped         bool
}

func (s *stepPause) atStep(step string, after bool) {
	if step == s.step && after == s.after && !s.stopped {
		s.stopped = true
		close(s.reached)
		<-s.resume
	}
}

// A process that is killed before or after any step of the gate has recorded
// nothing and called no tool. The next process decides as if there had been no
// earlier try. It runs a repeatable call once. It reports a Mutating call that
// had started as interrupted. It denies what was revoked in the meantime.
func TestCall_CrashAtStepHasNoEffect(t *testing.T) {
	for _, step := range gate.StepNames() {
		for _, after := range []bool{false, true} {
			for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly} {
				for _, started := range []bool{false, true} {
					if step == "approve" && started && effect == tool.Mutating {
						continue // check retry, the step before, denies it
					}
					name := fmt.Sprintf("%s, after %v, %v, started %v", step, after, effect, started)
					t.Run(name, func(t *testing.T) { crashAt(t, step, after, effect, started) })
				}
			}
		}
	}
}

func crashAt(t *testing.T, step string, after bool, effect tool.Effect, started bool) {
	ran := 0
	f := newFixture(t, &fakeTool{definition: definition("a", effect), run: func(context.Context, tool.Call) (tool.Result, error) {
		ran++
		return tool.Result{Text: "done"}, nil
	}})
	r := request("a", `{}`)
	r.Started, r.Effect = started, effect
	denied := started && effect == tool.Mutating // by check retry

	s := &stepPause{reached: make(chan struct{}), resume: make(chan struct{}), step: step, after: after}
	gate.AtSteps(t, s.atStep)
	ctx, kill := context.WithCancel(t.Context())
	dead := &fakeRecorder{started: func([]*gate.Admission) error { return errors.New("the process is dead") }}
	over := make(chan error)
	go func() {
		_, err := f.Call(ctx, ann, []gate.CallRequest{r, request("theirs", `{}`)}, dead)
		over <- err
	}()
	<-s.reached
	if len(dead.lines) > 0 || ran > 0 {
		t.Errorf("before the decision: %q was recorded, and the tool ran %d times", dead.lines, ran)
	}

	next, want := &fakeRecorder{}, errcode.Code("")
	if denied {
		want = errcode.ToolInterrupted
	}
	if a := f.calls(next, r)[0]; a.Code() != want || (ran == 1) == denied {
		t.Errorf("next process: got %q, the tool ran %d times; want %q", a.Code(), ran, want)
	}
	f.grant()
	before := ran
	if a := f.calls(&fakeRecorder{}, r)[0]; a.Code() != errcode.ToolNotAvailable || ran != before {
		t.Errorf("after the revocation: got %q, and the tool ran %d times", a.Code(), ran-before)
	}

	kill()
	close(s.resume)
	if err := <-over; err == nil || ran != before || len(dead.lines) > 1 {
		t.Errorf("killed process: got %v, and the tool ran %d times", err, ran-before)
	}
}

// If the caller's context is done when the intent has just been recorded, the tool
// is not called. The outcome is that of a canceled call.
func TestCall_SkipsToolAfterCancel(t *testing.T) {
	for effect, code := range map[tool.Effect]errcode.Code{tool.Mutating: errcode.ToolInterrupted, tool.Idempotent: errcode.ToolTimeout, tool.ReadOnly: errcode.ToolTimeout} {
		t.Run(effect.String(), func(t *testing.T) {
			f := newFixture(t, &fakeTool{definition: definition("a", effect), run: mustNotRun(t)})
			ctx, end := context.WithCancel(t.Context())
			rec := &fakeRecorder{started: func([]*gate.Admission) error { end(); return nil }}
			list, err := f.Call(ctx, ann, []gate.CallRequest{request("a", `{}`)}, rec)
			if err != nil || len(list) != 1 || list[0].Code() != code || !list[0].Interrupted {
				t.Fatalf("got %v, %v, want %q", list, err, code)
			}
			wantLines(t, rec.lines, "start a:allowed", "finish a:"+string(code))
		})
	}
}
