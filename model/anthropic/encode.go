package anthropic

import (
	"encoding/base64"
	"strings"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// blocks is how the API writes content blocks. A cache mark is the last field of a block.
var blocks = chat.BlockFormat{AppendText: appendText, AppendImage: appendImage, AppendCall: appendCall, AppendResult: appendResult, MarkInside: len("}")}

// encode returns the messages of a conversation. name is the model that is asked.
func encode(name string, turns []chat.Turn) *chat.BlockMessages {
	return chat.EncodeMessages(blocks, turns, func(t chat.Turn) []chat.AnswerPart { return recordedParts(t, name) })
}

func appendText(doc []byte, text string) []byte {
	return append(chat.AppendString(append(doc, `{"type":"text","text":`...), text), '}')
}

func appendImage(doc []byte, i model.Image) []byte {
	doc = chat.AppendString(append(doc, `{"type":"image","source":{"type":"base64","media_type":`...), i.MediaType)
	doc = base64.StdEncoding.AppendEncode(append(doc, `,"data":"`...), i.Data)
	return append(doc, `"}}`...)
}

func appendCall(doc []byte, c chat.Call) []byte {
	doc = chat.AppendString(append(doc, `{"type":"tool_use","id":`...), chat.PortableID(c.ID))
	doc = chat.AppendString(append(doc, `,"name":`...), c.Name)
	doc = append(append(doc, `,"input":`...), c.Args...)
	return append(doc, '}')
}

func appendResult(doc []byte, r chat.Result) []byte {
	doc = chat.AppendString(append(doc, `{"type":"tool_result","tool_use_id":`...), chat.PortableID(r.ID))
	if r.IsError {
		doc = append(doc, `,"is_error":true`...)
	}
	doc = append(doc, `,"content":[`...)
	if strings.TrimSpace(r.Text) != "" || len(r.Images) == 0 {
		doc = append(appendText(doc, chat.NonBlank(r.Text)), ',')
	}
	for _, i := range r.Images {
		doc = append(appendImage(doc, i), ',')
	}
	return append(doc[:len(doc)-1], `]}`...)
}
