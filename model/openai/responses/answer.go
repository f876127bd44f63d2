package responses

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
)

// The types of items that are part of an answer.
const (
	messageItem   = "message"
	callItem      = "function_call"
	reasoningItem = "reasoning"
)

// answer is the decoder of one answer. It collects the items of the answer.
type answer struct {
	*provider.ResponseReader
	client *client
	items  []*item
	size   int    // bytes of reasoning and phases so far
	status string // of the response; "" if it has not ended
	reason string // why it is incomplete; "" if it is complete
}

func (c *client) decoder(r *provider.ResponseReader) provider.Decoder {
	return &answer{ResponseReader: r, client: c}
}

// item is an item of the answer.
type item struct {
	kind     string
	index    string // the server's number of the item
	key      string // the key of Draft.AppendCall, if the item is a call
	textSize int    // bytes of a message
	hasArgs  bool   // arguments of a call have arrived
	phase    string // of a message; "" if the server does not say it
	raw      string // of reasoning that the server needs back; "" if it does not
}

// maxItems and maxReasoning limit an answer in addition to chat.AnswerBuilder.Check.
const (
	maxItems     = 1024
	maxReasoning = 8 << 20
)

// DecodeDocument implements provider.Decoder.
func (a *answer) DecodeDocument(doc gjson.Result) error {
	if failed := doc.Get("error"); failed.IsObject() {
		return a.errorFrom(failed)
	}
	if !doc.Get("output").IsArray() {
		return a.TransientError("sent an answer without output")
	}
	return a.decodeResponse(doc)
}

// DecodeEvent implements provider.Decoder.
func (a *answer) DecodeEvent(doc gjson.Result) error {
	index := doc.Get("output_index").Raw
	switch doc.Get("type").Str {
	case "response.output_item.added":
		a.startItem(index, doc.Get("item"))
	case "response.output_text.delta":
		a.addText(a.itemAt(index, messageItem), doc.Get("delta").Str)
	case "response.refusal.delta":
		a.addRefusal(a.itemAt(index, messageItem), doc.Get("delta").Str)
	case "response.function_call_arguments.delta":
		a.addArgs(a.itemAt(index, callItem), doc.Get("delta").Str)
	case "response.output_item.done":
		a.endItem(index, doc.Get("item"))
	case "response.completed", "response.incomplete", "response.failed":
		a.Ended = true
		return a.endStream(doc.Get("response"))
	case "error":
		failed := doc.Get("error")
		if !failed.IsObject() {
			failed = doc
		}
		return a.errorFrom(failed)
	}
	return a.checkLimits()
}

// endStream decodes the response in the last event of a stream. The response has all items of the
// stream again.
func (a *answer) endStream(response gjson.Result) error {
	if failed := response.Get("error"); failed.IsObject() {
		return a.errorFrom(failed)
	}
	return a.decodeResponse(response)
}

// decodeResponse decodes a complete response: its status and token counts. It decodes the items only
// if no event had one.
func (a *answer) decodeResponse(response gjson.Result) (err error) {
	a.status = response.Get("status").Str
	a.reason = response.Get("incomplete_details.reason").Str
	a.setUsage(response.Get("usage"))
	if len(a.items) > 0 {
		return a.checkLimits()
	}
	count := 0
	response.Get("output").ForEach(func(_, it gjson.Result) bool {
		a.endItem(strconv.Itoa(count), it)
		count++
		err = a.checkLimits()
		return err == nil
	})
	return err
}

// checkLimits returns an error if the answer exceeds its limits.
func (a *answer) checkLimits() error {
	if len(a.items) > maxItems || a.size > maxReasoning {
		return a.PermanentError(errcode.LLMCallFailed, "sent %d items and %d bytes of reasoning; at most %d and %d are allowed",
			len(a.items), a.size, maxItems, maxReasoning)
	}
	return a.Draft.Check()
}

// itemAt returns the item with an index. If there is no such item, it adds an item of this kind.
// Some servers do not announce items.
func (a *answer) itemAt(index, kind string) *item {
	for i := len(a.items) - 1; i >= 0; i-- {
		if a.items[i].index == index && a.items[i].kind == kind {
			return a.items[i]
		}
	}
	it := &item{kind: kind, index: index, key: strconv.Itoa(len(a.items))}
	a.items = append(a.items, it)
	return it
}

// startItem adds an item whose parts follow.
func (a *answer) startItem(index string, doc gjson.Result) {
	it := a.itemAt(index, doc.Get("type").Str)
	if it.kind == callItem {
		name := doc.Get("name").Str
		a.Draft.AppendCall(it.key, doc.Get("call_id").Str, name, "")
		a.EmitDelta(model.AnswerDelta{Tool: name})
	}
}

// endItem completes an item. It adds what no earlier event had.
func (a *answer) endItem(index string, doc gjson.Result) {
	known := len(a.items)
	it := a.itemAt(index, doc.Get("type").Str)
	switch it.kind {
	case messageItem:
		it.phase = doc.Get("phase").Str
		a.size += len(it.phase)
		if it.textSize == 0 {
			a.addContent(it, doc.Get("content"))
		}
	case callItem:
		name := doc.Get("name").Str
		a.Draft.AppendCall(it.key, doc.Get("call_id").Str, name, "")
		if len(a.items) > known {
			a.EmitDelta(model.AnswerDelta{Tool: name})
		}
		if !it.hasArgs {
			a.addArgs(it, doc.Get("arguments").Str)
		}
	case reasoningItem:
		it.raw = rawReasoning(doc)
		a.size += len(it.raw)
	}
}

// addContent adds the parts of a whole message.
func (a *answer) addContent(it *item, content gjson.Result) {
	content.ForEach(func(_, part gjson.Result) bool {
		switch part.Get("type").Str {
		case "output_text":
			a.addText(it, part.Get("text").Str)
		case "refusal":
			a.addRefusal(it, part.Get("refusal").Str)
		}
		return true
	})
}

func (a *answer) addText(it *item, text string) {
	it.textSize += len(text)
	a.Draft.AppendText(text)
	a.EmitDelta(model.AnswerDelta{Text: text})
}

// addRefusal adds text with which the model refuses.
func (a *answer) addRefusal(it *item, text string) {
	a.Draft.Stop = model.Refusal
	a.addText(it, text)
}

func (a *answer) addArgs(it *item, args string) {
	it.hasArgs = it.hasArgs || args != ""
	a.Draft.AppendCall(it.key, "", "", args)
	a.EmitDelta(model.AnswerDelta{Args: args})
}

// setUsage sets the token counts.
func (a *answer) setUsage(u gjson.Result) {
	a.Draft.Usage = model.TokenUsage{
		Input:  provider.TokenCount(u.Get("input_tokens")),
		Cached: provider.TokenCount(u.Get("input_tokens_details.cached_tokens")),
		Output: provider.TokenCount(u.Get("output_tokens")),
	}
}

// FinalAnswer implements provider.Decoder.
func (a *answer) FinalAnswer() (*model.Answer, error) {
	switch a.status {
	case "completed":
	case "incomplete":
		a.setStop()
	case "":
		if !a.Ended {
			return nil, a.TruncatedError()
		}
	default:
		return nil, a.TransientError("aborted its answer: %q", a.status)
	}
	if a.Draft.Stop == "" {
		a.Draft.Reasoning = chat.EncodeParts(a.client.config.Model, a.parts())
	}
	return a.ResponseReader.Answer(), nil
}

// setStop records why an answer is incomplete.
func (a *answer) setStop() {
	if a.reason == "content_filter" {
		a.RecordRefusal(model.ContentFilter, a.reason, "")
		return
	}
	a.Draft.Stop = model.Length
}

// parts returns the parts of the answer as Answer.Reasoning records them. Reasoning
// without an item after it is left out: OpenAI rejects it.
func (a *answer) parts() []chat.AnswerPart {
	var parts []chat.AnswerPart
	complete := 0 // parts up to the last part that is not reasoning
	for _, it := range a.items {
		switch {
		case it.kind == messageItem && it.textSize > 0:
			parts = append(parts, chat.AnswerPart{Kind: chat.TextPart, Size: it.textSize, Sign: it.phase})
			complete = len(parts)
		case it.kind == callItem:
			parts = append(parts, chat.AnswerPart{Kind: chat.CallPart})
			complete = len(parts)
		case it.raw != "":
			parts = append(parts, chat.AnswerPart{Kind: chat.RawPart, Raw: it.raw})
		}
	}
	return parts[:complete]
}

// rawReasoning returns a reasoning item as the server wants it back. It returns "" if the item has
// neither text nor encrypted content, since the server has not stored the item.
func rawReasoning(doc gjson.Result) string {
	encrypted, content := doc.Get("encrypted_content"), doc.Get("content")
	if encrypted.Str == "" && (!content.IsArray() || content.Get("#").Int() == 0) {
		return ""
	}
	raw := []byte(`{"type":"` + reasoningItem + `"`)
	if id := doc.Get("id").Str; id != "" {
		raw = appendField(raw, `,"id":`, id)
	}
	raw = append(raw, `,"summary":`...)
	if summary := doc.Get("summary"); summary.IsArray() {
		raw = append(raw, summary.Raw...)
	} else {
		raw = append(raw, `[]`...)
	}
	if content.IsArray() && content.Get("#").Int() > 0 {
		raw = append(append(raw, `,"content":`...), content.Raw...)
	}
	if encrypted.Str != "" {
		raw = appendField(raw, `,"encrypted_content":`, encrypted.Str)
	}
	return string(append(raw, '}'))
}

// errorFrom returns the model.Error of an error object. The response had the HTTP status 200.
func (a *answer) errorFrom(failed gjson.Result) error {
	return a.ErrorFrom(openai.ErrorStatus(failed), 0, gjson.Parse(`{"error":`+failed.Raw+`}`))
}
