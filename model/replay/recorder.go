package replay

import (
	"context"
	"encoding/json"
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

// Recorder writes down what models answer. Safe for concurrent use.
type Recorder struct {
	w     io.Writer
	vault secretSource

	mu      sync.Mutex // guards the rest, and lets one line out after the other
	err     error
	threads map[identity.AgentID][]thread
}

// NewRecorder makes a Recorder that writes to w. Nothing that secrets gives at
// the time of a line, of eight bytes or more, stands in that line; a nil
// secrets gives none.
func NewRecorder(w io.Writer, secrets func() []string) *Recorder {
	return &Recorder{w: w, vault: secretSource{secrets: secrets}, threads: map[identity.AgentID][]thread{}}
}

// Wrap gives a Model that asks m and, when m has answered, writes one line,
// with one Write. It is a model.LanguageModel if m is one. Partial text is passed
// on as it comes; the answer once its line is written. A failure is not
// recorded, nor an answer whose Value is no JSON, which is one, nor what
// nobody waits for any more.
func (r *Recorder) Wrap(m model.Model) model.Model {
	w := recordingModel{m, r}
	if _, ok := model.Window(m); ok {
		return language{w}
	}
	return w
}

// Err gives what kept a line from being written, nil when all are. After the
// first such failure nothing is written: a recording ends, it has no gaps.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

type recordingModel struct {
	model model.Model
	r     *Recorder
}

type language struct{ recordingModel }

// Window implements model.LanguageModel.
func (l language) Window() int {
	tokens, _ := model.Window(l.model)
	return tokens
}

// Generate implements model.Model.
func (w recordingModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var last *model.Delta
		for delta, err := range w.model.Generate(ctx, r) {
			if err == nil && delta.Answer != nil { // kept until it is sure that no error comes
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
		w.record(r, last.Answer)
		yield(*last, nil)
	}
}

func (w recordingModel) record(r model.Request, a *model.Answer) {
	if a.Value != nil && !isValidJSON(a.Value) {
		return
	}
	hide := w.r.vault.redactor()
	q := newRequest(r, hide)
	l := line{
		Role: q.Role, Step: q.step, State: q.State, Compact: q.Compact, Key: q.key(),
		Answer: rewrite(compact(newAnswer(a)), hide, func(text string) string { return q.ids.answer(hide.Redact(text)) }),
		Reason: reasoning(a.Reasoning, hide), Provider: hide.Redact(chat.Clean(a.Provider)),
	}
	l.Window, _ = model.Window(w.model)
	w.r.write(r.Self.ID, q, l, hide)
}

// reasoning is a provider's own: nothing in it is changed but secrets.
func reasoning(doc json.RawMessage, hide *redact.Redactor) json.RawMessage {
	if len(doc) == 0 {
		return nil
	}
	return rewrite(canonicalJSON(doc), hide, hide.Redact)
}

// write completes a line by what the lines before say already, and writes it.
func (r *Recorder) write(agent identity.AgentID, q *request, l line, hide *redact.Redactor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	before := r.thread(agent, q)
	l.After, l.Items = before.key, q.items[before.items:]
	if before.key == "" || q.System != before.System {
		l.System = &q.System
	}
	if before.key == "" || !slices.Equal(q.Tools, before.Tools) {
		l.Tools = q.Tools
	}
	if r.err = put(r.w, compact(l), hide); r.err == nil {
		r.remember(agent, before, thread{q.head, l.Key, len(q.items), q.last()})
	}
}

// put writes a line, unless a secret stands in it even now: across two of its
// values, or as a number of the line's own.
func put(w io.Writer, text []byte, hide *redact.Redactor) error {
	if hide.Contains(text) {
		return errors.New("a line would hold a secret that is not within one of its texts, such as digits alone: the recording ends")
	}
	n, err := w.Write(append(text, '\n'))
	if err == nil && n <= len(text) {
		err = io.ErrShortWrite
	}
	return err
}

// thread is what the recording says of a conversation already.
type thread struct {
	head
	key   string // of its last line; "" when there is none
	items int
	chain digest
}

// Bounds of what is remembered. What is forgotten is written in full again.
const (
	maxAgents  = 10_000
	maxThreads = 4 // of an agent: it may be asked about its conversation in between
)

// thread finds the conversation that q goes on with. It needs r.mu.
func (r *Recorder) thread(agent identity.AgentID, q *request) (found thread) {
	for _, t := range r.threads[agent] {
		if t.items < len(q.chain) && q.chain[t.items] == t.chain && t.items >= found.items {
			found = t
		}
	}
	return found
}

// remember remembers that a conversation is now written as far as it is. It needs r.mu.
func (r *Recorder) remember(agent identity.AgentID, before, now thread) {
	if len(r.threads) >= maxAgents && r.threads[agent] == nil {
		clear(r.threads)
	}
	threads := slices.DeleteFunc(r.threads[agent], func(t thread) bool { return t.key == before.key })
	threads = append(threads, now)
	r.threads[agent] = threads[max(0, len(threads)-maxThreads):]
}
