// Package human implements a model that is a person at a terminal, who answers
// for an agent with text or with a tool call.
//
//	me := human.New(os.Stdin, os.Stderr, nil)
//	for delta, err := range me.Generate(ctx, request) { … }
//
// Requests of several agents are shown one after the other, in the order they
// arrive. Each shows what is new since the agent's last answer. The person types
// the text of the answer, or chooses a tool and types its arguments as JSON. As
// with any model, the answer is a proposal that the gate decides.
//
// Everything shown comes from models, tools and files, so it is sanitized. It
// cannot act on the terminal or look like a line of the dialogue. The package
// edits no lines, draws no screen, and keeps nothing between requests.
package human

import (
	"context"
	"errors"
	"io"
	"iter"

	"golang.org/x/sync/semaphore"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/lineinput"
	"github.com/rolecall/rolecall/model"
)

// maxLine is the size in bytes from which a line ends the input.
const maxLine = 1 << 20

// Model is a person at a terminal. It is not a model.LanguageModel: it has no
// context window. Safe for concurrent use.
type Model struct {
	turn    *semaphore.Weighted // held while a request is shown; guards lines and out
	lines   *lineinput.Reader
	out     *screen
	options Options
}

// Options connect a Model to the program around it. Nil Options, and nil
// functions, do nothing. Both functions must be safe for concurrent use.
type Options struct {
	// Name returns the display name of an agent, "" if it has none. Role is ""
	// for the sender of a message.
	Name func(id identity.AgentID, role string) string

	// Lock is called before a request is shown. Nothing else should write to the
	// terminal until unlock is called, after the answer or the cancellation.
	Lock func() (unlock func())
}

// New returns a Model that reads the person's input from in, line by line, and
// writes to out. Everything shown before a line is awaited is one Write.
//
// One goroutine reads in while a line is awaited. A Read cannot be cancelled, so
// the goroutine outlives a cancelled request and serves the next one.
func New(in io.Reader, out io.Writer, o *Options) *Model {
	m := &Model{turn: semaphore.NewWeighted(1), lines: lineinput.New(in, maxLine), out: &screen{out: out}}
	if o != nil {
		m.options = *o
	}
	if m.options.Name == nil {
		m.options.Name = func(identity.AgentID, string) string { return "" }
	}
	if m.options.Lock == nil {
		m.options.Lock = func() func() { return func() {} }
	}
	return m
}

// Generate shows r and yields one AnswerDelta with the person's answer, which counts as
// having read all messages of r. If ctx ends first, Generate yields its error and
// the terminal shows the cancellation. Once the input has ended, or a write has
// failed, Generate yields a permanent model.Error.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		answer, err := m.ask(ctx, r)
		yield(model.AnswerDelta{Answer: answer}, err)
	}
}

func (m *Model) ask(ctx context.Context, r model.Request) (*model.Answer, error) {
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer m.turn.Release(1)
	defer m.options.Lock()()
	defer m.out.flush()
	d := &dialog{screen: m.out, lines: m.lines, request: r, tools: toolChoices(r), names: m.options.Name}
	answer, err := d.run(ctx)
	if err != nil {
		return nil, d.fail(err)
	}
	answer.MessagesRead = model.CountMessages(r.Items)
	return answer, nil
}

// fail shows why no answer is needed any more and returns the error of Generate.
func (d *dialog) fail(err error) error {
	d.line("")
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		d.line("-- the request of %s is cancelled: %v", d.agentName(), err)
		return err
	}
	return model.PermanentError(errcode.LLMCallFailed, err, "the terminal input ended before an answer; run where a person can type, or set another model for the role")
}
