package anthropic

import (
	"strconv"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// mark ends a block up to which the provider is to keep what it has read. Four
// are allowed; a request has one behind the tools, one behind the system
// prompt, and one behind each of the last two user messages. The earlier of
// these stands where the request before had its last: a provider that looks
// for what it keeps looks back a few blocks only.
const mark = `,"cache_control":{"type":"ephemeral"}`

// body gives a request's document in parts, so that neither the tools nor the
// conversation are copied.
func (m *Model) body(r model.Request, tools *chat.Tools) [][]byte {
	talk := encode(m.config.Model, chat.Turns(r))
	parts := [][]byte{m.head(r.System)}
	switch {
	case tools != nil:
		last := len(tools.Wire) - len("}]")
		parts = append(parts, []byte(`,"tools":`), tools.Wire[:last], []byte(mark+"}]"))
	case len(talk.called) > 0:
		parts = append(parts, talk.asTools())
	}
	parts = append(parts, []byte(`,"messages":[`))
	return append(append(parts, talk.marked()...), []byte(`]}`))
}

// head gives the document up to the tools.
func (m *Model) head(system string) []byte {
	doc := chat.AppendString([]byte(`{"model":`), m.config.Model)
	doc = strconv.AppendInt(append(doc, `,"max_tokens":`...), int64(m.config.MaxTokens), 10)
	if m.config.Stream {
		doc = append(doc, `,"stream":true`...)
	}
	if t := m.config.Temperature; t != nil {
		doc = strconv.AppendFloat(append(doc, `,"temperature":`...), *t, 'g', -1, 64)
	}
	if blank(system) {
		return doc
	}
	doc = appendText(append(doc, `,"system":[`...), system)
	return append(doc[:len(doc)-1], mark+"}]"...)
}

// encodeTool gives a tool as chat.Toolbox wants it.
func encodeTool(name, description string, parameters []byte) []byte {
	doc := chat.AppendString([]byte(`{"name":`), name)
	doc = chat.AppendString(append(doc, `,"description":`...), description)
	doc = append(append(doc, `,"input_schema":`...), parameters...)
	return append(doc, '}')
}

// asTools declares the tools a conversation has called when none is offered: a
// provider refuses calls of tools it has not heard of. None may be called.
func (t *talk) asTools() []byte {
	doc := []byte(`,"tool_choice":{"type":"none"},"tools":[`)
	for i, name := range t.called {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, encodeTool(name, "Not to be called now.", []byte(`{"type":"object"}`))...)
	}
	return append(doc, ']')
}
