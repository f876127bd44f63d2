package anthropic

import (
	"strconv"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// mark ends a block up to which the provider is to keep what it has read. Four
// are allowed; a request has one behind the tools, one behind the system
// prompt, and one behind each of the last two user messages. The earlier of
// these stands where the request before had its last: a provider that looks
// for what it keeps looks back a few blocks only.
const mark = `,"cache_control":{"type":"ephemeral"}`

// request gives a request's document in parts, so that neither the tools nor
// the conversation are copied.
func (c *client) request(r model.Request, tools *chat.Tools) *endpoint.Document {
	talk := encode(c.config.Model, chat.Turns(r))
	parts := [][]byte{c.head(r.System)}
	switch {
	case tools != nil:
		last := len(tools.JSON) - len("}]")
		parts = append(parts, []byte(`,"tools":`), tools.JSON[:last], []byte(mark+"}]"))
	case len(talk.called) > 0:
		parts = append(parts, talk.asTools())
	}
	parts = append(parts, []byte(`,"messages":[`))
	return &endpoint.Document{Parts: append(append(parts, talk.cacheControl()...), []byte(`]}`))}
}

// head gives the document up to the tools.
func (c *client) head(system string) []byte {
	doc := chat.AppendString([]byte(`{"model":`), c.config.Model)
	doc = strconv.AppendInt(append(doc, `,"max_tokens":`...), int64(c.config.MaxTokens), 10)
	if c.config.Stream {
		doc = append(doc, `,"stream":true`...)
	}
	if t := c.config.Temperature; t != nil {
		doc = strconv.AppendFloat(append(doc, `,"temperature":`...), *t, 'g', -1, 64)
	}
	if isBlank(system) {
		return doc
	}
	doc = appendText(append(doc, `,"system":[`...), system)
	return append(doc[:len(doc)-1], mark+"}]"...)
}

// encodeTool gives a tool as chat.ToolCache wants it.
func encodeTool(name, description string, parameters []byte) []byte {
	doc := chat.AppendString([]byte(`{"name":`), name)
	doc = chat.AppendString(append(doc, `,"description":`...), description)
	doc = append(append(doc, `,"input_schema":`...), parameters...)
	return append(doc, '}')
}

// asTools declares the tools a conversation has called when none is offered: a
// provider refuses calls of tools it has not heard of. None may be called.
func (t *encoder) asTools() []byte {
	doc := []byte(`,"tool_choice":{"type":"none"},"tools":[`)
	for i, name := range t.called {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, encodeTool(name, "Not to be called now.", []byte(`{"type":"object"}`))...)
	}
	return append(doc, ']')
}
