package script

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/js"
	"github.com/rolecall/rolecall/model"
)

// run is one run of a generator, from the message that started it to its
// return. It always stands at a wish: what it yielded last. The first wish is
// to receive, and the message that fulfils it starts the generator.
type run struct {
	model *Model
	vm    *js.VM // nil before the first message
	wish  op
	log   []string // console lines since the last answer
	next  int      // the step it is in: as many answers came before
	read  int      // messages taken in, over the whole conversation

	c    *conversation // what it reads, as far as the last request went
	view view          // what the step it is in saw
}

// newBrain gives a brain that has read nothing since the last turn ended.
func newBrain(m *Model, r model.Request) *run {
	c := new(conversation)
	c.extend(r)
	return &run{model: m, c: c, next: c.first, read: c.begin, wish: op{Op: opReceive}}
}

// resumeFrom takes r in, if b stands exactly where feeding all of r would bring a
// new brain on the way: r continues what b read, in the same run, and the step
// b is in is recorded, or asked for, with what b saw in it. If not, b is of no
// use any more.
func (b *run) resumeFrom(r model.Request) bool {
	if !b.c.continues(r) {
		return false
	}
	before := b.c.live.tools
	b.c.extend(r)
	if b.c.first > b.next || b.c.toolsUnknown() && !slices.Equal(before, r.Tools) {
		return false
	}
	if a := b.c.recorded(b.next); a != nil && a.entry.MessagesRead != b.read {
		return false
	}
	v := b.c.view(b.next)
	return v.state == b.view.state && slices.Equal(v.tools, b.view.tools)
}

// replay brings b through what is recorded and gives the answer of the first
// step that is not.
func (b *run) replay(ctx context.Context) (*model.Answer, error) {
	for {
		if message := b.c.unread(b.next, b.read); b.wish.Op == opReceive && message != nil {
			if err := b.deliver(ctx, message); err != nil {
				return nil, err
			}
			continue
		}
		recorded := b.c.recorded(b.next)
		if recorded == nil {
			return b.answer(), nil
		}
		if err := b.skipRecorded(ctx, recorded); err != nil {
			return nil, err
		}
	}
}

// deliver gives the brain a message, the first of a run by starting it.
func (b *run) deliver(ctx context.Context, m *model.Message) error {
	b.read++
	value := incoming{m.ID, m.From, readable(m.Payload), m.Task, m.CreatedAt.UTC().Format(time.RFC3339Nano)}
	if b.vm != nil {
		return b.step(ctx, "rolecall.resume", value)
	}
	if !b.model.hasRole(b.c.self.Role) {
		return b.fail(errcode.New(errcode.LLMCallFailed, "%s has no brain for role %q; it has brains for %q", b.model.name, b.c.self.Role, b.model.roles))
	}
	vm, err := b.model.load()
	if err != nil {
		return b.scriptError(err)
	}
	b.vm = vm
	return b.step(ctx, "rolecall.start", value)
}

// skipRecorded checks that the wish is what the record says was answered, and goes on
// from there. After a Wait the wish stays: its message has yet to come.
func (b *run) skipRecorded(ctx context.Context, recorded *positioned[model.Answer]) error {
	if !b.wish.matches(recorded.entry) {
		return b.fail(errcode.New(errcode.ScriptDiverged, "step %d: the record has %s, but %s now has %s",
			b.next+1, formatOp(recorded.entry), b.model.name, b.wish))
	}
	var value any
	if b.wish.Op == opCalls {
		results, err := b.c.results(recorded)
		if err != nil {
			return err
		}
		value = b.wish.resultValue(results)
	}
	b.next, b.log = b.next+1, nil
	if b.wish.Op == opReceive {
		return nil
	}
	return b.step(ctx, "rolecall.resume", value)
}

// frame is what the driver gets with each step.
type frame struct {
	Self  selfJSON `json:"self"`
	Tools []string `json:"tools"`
	Value any      `json:"value,omitempty"`
}

// selfJSON is self as a brain reads it.
type selfJSON struct {
	ID     identity.AgentID `json:"id"`
	Role   string           `json:"role"`
	Parent identity.AgentID `json:"parent"`
	Task   identity.TaskID  `json:"task"`
	State  string           `json:"state"`
}

// step runs the brain to its next wish.
func (b *run) step(ctx context.Context, fn string, value any) error {
	b.view = b.c.view(b.next)
	s := b.c.self
	arg, err := json.Marshal(frame{selfJSON{s.ID, s.Role, s.Parent, s.Task, b.view.state}, slices.Concat([]string{}, b.view.tools), value})
	if err != nil {
		return b.scriptError(err)
	}
	text, err := b.vm.Call(ctx, fn, arg)
	if err != nil {
		return b.scriptError(err)
	}
	b.wish = op{}
	if err := json.Unmarshal(text, &b.wish); err != nil {
		return b.scriptError(err)
	}
	b.log = append(b.log, b.wish.Log...)
	return nil
}

// answer gives the wish as the answer of the live step.
func (b *run) answer() *model.Answer {
	a := b.wish.answer()
	a.MessagesRead, a.Log = b.read, slices.Clone(b.log)
	return a
}

// scriptError says that the brain itself failed, unless it was only stopped.
func (b *run) scriptError(err error) error {
	if e, ok := errors.AsType[*js.Error](err); ok && e.Kind == js.KindCancelled {
		return errors.Unwrap(e)
	}
	return b.fail(errcode.New(errcode.LLMCallFailed, "the brain of role %q failed in step %d: %s", b.c.self.Role, b.next+1, b.model.locate(err)))
}

func (b *run) fail(e *errcode.Error) error {
	return e.With("step", b.next+1).With("read", b.read)
}

// close frees the VM.
func (b *run) close() {
	if b.vm != nil {
		b.vm.Close()
	}
}
