package responses

import (
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// request returns the document of a request. The tools are a separate part, so that
// they are not copied.
func (c *client) request(r model.Request, tools *chat.ToolList) *endpoint.Document {
	turns := chat.BuildTurns(r)
	doc := slices.Grow(c.options(r.System), chat.SizeHint(turns))
	doc = append(doc, `,"input":[`...)
	for i, turn := range turns {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = c.appendTurn(doc, turn)
	}
	doc = append(doc, ']')
	if tools == nil {
		return &endpoint.Document{Parts: [][]byte{append(doc, '}')}}
	}
	if r.NoCalls {
		doc = append(doc, `,"tool_choice":"none"`...)
	}
	return &endpoint.Document{Parts: [][]byte{append(doc, `,"tools":`...), tools.JSON, []byte(`}`)}}
}

// options returns the beginning of the document, with the options of the Config.
func (c *client) options(system string) []byte {
	doc := appendField(nil, `{"model":`, c.config.Model)
	doc = append(doc, `,"store":false`...)
	if asksForReasoning(c.config) {
		doc = append(doc, `,"include":["reasoning.encrypted_content"]`...)
	}
	if c.config.Stream {
		doc = append(doc, `,"stream":true`...)
	}
	if c.config.MaxTokens > 0 {
		doc = strconv.AppendInt(append(doc, `,"max_output_tokens":`...), int64(c.config.MaxTokens), 10)
	}
	if t := c.config.Temperature; t != nil {
		doc = strconv.AppendFloat(append(doc, `,"temperature":`...), *t, 'g', -1, 64)
	}
	if system != "" {
		doc = appendField(doc, `,"instructions":`, system)
	}
	return doc
}

// appendTurn appends the items of a turn, which are at least one.
func (c *client) appendTurn(doc []byte, turn chat.Turn) []byte {
	switch turn.Role {
	case chat.User:
		return appendUser(doc, turn)
	case chat.Assistant:
		return c.appendAssistant(doc, turn)
	}
	for i, r := range turn.Results {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = appendField(doc, `{"type":"function_call_output","call_id":`, chat.PortableID(r.ID))
		doc = append(appendContent(append(doc, `,"output":`...), r.Text, r.Images), '}')
	}
	return doc
}

func appendUser(doc []byte, turn chat.Turn) []byte {
	doc = append(doc, `{"type":"message","role":"user","content":`...)
	if len(turn.Images) == 0 || turn.Note == "" {
		return append(appendContent(doc, turn.UserText(), turn.Images), '}')
	}
	doc = appendContent(doc, turn.Text, turn.Images)
	doc = appendField(doc[:len(doc)-1], `,{"type":"input_text","text":`, turn.Note) // behind what the next request has, too
	return append(doc, `}]}`...)
}

// appendContent appends a text, with images as a list of parts.
func appendContent(doc []byte, text string, images []model.Image) []byte {
	if len(images) == 0 {
		return chat.AppendString(doc, text)
	}
	doc = append(appendField(doc, `[{"type":"input_text","text":`, text), '}')
	for _, i := range images {
		doc = append(doc, `,{"type":"input_image","detail":"auto","image_url":"data:`...)
		doc = append(append(doc, i.MediaType...), `;base64,`...)
		doc = append(base64.StdEncoding.AppendEncode(doc, i.Data), `"}`...)
	}
	return append(doc, ']')
}

// appendAssistant appends an Assistant turn, with its reasoning if the same model
// produced it. The turn has text or calls.
func (c *client) appendAssistant(doc []byte, turn chat.Turn) []byte {
	first := len(doc)
	add := func(doc []byte) []byte {
		if len(doc) > first {
			doc = append(doc, ',')
		}
		return doc
	}
	for b := range turn.Blocks(chat.RecordedParts(turn, providerID, c.config.Model)) {
		switch b.Kind {
		case chat.TextPart:
			doc = appendMessage(add(doc), b.Text, b.Sign)
		case chat.CallPart:
			doc = appendCall(add(doc), b.Call)
		case chat.RawPart:
			if gjson.Get(b.Raw, "type").Str == reasoningItem {
				doc = append(add(doc), b.Raw...)
			}
		}
	}
	return doc
}

// appendMessage appends a message of the model. phase is what the model said of it, or "".
func appendMessage(doc []byte, text, phase string) []byte {
	doc = appendField(doc, `{"type":"message","role":"assistant","content":`, text)
	if phase != "" {
		doc = appendField(doc, `,"phase":`, phase)
	}
	return append(doc, '}')
}

func appendCall(doc []byte, c chat.Call) []byte {
	doc = appendField(doc, `{"type":"function_call","call_id":`, chat.PortableID(c.ID))
	doc = appendField(doc, `,"name":`, c.Name)
	return append(appendField(doc, `,"arguments":`, string(c.Args)), '}')
}

// encodeTool returns a tool in the format of the API, which checks arguments against
// schemas of a restricted form unless strict is false.
func encodeTool(name, description string, parameters []byte) []byte {
	doc := appendField(nil, `{"type":"function","name":`, name)
	doc = appendField(doc, `,"description":`, description)
	doc = append(append(doc, `,"parameters":`...), parameters...)
	return append(doc, `,"strict":false}`...)
}

// appendField appends a prefix, unchanged, and a JSON string.
func appendField(doc []byte, prefix, value string) []byte {
	return chat.AppendString(append(doc, prefix...), value)
}
