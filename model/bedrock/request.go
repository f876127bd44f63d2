package bedrock

import (
	"strings"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// cachePoint marks the place up to which Bedrock caches the request. Four marks are
// allowed. A request has a mark after the tools, after the system prompt and after each
// of the last two user messages.
const cachePoint = `,{"cachePoint":{"type":"default"}}`

// cachePointOf returns cachePoint, or "" for a model that rejects it. Models whose name
// does not say what they are have none.
func cachePointOf(model string) string {
	if !strings.Contains(model, "anthropic.claude-") || strings.Contains(model, "claude-3-") && !strings.Contains(model, "claude-3-7-") {
		return ""
	}
	return cachePoint
}

// request returns the document of a request in parts, so that neither the tools nor
// the conversation are copied.
func (c *client) request(r model.Request, tools *chat.ToolList) *endpoint.Document {
	mark := cachePointOf(c.config.Model)
	conversation := encode(c.config.Model, chat.BuildTurns(r))
	parts := [][]byte{c.head(r.System, mark)}
	if tools != nil {
		last, chosen := len(tools.JSON)-len("]"), choice(c.config.Options)
		if r.NoCalls { // the API has no choice for that; the note says it
			chosen = ""
		}
		parts = append(parts, []byte(`,"toolConfig":{"tools":`), tools.JSON[:last], []byte(mark+`]`+chosen+`}`))
	} else if called := conversation.CalledTools(encodeTool); called != nil {
		parts = append(parts, []byte(`,"toolConfig":{"tools":`), called, []byte{'}'})
	}
	parts = append(parts, []byte(`,"messages":[`))
	return &endpoint.Document{Parts: append(append(parts, conversation.Marked(mark)...), []byte(`]}`))}
}

// head returns the document up to the tools.
func (c *client) head(system, mark string) []byte {
	doc := append([]byte(`{"inferenceConfig":`), inference(c.config)...)
	if strings.TrimSpace(system) == "" {
		return doc
	}
	doc = appendText(append(doc, `,"system":[`...), system)
	return append(append(doc, mark...), ']')
}

// encodeTool returns a tool in the format of the API, which rejects an empty description.
func encodeTool(name, description string, parameters []byte) []byte {
	doc := chat.AppendString([]byte(`{"toolSpec":{"name":`), name)
	if strings.TrimSpace(description) != "" {
		doc = chat.AppendString(append(doc, `,"description":`...), description)
	}
	doc = append(append(doc, `,"inputSchema":{"json":`...), parameters...)
	return append(doc, `}}}`...)
}
