package chat

import (
	"encoding/json"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// AnswerBuilder is an answer that comes in pieces. The zero Draft is empty; it is not
// safe for concurrent use.
type AnswerBuilder struct {
	text      strings.Builder
	calls     []*draftCall
	args      int  // bytes of all ids, names and arguments
	overflow  bool // something was left out: the draft is refused
	Stop      model.StopReason
	Usage     model.Usage
	Reasoning json.RawMessage
}

type draftCall struct {
	key, id, name string
	args          strings.Builder
}

// What a draft may grow to: a stream that does not end is a fault.
const (
	maxText  = 8 << 20
	maxCalls = 256
)

// AppendText adds text.
func (d *AnswerBuilder) AppendText(text string) {
	if d.hasRoom(len(text)) {
		d.text.WriteString(text)
	}
}

// HasText says whether there is text.
func (d *AnswerBuilder) HasText() bool { return d.text.Len() > 0 }

// hasRoom says whether there is some for more bytes. What there is none for is
// left out, so that no provider makes a draft grow between two Checks.
func (d *AnswerBuilder) hasRoom(more int) bool {
	d.overflow = d.overflow || d.text.Len()+d.args+len(d.Reasoning)+more > maxText
	return !d.overflow
}

// Call begins a call or goes on with one: key tells the calls of an answer
// apart. Empty id and name leave what is known.
func (d *AnswerBuilder) Call(key, id, name, args string) {
	more := len(id) + len(name) + len(args)
	c := d.find(key)
	if c == nil || !d.hasRoom(more) {
		return
	}
	d.args += more
	if id != "" { // a clone: id may be a part of a large event, which it would keep
		c.id = strings.Clone(id)
	}
	if name != "" {
		c.name = strings.Clone(name)
	}
	c.args.WriteString(args)
}

// find gives the call of a key, a new one if there is none; nil when there are
// too many.
func (d *AnswerBuilder) find(key string) *draftCall {
	for i := len(d.calls) - 1; i >= 0; i-- {
		if d.calls[i].key == key {
			return d.calls[i]
		}
	}
	if len(d.calls) == maxCalls {
		d.overflow = true
		return nil
	}
	d.calls = append(d.calls, &draftCall{key: key})
	return d.calls[len(d.calls)-1]
}

// Check refuses a draft that has grown past every measure.
func (d *AnswerBuilder) Check() error {
	if d.hasRoom(0) {
		return nil
	}
	return model.Permanent(errcode.LLMCallFailed, nil, "the model's answer has more than %d calls or %d bytes, which is the most that is taken", maxCalls, maxText)
}

// Answer gives the whole answer. Tools tells offered names from real ones, and
// may be nil; items is the conversation that was answered. An answer that was
// refused calls nothing.
func (d *AnswerBuilder) Answer(provider string, tools *Tools, items []model.Item) *model.Answer {
	a := &model.Answer{Text: Clean(d.text.String()), Finish: model.FinishEnd, Stop: d.Stop, Usage: d.Usage, MessagesRead: model.Messages(items)}
	if len(d.Reasoning) > 0 {
		a.Reasoning, a.Provider = d.Reasoning, provider
	}
	if d.Stop == model.Refusal {
		return a
	}
	for i, c := range d.calls {
		a.Calls = append(a.Calls, model.Call{Provider: Clean(c.id), Name: Clean(tools.OriginalName(c.name)), Args: arguments(Clean(c.args.String()), d.Stop != "" && i == len(d.calls)-1)})
	}
	if len(a.Calls) > 0 {
		a.Finish = model.FinishToolCalls
	}
	return a
}

// arguments gives what a provider sent as JSON, quoted when it is none. No
// arguments are an empty object, but not of the last call of an answer that
// was cut off: there they may just not have come.
func arguments(text string, cut bool) json.RawMessage {
	switch {
	case strings.TrimSpace(text) == "" && !cut:
		return json.RawMessage(`{}`)
	case !Valid(text):
		quoted, _ := json.Marshal(text) // a string always marshals
		return quoted
	}
	return json.RawMessage(text)
}
