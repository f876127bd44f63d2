// Package replay owns the recording of model traffic and the model that plays
// one back, without a key and without a network.
//
// A Recorder wraps the models of a run and writes one line of JSON for every
// answer. New makes a Model of such lines: asked what was asked then, it
// answers what was answered then; asked anything else, it fails with
// script_diverged and says what the first difference is.
//
// A request is the same as a recorded one when its role, workflow state,
// system prompt, names of tools, summary and the whole conversation are. Ids
// (UUIDs) and times (RFC 3339) differ from run to run: in a recording they are
// marks, ⟨id 1⟩ and ⟨time⟩. ⟨id 1⟩ to ⟨id 3⟩ are the agent, its parent and its
// task; the others are numbered as they appear in the conversation, and
// ⟨id p1⟩ and so on as they appear in system prompt, tools or summary alone. A
// played answer has the ids of the conversation at hand; an id that the model
// made up, and a time, stay as they were. Results of calls of one answer count
// in the order of the calls, not in that of their ends. Descriptions and
// schemas of tools, the content of images and the reasoning of a provider are
// not compared.
//
// The lines of a conversation are a chain: each holds the items that are new
// since the line before, which after names, and its key is a digest of the
// conversation from its beginning and of what was sent with it. A line whose
// content does not have its key is refused. The system prompt and the tools are
// left out where the line before says the same.
//
// Secrets are replaced by *** before anything else is done, so neither a line
// nor its key depends on one. An answer that repeated a secret is played with
// ***. A conversation that holds a secret again is the recorded one only for a
// Model that is told its secrets (Config); for any other it differs.
//
// A recording holds what models were sent and said, in clear: keep it as
// closely as the conversations themselves.
package replay

import (
	"context"
	"iter"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Config is what a Model needs to know. The zero Config is the default.
type Config struct {
	// Secrets gives what may stand in a conversation now where *** stands in
	// the recording. Nil gives none: such a conversation differs then.
	Secrets func() []string
}

// Model is a model.Model that plays a recording. Safe for concurrent use.
type Model struct {
	name    string
	window  int
	vault   secretSource
	entries []*entry

	mu     sync.Mutex          // guards the lists of answers
	unused map[string][]*entry // by key, in the order of the recording; the last one stays
}

// New makes a Model of a recording; name is what errors call it, as a file's
// name. An error carries the code invalid_config and names the line: it is no
// JSON, has a field that no Recorder writes, does not have its key, or the
// recording is empty.
func New(name string, data []byte) (*Model, error) { return Config{}.New(name, data) }

// New is New with what a Model needs to know.
func (c Config) New(name string, data []byte) (*Model, error) {
	entries, err := read(data)
	if err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "recording %s, %s", name, err)
	}
	m := &Model{name: name, vault: secretSource{secrets: c.Secrets}, entries: entries, unused: map[string][]*entry{}}
	for _, e := range entries {
		m.unused[e.line.Key] = append(m.unused[e.line.Key], e)
		if w := e.line.Window; w > 0 && (m.window == 0 || w < m.window) {
			m.window = w
		}
	}
	return m, nil
}

// Window implements model.LanguageModel: it is the smallest one recorded, 0 when no
// recorded model was a language model; then this is none either (model.Window).
func (m *Model) Window() int { return m.window }

// Generate implements model.Model: it yields one Delta, the recorded answer.
// Its Usage has the tokens that were recorded, and costs nothing.
//
// Agents that ask the same get the answers recorded for it in their order,
// each once; when there are no more, the last one again. Which agent comes
// first is not recorded.
//
// An error carries script_diverged, with the detail step, counted over the
// answers of the conversation from 1: nothing recorded answers this request.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		answer, err := m.answer(ctx, r)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Answer: answer}, nil)
	}
}

func (m *Model) answer(ctx context.Context, r model.Request) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q := newRequest(r, m.vault.redactor())
	e := m.take(q.key())
	if e == nil {
		return nil, m.diverged(q, diffRequest(m.entries, q))
	}
	a, err := e.playback(q.ids.resolve)
	if err != nil {
		return nil, m.diverged(q, err.Error())
	}
	return a, nil
}

// take gives the next line with a key, nil when there is none.
func (m *Model) take(key string) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.unused[key]
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	m.unused[key] = list[1:]
	return list[0]
}

func (m *Model) diverged(q *request, how string) error {
	return errcode.New(errcode.ScriptDiverged, "recording %s, role %s, step %d: %s", m.name, quoteName(q.Role), q.step, how).With("step", q.step)
}
