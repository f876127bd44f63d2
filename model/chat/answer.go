package chat

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// AnswerBuilder collects an answer that arrives in parts. The zero AnswerBuilder is
// empty. Not safe for concurrent use.
type AnswerBuilder struct {
	text      strings.Builder
	calls     []*draftCall
	callBytes int  // bytes of all ids, names and arguments
	overflow  bool // something was dropped; Check fails
	Stop      model.StopReason
	Usage     model.TokenUsage
	Reasoning json.RawMessage
}

type draftCall struct {
	key, id, name string
	args          strings.Builder
}

// Limits of an answer: a stream might never end.
const (
	maxAnswerBytes = 8 << 20
	maxCalls       = 256
)

// AppendText adds to the text of the answer.
func (b *AnswerBuilder) AppendText(text string) {
	if b.admit(len(text)) {
		b.text.WriteString(text)
	}
}

// HasText reports whether the answer has text.
func (b *AnswerBuilder) HasText() bool { return b.text.Len() > 0 }

// admit reports whether more bytes fit into the answer. Callers drop what does not fit, so that the
// answer stays bounded between two calls of Check. After one refusal nothing fits, and Check fails.
func (b *AnswerBuilder) admit(more int) bool {
	b.overflow = b.overflow || b.text.Len()+b.callBytes+len(b.Reasoning)+more > maxAnswerBytes
	return !b.overflow
}

// AppendCall adds args to the call with this key, which it starts if there is none. Keys
// distinguish the calls of one answer. An id or name that is not empty replaces
// the known one.
func (b *AnswerBuilder) AppendCall(key, id, name, args string) {
	more := len(id) + len(name) + len(args)
	c := b.callFor(key)
	if c == nil || !b.admit(more) {
		return
	}
	b.callBytes += more
	if id != "" { // cloned, since id may share memory with a large event
		c.id = strings.Clone(id)
	}
	if name != "" {
		c.name = strings.Clone(name)
	}
	c.args.WriteString(args)
}

// callFor returns the call with this key, a new one if there is none. It returns
// nil if there are too many calls.
func (b *AnswerBuilder) callFor(key string) *draftCall {
	for i := len(b.calls) - 1; i >= 0; i-- {
		if b.calls[i].key == key {
			return b.calls[i]
		}
	}
	if len(b.calls) == maxCalls {
		b.overflow = true
		return nil
	}
	b.calls = append(b.calls, &draftCall{key: key})
	return b.calls[len(b.calls)-1]
}

// Check returns a permanent model.Error if the answer exceeds its limits.
func (b *AnswerBuilder) Check() error {
	if b.admit(0) {
		return nil
	}
	return model.PermanentError(errcode.LLMCallFailed, nil, "the model's answer has more than %d calls or %d bytes", maxCalls, maxAnswerBytes)
}

// BuildAnswer returns the complete answer. tools, which may be nil, maps the provider's
// tool names back to the original names. items is the conversation that was answered. A
// refused answer has no calls. Thinking at the beginning of the text is reasoning; see
// splitThinking.
func (b *AnswerBuilder) BuildAnswer(provider string, tools *ToolList, items []model.Item) *model.Answer {
	thinking, text := splitThinking(CleanText(b.text.String()))
	a := &model.Answer{Text: text, Finish: model.FinishEnd, Stop: b.Stop, Usage: b.Usage, MessagesRead: model.CountMessages(items), Reasoning: b.Reasoning}
	if len(a.Reasoning) == 0 {
		a.Reasoning = textThinking(thinking)
	}
	if a.Reasoning != nil {
		a.Provider = provider
	}
	if b.Stop.Refused() {
		return a
	}
	for i, c := range b.calls {
		a.Calls = append(a.Calls, model.Call{Provider: CleanText(c.id), Name: CleanText(tools.OriginalName(c.name)), Args: arguments(CleanText(c.args.String()), b.Stop != "" && i == len(b.calls)-1)})
	}
	if len(a.Calls) > 0 {
		a.Finish = model.FinishToolCalls
	}
	return a
}

// arguments returns text as JSON. It quotes text that is not valid JSON. It turns empty
// text into an empty object. An object that was encoded twice is decoded once. In the last
// call of a truncated answer empty text is quoted too, since the arguments may not have
// arrived.
func arguments(text string, truncated bool) json.RawMessage {
	switch {
	case strings.TrimSpace(text) == "" && !truncated:
		return json.RawMessage(`{}`)
	case !ValidJSON(text):
		quoted, _ := json.Marshal(text) // a string always marshals
		return quoted
	}
	if doc := gjson.Parse(text); doc.Type == gjson.String && ValidJSON(doc.Str) && gjson.Parse(doc.Str).IsObject() {
		return json.RawMessage(doc.Str)
	}
	return json.RawMessage(text)
}
