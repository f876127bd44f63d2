package chat

import (
	"encoding/json"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Draft is an answer that comes in pieces. The zero Draft is empty; it is not
// safe for concurrent use.
type Draft struct {
	text      strings.Builder
	calls     []*draftCall
	Stop      model.Stop
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

// Say adds text.
func (d *Draft) Say(text string) { d.text.WriteString(text) }

// Call begins a call or goes on with one: key tells the calls of an answer
// apart. Empty id and name leave what is known.
func (d *Draft) Call(key, id, name, args string) {
	c := d.find(key)
	if id != "" {
		c.id = id
	}
	if name != "" {
		c.name = name
	}
	c.args.WriteString(args)
}

func (d *Draft) find(key string) *draftCall {
	for i := len(d.calls) - 1; i >= 0; i-- {
		if d.calls[i].key == key {
			return d.calls[i]
		}
	}
	d.calls = append(d.calls, &draftCall{key: key})
	return d.calls[len(d.calls)-1]
}

// Check refuses a draft that has grown past every measure.
func (d *Draft) Check() error {
	size := d.text.Len() + len(d.Reasoning)
	for _, c := range d.calls {
		size += len(c.id) + len(c.name) + c.args.Len()
	}
	if size > maxText || len(d.calls) > maxCalls {
		return model.Lasting(errcode.LLMCallFailed, nil, "the model's answer has %d bytes and %d calls; at most %d and %d are taken", size, len(d.calls), maxText, maxCalls)
	}
	return nil
}

// Answer gives the whole answer. Tools tells offered names from real ones, and
// may be nil; items is the conversation that was answered. An answer that was
// refused calls nothing.
func (d *Draft) Answer(provider string, tools *Tools, items []model.Item) *model.Answer {
	a := &model.Answer{Text: clean(d.text.String()), Finish: model.End, Stop: d.Stop, Usage: d.Usage, Read: read(items)}
	if len(d.Reasoning) > 0 {
		a.Reasoning, a.Provider = d.Reasoning, provider
	}
	if d.Stop == model.Refusal {
		return a
	}
	for i, c := range d.calls {
		name := c.name
		if tools != nil {
			name = tools.Real(name)
		}
		a.Calls = append(a.Calls, model.Call{Provider: clean(c.id), Name: clean(name), Args: arguments(clean(c.args.String()), d.Stop != "" && i == len(d.calls)-1)})
	}
	if len(a.Calls) > 0 {
		a.Finish = model.Calls
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

// read counts the messages of a conversation: a language model reads them all.
func read(items []model.Item) (n int) {
	for _, item := range items {
		if item.Message != nil {
			n++
		}
	}
	return n
}
