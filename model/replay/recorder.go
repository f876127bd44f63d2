package replay

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// Recorder records the answers of models. It is safe for concurrent use.
type Recorder struct {
	w       io.Writer
	secrets func() []string

	mu      sync.Mutex // guards the following; held while a line is written
	err     error
	threads map[identity.AgentID][]thread
}

// NewRecorder returns a Recorder that writes to w. A line contains none of the secrets
// that the function returns when the line is written, as far as they have eight bytes or
// more. A nil function returns none.
func NewRecorder(w io.Writer, secrets func() []string) *Recorder {
	return &Recorder{w: w, secrets: secrets, threads: map[identity.AgentID][]thread{}}
}

// Wrap returns a Model that asks m and records each answer: one line, written with one
// Write before the answer is passed on. Partial text is passed on as it comes. The Model
// has the context window of m.
//
// Not recorded are failures, answers whose Value is not JSON, and answers that the caller
// does not wait for.
func (r *Recorder) Wrap(m model.Model) model.Model {
	return recordingModel{model.WindowWrapper{Model: m}, r}
}

// Err returns the error that ended the recording, nil if there is none. After an error
// the Recorder writes nothing more, so that a recording has no gaps.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// recordingModel is the Model that Wrap returns.
type recordingModel struct {
	model.WindowWrapper
	r *Recorder
}

// Generate implements model.Model.
func (m recordingModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		var last *model.AnswerDelta
		for delta, err := range m.Model.Generate(ctx, r) {
			if err == nil && delta.Answer != nil { // held back, as an error may follow it
				last = &delta
				continue
			}
			if !yield(delta, err) || err != nil {
				return
			}
		}
		if last == nil {
			return
		}
		m.record(r, last.Answer)
		yield(*last, nil)
	}
}

// record writes the line of an answer.
func (m recordingModel) record(r model.Request, a *model.Answer) {
	if a.Value != nil && !isEmbeddable(a.Value) {
		return
	}
	hide := newRedactor(m.r.secrets)
	q := newRequest(r, hide)
	l := line{
		Role: q.Role, Step: q.step, State: q.State, Note: q.Note, Compact: q.Compact, Key: q.key(), Window: m.Window(),
		Answer:   rewrite(marshal(newAnswer(a)), hide, func(s string) string { return q.ids.substituteKnown(hide.RedactText(s)) }),
		Provider: hide.RedactText(chat.CleanText(a.Provider)),
	}
	if len(a.Reasoning) > 0 { // belongs to the provider: only secrets are replaced
		l.Reason = rewrite(embeddable(a.Reasoning), hide, hide.RedactText)
	}
	m.r.write(r.Self.ID, q, l, hide)
}

// newRedactor returns the redactor of the secrets there are now.
func newRedactor(secrets func() []string) *redact.Redactor {
	if secrets == nil {
		return nil
	}
	return redact.New(secrets()...)
}

// write adds to a line what earlier lines do not have, and writes it.
func (r *Recorder) write(agent identity.AgentID, q *request, l line, hide *redact.Redactor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	before := r.longestThread(agent, q)
	l.After, l.Items = before.key, q.items[before.items:]
	if before.key == "" || q.System != before.System {
		l.System = &q.System
	}
	if before.key == "" || q.Opening != before.Opening {
		l.Opening = &q.Opening
	}
	if before.key == "" || !slices.Equal(q.Tools, before.Tools) {
		l.Tools = q.Tools
	}
	if r.err = writeLine(r.w, marshal(l), hide); r.err == nil {
		r.remember(agent, before, thread{q.head, l.Key, len(q.items), q.conversation()})
	}
}

// writeLine writes a line, unless it still contains a secret. Such a secret spans two values of the
// line, or is one of the line's own numbers.
func writeLine(w io.Writer, text []byte, hide *redact.Redactor) error {
	if hide.Contains(text) {
		return errors.New("a secret spans several values of a line and cannot be hidden: the recording ends")
	}
	n, err := w.Write(append(text, '\n'))
	if err == nil && n <= len(text) {
		err = io.ErrShortWrite
	}
	return err
}

// thread is a conversation as far as it is recorded.
type thread struct {
	head
	key   string // of its last line; "" if nothing is recorded
	items int
	chain digest
}

// Bounds of what a Recorder remembers. A conversation that it has forgotten is recorded
// again from its beginning.
const (
	maxAgents  = 10_000
	maxThreads = 4 // of one agent: its model may also be asked for a summary, for example
)

// longestThread returns the longest recorded conversation that q continues. It must be called
// with mu held.
func (r *Recorder) longestThread(agent identity.AgentID, q *request) (found thread) {
	for _, t := range r.threads[agent] {
		if t.items < len(q.chain) && q.chain[t.items] == t.chain && t.items >= found.items {
			found = t
		}
	}
	return found
}

// remember replaces a conversation by its new state. It must be called with mu held.
func (r *Recorder) remember(agent identity.AgentID, before, now thread) {
	if len(r.threads) >= maxAgents && r.threads[agent] == nil {
		clear(r.threads)
	}
	threads := slices.DeleteFunc(r.threads[agent], func(t thread) bool { return t.key == before.key })
	threads = append(threads, now)
	r.threads[agent] = threads[max(0, len(threads)-maxThreads):]
}
