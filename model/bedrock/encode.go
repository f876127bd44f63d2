package bedrock

import (
	"encoding/base64"
	"strings"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// blocks is how the API writes content blocks. A cache point is a block of its own.
var blocks = chat.BlockFormat{AppendText: appendText, AppendImage: appendImage, AppendCall: appendCall, AppendResult: appendResult}

// encode returns the messages of a conversation. name is the model that is asked.
func encode(name string, turns []chat.Turn) *chat.BlockMessages {
	return chat.EncodeMessages(blocks, turns, func(t chat.Turn) []chat.AnswerPart { return chat.RecordedParts(t, providerID, name) })
}

func appendText(doc []byte, text string) []byte {
	return append(chat.AppendString(append(doc, `{"text":`...), text), '}')
}

func appendImage(doc []byte, i model.Image) []byte {
	doc = chat.AppendString(append(doc, `{"image":{"format":`...), strings.TrimPrefix(i.MediaType, "image/"))
	doc = base64.StdEncoding.AppendEncode(append(doc, `,"source":{"bytes":"`...), i.Data)
	return append(doc, `"}}}`...)
}

func appendCall(doc []byte, c chat.Call) []byte {
	doc = chat.AppendString(append(doc, `{"toolUse":{"toolUseId":`...), chat.PortableID(c.ID))
	doc = chat.AppendString(append(doc, `,"name":`...), c.Name)
	doc = append(append(doc, `,"input":`...), c.Args...)
	return append(doc, `}}`...)
}

func appendResult(doc []byte, r chat.Result) []byte {
	doc = chat.AppendString(append(doc, `{"toolResult":{"toolUseId":`...), chat.PortableID(r.ID))
	if r.IsError {
		doc = append(doc, `,"status":"error"`...)
	}
	doc = appendText(append(doc, `,"content":[`...), chat.NonBlank(r.Text))
	for _, i := range r.Images {
		doc = appendImage(append(doc, ','), i)
	}
	return append(doc, `]}}`...)
}
