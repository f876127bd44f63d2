// Package human owns the model that is a person at a terminal, who answers for
// an agent with text or with calls of its tools.
//
// Give New's Model to any role that a person is to play. Agents that ask at
// once have the terminal one after the other, first come, first served; each
// question shows what is new since the agent's last answer. What the person
// types is a proposal like any model's: the gate decides it, also where a
// schema was filled in field by field.
//
// Everything shown comes from models, tools and files, so nothing of it acts on
// the terminal or begins a line of its own. The package edits no lines, draws
// no screen, and keeps nothing between questions.
package human

import (
	"context"
	"errors"
	"io"
	"iter"

	"golang.org/x/sync/semaphore"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// Model is a person. It is no model.LanguageModel: nobody counts a person's tokens.
// Safe for concurrent use.
type Model struct {
	turn *semaphore.Weighted // who has it owns all below
	keys *lineReader
	out  *screen
	with Options
}

// Options fit a Model into the program around it. Nil Options, and nil
// functions, do nothing. Both are called from many goroutines.
type Options struct {
	// Name gives what an agent is called elsewhere on the terminal, "" when it
	// is not known. Role is "" for an agent that somebody else's message names.
	Name func(id identity.AgentID, role string) string

	// Lock is called before a question is shown. Until over is called, when
	// it has its answer or is void, nobody else should write to the terminal.
	Lock func() (over func())
}

// New gives the person who types into in, line by line, and reads out, which
// gets all that is to be seen before a line is awaited in one Write. While
// an answer is awaited, one goroutine reads in. It outlives a question that
// becomes void, because a Read cannot be taken back; the next question goes on
// with it, so a Model never has more than one.
func New(in io.Reader, out io.Writer, o *Options) *Model {
	m := &Model{turn: semaphore.NewWeighted(1), keys: newKeyboard(in), out: &screen{out: out}}
	if o != nil {
		m.with = *o
	}
	if m.with.Name == nil {
		m.with.Name = func(identity.AgentID, string) string { return "" }
	}
	if m.with.Lock == nil {
		m.with.Lock = func() func() { return func() {} }
	}
	return m
}

// Generate asks the person and yields one Delta, the answer; all messages of r
// count as read then. When ctx ends first it yields ctx's error at once and
// the terminal says that the question is void. When the input has ended, or the
// output failed, it yields a lasting model.Error, as it does ever after.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		answer, err := m.ask(ctx, r)
		yield(model.Delta{Answer: answer}, err)
	}
}

func (m *Model) ask(ctx context.Context, r model.Request) (*model.Answer, error) {
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer m.turn.Release(1)
	defer m.with.Lock()()
	defer m.out.flush()
	q := &dialog{screen: m.out, keys: m.keys, request: r, tools: offers(r), names: m.with.Name}
	answer, err := q.run(ctx)
	if err != nil {
		return nil, q.cancelled(err)
	}
	answer.MessagesRead = model.Messages(r.Items)
	return answer, nil
}

// cancelled says why a question needs no answer any more, and gives the error that
// its agent gets.
func (q *dialog) cancelled(err error) error {
	q.line("")
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		q.line("-- the question of %s is void: %v", q.asker(), err)
		return err
	}
	return model.Permanent(errcode.LLMCallFailed, err, "the person who answered at the terminal left; start again where somebody can type, or give the role another model")
}
