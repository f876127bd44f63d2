// Package replay records what models are asked and answer, and plays a recording back as
// a model that needs no key and no network.
//
//	recorder := replay.NewRecorder(file, secrets)
//	m = recorder.Wrap(m) // and use m as before
//
//	m, err := replay.New("run.jsonl", recording)
//	answer := m.Generate(ctx, request) // the recorded answer
//
// A recording has one line of JSON for each answer. A Model that gets a recorded request returns
// the recorded answer. For any other request it fails with script_diverged. The error describes the
// first differences from the nearest recorded request.
//
// # What is compared
//
// Two requests are equal if they have the same role, workflow state, system prompt, opening and
// note. They must also have the same names of tools that may be called, summary and conversation.
// Recordings of an earlier form have no opening: their system prompts are not compared. Tool
// descriptions and schemas, image content and a provider's reasoning are not compared. The order in
// which concurrent calls end is not compared either.
//
// Ids (UUIDs) and times (RFC 3339) differ from run to run. A recording has placeholders
// for them. ⟨id 1⟩ to ⟨id 3⟩ are the agent, its parent and its task. Further ids are
// numbered as they appear in the conversation, and times are ⟨time⟩. Ids that appear only
// in the system prompt, the tools or the summary are ⟨id p1⟩ and so on. A played answer
// has the ids of the current conversation. An id or a time that the model made up stays.
//
// # Lines
//
// The lines of a conversation form a chain. Each line has the items that are new since the line
// that "after" names. It also has the system prompt, the opening and the tools if they changed. Its
// key is a digest of the whole request. New rejects a line whose content does not match.
//
// # Secrets
//
// Secrets are replaced by *** first, so neither a line nor its key depends on one. An
// answer that repeated a secret is played with ***. A conversation that contains a secret
// again matches the recorded one only for a Model that knows its secrets (Config).
//
// Everything else that models are sent and answer is recorded in clear text: protect a
// recording as you protect the conversations.
package replay

import (
	"context"
	"iter"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
)

// Config configures a Model. The zero Config is the default.
type Config struct {
	// Secrets returns the secrets that requests may contain where the recording has
	// ***. If it is nil, requests with secrets differ from the recorded ones.
	Secrets func() []string
}

// Model is a model.Model that plays a recording. It is safe for concurrent use.
type Model struct {
	name    string
	window  int
	secrets func() []string
	entries []*entry

	mu     sync.Mutex          // guards the lists in unused
	unused map[string][]*entry // by key, in the order of the recording; the last one stays
}

// New returns a Model that plays data. Errors mention name, for example a file name.
//
// An error has the code invalid_config and the number of a line. The line is not JSON,
// has a field that no Recorder writes, or does not match its key. An empty recording is
// an error too.
func New(name string, data []byte) (*Model, error) { return Config{}.New(name, data) }

// New is the function New with a configuration.
func (c Config) New(name string, data []byte) (*Model, error) {
	entries, err := read(data)
	if err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "recording %s, %s", name, err)
	}
	m := &Model{name: name, secrets: c.Secrets, entries: entries, unused: map[string][]*entry{}}
	for _, e := range entries {
		key := e.line.Key
		if e.early {
			key = e.earlyKey(e.chain)
		}
		m.unused[key] = append(m.unused[key], e)
		if w := e.line.Window; w > 0 && (m.window == 0 || w < m.window) {
			m.window = w
		}
	}
	return m, nil
}

// Window implements model.LanguageModel. It returns the smallest recorded context window,
// 0 if no recorded model was a language model.
func (m *Model) Window() int { return m.window }

// Generate implements model.Model. It yields one AnswerDelta with the recorded answer, the
// recorded token counts and no cost.
//
// Agents that ask the same get the answers recorded for it in their order, each once.
// After the last answer, they get the last answer again. Which agent comes first is not
// recorded.
//
// If nothing recorded answers the request, the error has the code script_diverged. Its
// detail step is the number of the answer in the conversation, from 1.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		answer, err := m.answer(ctx, r)
		if err != nil {
			yield(model.AnswerDelta{}, err)
			return
		}
		yield(model.AnswerDelta{Answer: answer}, nil)
	}
}

// answer returns the recorded answer of a request.
func (m *Model) answer(ctx context.Context, r model.Request) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q := newRequest(r, newRedactor(m.secrets))
	e := m.nextEntry(q.key())
	if e == nil {
		e = m.nextEntry(q.earlyKey(q.conversation()))
	}
	if e == nil {
		return nil, m.divergedError(q, diffRequest(m.entries, q))
	}
	a, err := e.playback(q.ids.resolve)
	if err != nil {
		return nil, m.divergedError(q, err.Error())
	}
	return a, nil
}

// nextEntry returns the entry that answers a request, nil if there is none.
func (m *Model) nextEntry(key string) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.unused[key]
	if len(list) == 0 {
		return nil
	}
	if len(list) > 1 {
		m.unused[key] = list[1:]
	}
	return list[0]
}

// divergedError returns the error for a request that the recording does not answer.
func (m *Model) divergedError(q *request, how string) error {
	role := textutil.Truncate(textutil.Sanitize(q.Role), maxShown)
	return errcode.New(errcode.ScriptDiverged, "recording %s, role %s, step %d: %s", m.name, role, q.step, how).With("step", q.step)
}
