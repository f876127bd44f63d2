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

// stopped is a process that stands still before or after a step of the call of
// a tool, as one that was killed there.
type stopped struct {
	at, released chan struct{}
	step         string
	after        bool
	dead         bool
}

func (s *stopped) here(step string, after bool) {
	if step == s.step && after == s.after && !s.dead {
		s.dead = true
		close(s.at)
		<-s.released
	}
}

// A process that is killed before or after any step of the gate leaves nothing
// behind: nothing was recorded and no tool was called. So the next one decides
// as if nobody had asked: what may be repeated runs once, what was started and
// may not be is interrupted, and what was revoked meanwhile is denied.
func TestACrashAtAStepOfTheGateLeavesNothing(t *testing.T) {
	for _, step := range gate.StepNames() {
		for _, after := range []bool{false, true} {
			for _, effect := range []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly} {
				for _, started := range []bool{false, true} {
					name := fmt.Sprintf("%s, after %v, %v, started %v", step, after, effect, started)
					t.Run(name, func(t *testing.T) { crashAt(t, step, after, effect, started) })
				}
			}
		}
	}
}

func crashAt(t *testing.T, step string, after bool, effect tool.Effect, started bool) {
	ran := 0
	h := open(t, &fake{d: definition("a", effect), run: func(context.Context, tool.Call) (tool.Result, error) {
		ran++
		return tool.Result{Text: "done"}, nil
	}})
	r := request("a", `{}`)
	r.Started, r.Effect = started, effect
	denied := started && effect == tool.Mutating // by repeat, which comes last

	s := &stopped{at: make(chan struct{}), released: make(chan struct{}), step: step, after: after}
	gate.AtSteps(t, s.here)
	ctx, kill := context.WithCancel(t.Context())
	dead := &book{started: func([]*gate.Admission) error { return errors.New("the process is dead") }}
	over := make(chan error)
	go func() {
		_, err := h.Call(ctx, ann, []gate.Request{r, request("theirs", `{}`)}, dead)
		over <- err
	}()
	<-s.at
	if len(dead.lines) > 0 || ran > 0 {
		t.Errorf("before the call was decided %q was recorded, and the tool ran %d times", dead.lines, ran)
	}

	next, want := &book{}, errcode.Code("")
	if denied {
		want = errcode.ToolInterrupted
	}
	if a := h.calls(next, r)[0]; a.Code() != want || (ran == 1) == denied {
		t.Errorf("the next process comes to %q, the tool ran %d times; want %q", a.Code(), ran, want)
	}
	h.grant()
	before := ran
	if a := h.calls(&book{}, r)[0]; a.Code() != errcode.ToolNotAvailable || ran != before {
		t.Errorf("after it was revoked the call comes to %q, and the tool ran %d times", a.Code(), ran-before)
	}

	kill()
	close(s.released)
	if err := <-over; err == nil || ran != before || len(dead.lines) > 1 {
		t.Errorf("the dead process came to %v, and the tool ran %d times", err, ran-before)
	}
}

// A call whose caller ended when its intent had just come on record does not
// begin; its outcome is that of one that was cut short.
func TestNoCallBeginsForACallerWhoHasEnded(t *testing.T) {
	for effect, code := range map[tool.Effect]errcode.Code{tool.Mutating: errcode.ToolInterrupted, tool.Idempotent: errcode.ToolTimeout, tool.ReadOnly: errcode.ToolTimeout} {
		t.Run(effect.String(), func(t *testing.T) {
			h := open(t, &fake{d: definition("a", effect), run: mustNotRun(t)})
			ctx, end := context.WithCancel(t.Context())
			b := &book{started: func([]*gate.Admission) error { end(); return nil }}
			list, err := h.Call(ctx, ann, []gate.Request{request("a", `{}`)}, b)
			if err != nil || len(list) != 1 || list[0].Code() != code || !list[0].Interrupted {
				t.Fatalf("got %v, %v, want %q", list, err, code)
			}
			wantLines(t, b.lines, "start a:allowed", "finish a:"+string(code))
		})
	}
}
