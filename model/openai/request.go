package openai

import (
	"encoding/base64"
	"slices"
	"strconv"
	"sync"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// request returns the document of a request. The tools are a separate part, so that
// they are not copied.
func (c *client) request(r model.Request, tools *chat.ToolList) *endpoint.Document {
	turns := chat.BuildTurns(r)
	buffer := buffers.Get().(*[]byte)
	b := slices.Grow((*buffer)[:0], 512+len(r.System)*9/8+chat.SizeHint(turns))
	b = c.options(b)
	b = append(b, `,"messages":[`...)
	b = appendMessages(b, r.System, turns)
	b = append(b, ']')
	d := &endpoint.Document{Done: func() { releaseBuffer(buffer, b) }}
	if tools == nil {
		b = append(b, '}')
		d.Parts = [][]byte{b}
		return d
	}
	if r.NoCalls {
		b = append(b, `,"tool_choice":"none"`...)
	}
	b = append(b, `,"tools":`...)
	d.Parts = [][]byte{b, tools.JSON, closingBrace}
	return d
}

var closingBrace = []byte("}")

// buffers holds the memory of earlier requests for reuse.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// releaseBuffer returns a buffer to the pool, unless it is exceptionally large.
func releaseBuffer(buffer *[]byte, b []byte) {
	const maxPooled = 1 << 20
	if cap(b) <= maxPooled {
		*buffer = b
		buffers.Put(buffer)
	}
}

// options appends the beginning of the document, with the options of the Config.
func (c *client) options(b []byte) []byte {
	b = appendField(b, `{"model":`, c.config.Model)
	if c.config.Stream {
		b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	if c.config.MaxTokens > 0 {
		b = append(append(append(b, `,"`...), c.maxTokensField...), `":`...)
		b = strconv.AppendInt(b, int64(c.config.MaxTokens), 10)
	}
	if t := c.config.Temperature; t != nil {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *t, 'g', -1, 64)
	}
	return b
}

// appendMessages appends a conversation.
func appendMessages(b []byte, system string, turns []chat.Turn) []byte {
	first := len(b)
	if system != "" {
		b = append(appendField(b, `{"role":"system","content":`, system), '}')
	}
	called := false // a tool was called since the last User turn
	for i := range turns {
		if len(b) > first {
			b = append(b, ',')
		}
		switch t := &turns[i]; t.Role {
		case chat.User:
			called = false
			b = appendUser(b, t)
		case chat.Assistant:
			called = called || len(t.Calls) > 0
			b = appendAssistant(b, t, called)
		case chat.Results:
			b = appendResults(b, t.Results)
		}
	}
	return b
}

func appendUser(b []byte, t *chat.Turn) []byte {
	if len(t.Images) == 0 {
		return append(appendField(b, `{"role":"user","content":`, t.UserText()), '}')
	}
	b = appendField(b, `{"role":"user","content":[{"type":"text","text":`, t.Text)
	b = append(b, '}')
	for _, i := range t.Images {
		b = appendImage(append(b, ','), i)
	}
	if t.Note != "" {
		b = append(appendField(b, `,{"type":"text","text":`, t.Note), '}')
	}
	return append(b, `]}`...)
}

// appendImage appends an image as a content part with a data URL.
func appendImage(b []byte, i model.Image) []byte {
	b = append(b, `{"type":"image_url","image_url":{"url":"data:`...)
	b = append(append(b, i.MediaType...), `;base64,`...)
	b = base64.StdEncoding.AppendEncode(b, i.Data)
	return append(b, `"}}`...)
}

// appendAssistant appends an Assistant turn. Its reasoning is sent back if a tool was
// called between the User turn before it and its end, even if more User turns follow.
// DeepSeek rejects the conversation otherwise. OpenRouter recommends it, and other
// servers ignore it.
func appendAssistant(b []byte, t *chat.Turn, called bool) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	if t.Text == "" && len(t.Calls) > 0 {
		b = append(b, `null`...)
	} else {
		b = chat.AppendString(b, t.Text)
	}
	if called && t.Provider == providerID {
		b = appendReasoning(b, t.Reasoning)
	}
	for i := range t.Calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendCall(b, &t.Calls[i])
	}
	if len(t.Calls) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendCall(b []byte, c *chat.Call) []byte {
	b = appendField(b, `{"id":`, c.ID)
	b = appendField(b, `,"type":"function","function":{"name":`, c.Name)
	b = appendField(b, `,"arguments":`, string(c.Args))
	return append(b, `}}`...)
}

// appendResults appends a message for each result. These messages can only hold text,
// so the images follow in a message of the user.
func appendResults(b []byte, list []chat.Result) []byte {
	hasImages := false
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendField(b, `{"role":"tool","tool_call_id":`, list[i].ID)
		b = append(appendField(b, `,"content":`, list[i].Text), '}')
		hasImages = hasImages || len(list[i].Images) > 0
	}
	if !hasImages {
		return b
	}
	return appendResultImages(b, list)
}

// appendResultImages appends the images of results, each after the name of its tool.
func appendResultImages(b []byte, list []chat.Result) []byte {
	b = append(b, `,{"role":"user","content":[`...)
	first := len(b)
	for i := range list {
		if len(list[i].Images) == 0 {
			continue
		}
		if len(b) > first {
			b = append(b, ',')
		}
		b = appendField(b, `{"type":"text","text":`, "The image in the result of "+list[i].Name+", call "+list[i].ID+":")
		b = append(b, '}')
		for _, image := range list[i].Images {
			b = appendImage(append(b, ','), image)
		}
	}
	return append(b, `]}`...)
}

// appendField appends a prefix, unchanged, and a JSON string.
func appendField(b []byte, prefix, value string) []byte {
	return chat.AppendString(append(b, prefix...), value)
}
