package gemini

import (
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// request returns the document of a request in parts, so that neither the tools nor
// the conversation are copied.
func (c *client) request(r model.Request, tools *chat.ToolList) *endpoint.Document {
	parts := [][]byte{[]byte(`{`)}
	if tools != nil {
		parts = append(parts, []byte(`"tools":[{"functionDeclarations":`), tools.JSON, []byte(`}],`))
		if r.NoCalls {
			parts = append(parts, []byte(`"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},`))
		}
	}
	return &endpoint.Document{Parts: append(parts, c.head(r.System), c.encode(chat.BuildTurns(r)), []byte(`]}`))}
}

// head returns the document from after the tools up to the conversation.
func (c *client) head(system string) []byte {
	var doc []byte
	if system != "" {
		doc = appendText(append(doc, `"systemInstruction":{"parts":[`...), system)
		doc = append(doc, `]},`...)
	}
	doc = append(append(doc, `"generationConfig":`...), c.generation...)
	return append(doc, `,"contents":[`...)
}

// encodeTool returns a tool in the format of the API.
func encodeTool(name, description string, parameters []byte) []byte {
	doc := chat.AppendString([]byte(`{"name":`), name)
	doc = chat.AppendString(append(doc, `,"description":`...), description)
	doc = append(append(doc, `,"parametersJsonSchema":`...), parameters...)
	return append(doc, '}')
}
