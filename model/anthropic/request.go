package anthropic

import (
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// cacheMark marks a block up to which the provider caches the request. Four marks are
// allowed. A request has a mark after the tools, after the system prompt and after
// each of the last two user messages. The previous request had its last mark at the
// earlier of these messages. The mark is repeated there because a cache lookup goes
// back only a few blocks.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// request returns the document of a request in parts. So neither the tools nor the conversation are
// copied.
func (c *client) request(r model.Request, tools *chat.ToolList) *endpoint.Document {
	conversation := encode(c.config.Model, chat.BuildTurns(r))
	parts := [][]byte{c.head(r.System)}
	if tools != nil {
		last := len(tools.JSON) - len("}]")
		parts = append(parts, []byte(`,"tools":`), tools.JSON[:last], []byte(cacheMark+"}]"))
		if r.NoCalls {
			parts = append(parts, []byte(`,"tool_choice":{"type":"none"}`))
		}
	} else if called := conversation.CalledTools(encodeTool); called != nil {
		parts = append(parts, []byte(`,"tool_choice":{"type":"none"},"tools":`), called)
	}
	parts = append(parts, []byte(`,"messages":[`))
	return &endpoint.Document{Parts: append(append(parts, conversation.Marked(cacheMark)...), []byte(`]}`))}
}

// head returns the document up to the tools.
func (c *client) head(system string) []byte {
	doc := chat.AppendString([]byte(`{"model":`), c.config.Model)
	if c.vertex {
		doc = []byte(`{"anthropic_version":"` + vertexVersion + `"`)
	}
	doc = strconv.AppendInt(append(doc, `,"max_tokens":`...), int64(c.config.MaxTokens), 10)
	if c.config.Stream {
		doc = append(doc, `,"stream":true`...)
	}
	if t := c.config.Temperature; t != nil {
		doc = strconv.AppendFloat(append(doc, `,"temperature":`...), *t, 'g', -1, 64)
	}
	if strings.TrimSpace(system) == "" {
		return doc
	}
	doc = appendText(append(doc, `,"system":[`...), system)
	return append(doc[:len(doc)-1], cacheMark+"}]"...)
}

// encodeTool returns a tool in the format of the API.
func encodeTool(name, description string, parameters []byte) []byte {
	doc := chat.AppendString([]byte(`{"name":`), name)
	doc = chat.AppendString(append(doc, `,"description":`...), description)
	doc = append(append(doc, `,"input_schema":`...), parameters...)
	return append(doc, '}')
}
