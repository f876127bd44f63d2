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

// brain is one run of a generator, from the message that started it to its
// return. It always stands at a wish: what it yielded last. The first wish is
// to receive, and the message that fulfils it starts the generator.
type brain struct {
	model *Model
	vm    *js.VM // nil before the first message
	wish  wish
	log   []string // console lines since the last answer
	next  int      // the step it is in: as many answers came before
	read  int      // messages taken in, over the whole conversation

	c    *conversation // what it reads, as far as the last request went
	seen view          // what the step it is in saw
}

// newBrain gives a brain that has read nothing since the last turn ended.
func newBrain(m *Model, r model.Request) *brain {
	c := new(conversation)
	c.extend(r)
	return &brain{model: m, c: c, next: c.first, read: c.begin, wish: wish{Op: opReceive}}
}

// follow takes r in, if b stands exactly where feeding all of r would bring a
// new brain on the way: r continues what b read, in the same run, and the step
// b is in is recorded, or asked for, with what b saw in it. If not, b is of no
// use any more.
func (b *brain) follow(r model.Request) bool {
	if !b.c.continues(r) {
		return false
	}
	before := b.c.live.tools
	b.c.extend(r)
	if b.c.first > b.next || b.c.guesses() && !slices.Equal(before, r.Tools) {
		return false
	}
	if a := b.c.recorded(b.next); a != nil && a.entry.Read != b.read {
		return false
	}
	v := b.c.view(b.next)
	return v.state == b.seen.state && slices.Equal(v.tools, b.seen.tools)
}

// feed brings b through what is recorded and gives the answer of the first
// step that is not.
func (b *brain) feed(ctx context.Context) (*model.Answer, error) {
	for {
		if message := b.c.unread(b.next, b.read); b.wish.Op == opReceive && message != nil {
			if err := b.take(ctx, message); err != nil {
				return nil, err
			}
			continue
		}
		recorded := b.c.recorded(b.next)
		if recorded == nil {
			return b.answer(), nil
		}
		if err := b.pass(ctx, recorded); err != nil {
			return nil, err
		}
	}
}

// take gives the brain a message, the first of a run by starting it.
func (b *brain) take(ctx context.Context, m *model.Message) error {
	b.read++
	value := incoming{m.ID, m.From, readable(m.Payload), m.Task, m.CreatedAt.UTC().Format(time.RFC3339Nano)}
	if b.vm != nil {
		return b.step(ctx, "rolecall.resume", value)
	}
	if !b.model.serves(b.c.self.Role) {
		return b.fail(errcode.New(errcode.LLMCallFailed, "%s has no brain for role %q; it has brains for %q", b.model.name, b.c.self.Role, b.model.roles))
	}
	vm, err := b.model.load()
	if err != nil {
		return b.broken(err)
	}
	b.vm = vm
	return b.step(ctx, "rolecall.start", value)
}

// pass checks that the wish is what the record says was answered, and goes on
// from there. After a Wait the wish stays: its message has yet to come.
func (b *brain) pass(ctx context.Context, recorded *placed[model.Answer]) error {
	if !b.wish.matches(recorded.entry) {
		return b.fail(errcode.New(errcode.ScriptDiverged, "step %d: the record has %s, but %s now has %s",
			b.next+1, recordedWish(recorded.entry), b.model.name, b.wish))
	}
	var value any
	if b.wish.Op == opCalls {
		results, err := b.c.results(recorded)
		if err != nil {
			return err
		}
		value = b.wish.reply(results)
	}
	b.next, b.log = b.next+1, nil
	if b.wish.Op == opReceive {
		return nil
	}
	return b.step(ctx, "rolecall.resume", value)
}

// frame is what the driver gets with each step.
type frame struct {
	Self  who      `json:"self"`
	Tools []string `json:"tools"`
	Value any      `json:"value,omitempty"`
}

// who is self as a brain reads it.
type who struct {
	ID     identity.AgentID `json:"id"`
	Role   string           `json:"role"`
	Parent identity.AgentID `json:"parent"`
	Task   identity.TaskID  `json:"task"`
	State  string           `json:"state"`
}

// step runs the brain to its next wish.
func (b *brain) step(ctx context.Context, fn string, value any) error {
	b.seen = b.c.view(b.next)
	s := b.c.self
	arg, err := json.Marshal(frame{who{s.ID, s.Role, s.Parent, s.Task, b.seen.state}, slices.Concat([]string{}, b.seen.tools), value})
	if err != nil {
		return b.broken(err)
	}
	text, err := b.vm.Call(ctx, fn, arg)
	if err != nil {
		return b.broken(err)
	}
	b.wish = wish{}
	if err := json.Unmarshal(text, &b.wish); err != nil {
		return b.broken(err)
	}
	b.log = append(b.log, b.wish.Log...)
	return nil
}

// answer gives the wish as the answer of the live step.
func (b *brain) answer() *model.Answer {
	a := b.wish.answer()
	a.Read, a.Log = b.read, slices.Clone(b.log)
	return a
}

// broken says that the brain itself failed, unless it was only stopped.
func (b *brain) broken(err error) error {
	if e, ok := errors.AsType[*js.Error](err); ok && e.Kind == js.Cancelled {
		return errors.Unwrap(e)
	}
	return b.fail(errcode.New(errcode.LLMCallFailed, "the brain of role %q failed in step %d: %s", b.c.self.Role, b.next+1, b.model.place(err)))
}

func (b *brain) fail(e *errcode.Error) error {
	return e.With("step", b.next+1).With("read", b.read)
}

// close frees the VM.
func (b *brain) close() {
	if b.vm != nil {
		b.vm.Close()
	}
}
