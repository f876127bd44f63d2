package script

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/js/jsworker"
	"github.com/rolecall/rolecall/model"
)

// run is one execution of a script, from the message that started it to its return. It is
// always suspended at an op: what the script yielded last. The first op is a receive, and
// the message that it receives starts the generator.
type run struct {
	model     *Model
	vm        *jsworker.VM // nil before the first message
	alone     bool         // its worker serves no other run until the request is answered
	op        op
	log       []string // console lines since the last answer
	stepIndex int      // of the current step: the number of answers before it
	read      int      // messages received in the whole conversation

	agent identity.AgentID // never changes: drop reads it while another request uses the run
	c     *conversation    // as far as the last request went
	view  view             // what the current step saw
}

// newRun returns a run that has received nothing since the last turn ended.
func newRun(m *Model, req model.Request) *run {
	c := new(conversation)
	c.extend(req)
	return &run{model: m, c: c, stepIndex: c.first, agent: req.Self.ID, read: c.begin, op: op{Op: opReceive}}
}

// resumeFrom extends r by the rest of req and reports whether r is where a new run would
// be after the same conversation. If it is not, r must not be used any more.
//
// It is there if req continues r's conversation within the same turn. The current step, recorded or
// live, must also have the state and tools that the script saw in it.
func (r *run) resumeFrom(req model.Request) bool {
	if !r.c.isContinuedBy(req) {
		return false
	}
	before := r.c.live.tools
	r.c.extend(req)
	if r.c.first > r.stepIndex || r.c.toolsUnknown() && !slices.Equal(before, req.Tools) {
		return false
	}
	if a := r.c.recordedAnswer(r.stepIndex); a != nil && a.entry.MessagesRead != r.read {
		return false
	}
	v := r.c.view(r.stepIndex)
	return v.state == r.view.state && slices.Equal(v.tools, r.view.tools)
}

// replay runs the script through the recorded steps and returns the answer of the first
// step that is not recorded.
func (r *run) replay(ctx context.Context) (*model.Answer, error) {
	for {
		if message := r.c.unreadMessage(r.stepIndex, r.read); r.op.Op == opReceive && message != nil {
			if err := r.deliver(ctx, message); err != nil {
				return nil, err
			}
			continue
		}
		recorded := r.c.recordedAnswer(r.stepIndex)
		if recorded == nil {
			return r.answer(), nil
		}
		if err := r.skipRecorded(ctx, recorded); err != nil {
			return nil, err
		}
	}
}

// deliver passes a message to the script. The first message of a run starts the script.
func (r *run) deliver(ctx context.Context, m *model.Message) error {
	r.read++
	value := incoming{m.ID, m.From, validJSON(m.Payload), m.Task, m.CreatedAt.UTC().Format(time.RFC3339Nano)}
	if r.vm != nil {
		return r.step(ctx, "rolecall.resume", value)
	}
	if !r.model.hasRole(r.c.self.Role) {
		return r.fail(errcode.New(errcode.LLMCallFailed, "%s has no script for role %q; it has scripts for %s", r.model.name, r.c.self.Role, strings.Join(r.model.roles, ", ")))
	}
	load := r.model.group.Load
	if r.alone {
		load = r.model.group.LoadAlone
	}
	vm, err := load(ctx, func() { r.model.cache.drop(r) })
	if err != nil {
		return r.stepError(ctx, err)
	}
	r.vm = vm
	return r.step(ctx, "rolecall.start", value)
}

// skipRecorded checks that the op is the recorded one and continues with the recorded
// outcome. After a recorded Wait the op stays, as its message is yet to come.
func (r *run) skipRecorded(ctx context.Context, recorded *positioned[model.Answer]) error {
	if !r.op.matches(recorded.entry) {
		return r.fail(errcode.New(errcode.ScriptDiverged, "step %d: the record has %s, but %s now has %s",
			r.stepIndex+1, formatOp(recorded.entry), r.model.name, r.op))
	}
	var value any
	if r.op.Op == opCalls {
		results, err := r.c.results(recorded)
		if err != nil {
			return err
		}
		value = r.op.resultValue(results)
	}
	r.stepIndex, r.log = r.stepIndex+1, nil
	if r.op.Op == opReceive {
		return nil
	}
	return r.step(ctx, "rolecall.resume", value)
}

// frame is the argument of the prelude's start and resume.
type frame struct {
	Self  selfJSON `json:"self"`
	Tools []string `json:"tools"`
	Value any      `json:"value,omitempty"`
}

// selfJSON is the global self of a script.
type selfJSON struct {
	ID     identity.AgentID `json:"id"`
	Role   string           `json:"role"`
	Parent identity.AgentID `json:"parent"`
	Task   identity.TaskID  `json:"task"`
	State  string           `json:"state"`
}

// step runs the script to its next op.
func (r *run) step(ctx context.Context, fn string, value any) error {
	r.view = r.c.view(r.stepIndex)
	s := r.c.self
	arg, err := json.Marshal(frame{selfJSON{s.ID, s.Role, s.Parent, s.Task, r.view.state}, append([]string{}, r.view.tools...), value})
	if err != nil {
		return r.scriptError(err)
	}
	text, err := r.vm.CallFunction(ctx, fn, arg)
	if err != nil {
		return r.stepError(ctx, err)
	}
	if r.op, err = parseOp(text); err != nil {
		r.vm.Discard()
		return r.scriptError(err)
	}
	r.log = append(r.log, r.op.Log...)
	return nil
}

// answer returns the op as the answer of the live step.
func (r *run) answer() *model.Answer {
	a := r.op.answer()
	a.MessagesRead, a.Log = r.read, slices.Clone(r.log)
	return a
}

// stepError returns the error of a step: the cause of the context that stopped it, ErrLost, or
// what the script or its worker did.
func (r *run) stepError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, jsworker.ErrLost):
		return err
	}
	return r.scriptError(err)
}

// scriptError returns an error of the script or of its worker. The causes of the latter are for the
// log.
func (r *run) scriptError(err error) error {
	return r.fail(errcode.Wrap(errcode.LLMCallFailed, errors.Unwrap(err), "the script of role %q failed in step %d: %s", r.c.self.Role, r.stepIndex+1, r.model.inSource(err)))
}

// fail adds the details of a failed turn to an error.
func (r *run) fail(e *errcode.Error) error {
	return e.With("step", r.stepIndex+1).With("read", r.read)
}

// close frees the VM.
func (r *run) close() {
	if r.vm != nil {
		r.vm.Close()
	}
}
