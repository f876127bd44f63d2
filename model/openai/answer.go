package openai

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
)

// answer is the decoder of one answer. It collects what has arrived.
type answer struct {
	*provider.ResponseReader
	started   bool // a message, or a part of one, has arrived
	calls     []toolCallDelta
	reasoning reasoning
	finish    string // finish_reason; "" if there is none yet
}

// decoder implements provider.Protocol.Decoder.
func decoder(r *provider.ResponseReader) provider.Decoder { return &answer{ResponseReader: r} }

// toolCallDelta identifies a call whose parts are arriving.
type toolCallDelta struct {
	index string // JSON of the index; "" if the server sends none
	id    string
	named bool // its name was emitted
}

// DecodeDocument implements provider.Decoder.
func (a *answer) DecodeDocument(doc gjson.Result) error {
	if err := a.update(doc, wholeAnswer); err != nil {
		return err
	}
	if !a.started {
		return a.TransientError("sent an answer without a message")
	}
	return nil
}

// DecodeEvent implements provider.Decoder.
func (a *answer) DecodeEvent(doc gjson.Result) error { return a.update(doc, partOfAnswer) }

// Values of partial.
const (
	wholeAnswer  = false
	partOfAnswer = true
)

// update decodes a whole answer, or a part of one.
func (a *answer) update(doc gjson.Result, partial bool) error {
	var failed, choices, usage gjson.Result
	doc.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "error":
			failed = value
		case "object":
			if value.Str == "error" { // vLLM
				failed = doc
			}
		case "choices":
			choices = value
		case "usage":
			usage = value
		}
		return true
	})
	if failed.Exists() && failed.Type != gjson.Null {
		return a.ErrorFrom(ErrorStatus(failed), 0, doc)
	}
	a.setUsage(usage)
	return a.updateChoice(firstElement(choices), partial)
}

// firstElement returns the first element of an array.
func firstElement(list gjson.Result) (element gjson.Result) {
	if list.IsArray() {
		list.ForEach(func(_, value gjson.Result) bool {
			element = value
			return false
		})
	}
	return element
}

// updateChoice decodes a choice. Requests ask for only one.
func (a *answer) updateChoice(choice gjson.Result, partial bool) (err error) {
	name := "message"
	if partial {
		name = "delta"
	}
	choice.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case name:
			err = a.updateMessage(value, partial)
		case "finish_reason":
			if value.Str != "" {
				a.finish = value.Str
			}
		}
		return err == nil
	})
	if err == nil && (a.finish == "error" || a.finish == "insufficient_system_resource") {
		err = a.TransientError("aborted its answer: %q", a.finish)
	}
	return err
}

// updateMessage decodes the message of a choice, or a part of it.
func (a *answer) updateMessage(m gjson.Result, partial bool) (err error) {
	a.started = a.started || m.IsObject()
	m.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "content":
			a.addText(contentText(value))
		case "refusal":
			if value.Str != "" {
				a.Draft.Stop = model.Refusal
				a.addText(value.Str)
			}
		case "tool_calls":
			err = a.addCalls(value, partial)
		case fieldDetails, fieldContent, fieldReasoning:
			a.reasoning.update(key.Str, value, partial)
		}
		return err == nil
	})
	if err == nil {
		err = a.check()
	}
	return err
}

// check returns an error if the answer exceeds its limits.
func (a *answer) check() error {
	if a.reasoning.isTooLarge() {
		return a.PermanentError(errcode.LLMCallFailed, "sent more than %d bytes of reasoning", maxReasoning)
	}
	return a.Draft.Check()
}

// contentText returns the text of a content, which is a string or a list of parts.
func contentText(value gjson.Result) string {
	if !value.IsArray() {
		return value.Str
	}
	var text strings.Builder
	value.ForEach(func(_, part gjson.Result) bool {
		text.WriteString(part.Get("text").Str)
		return true
	})
	return text.String()
}

func (a *answer) addText(text string) {
	a.Draft.AppendText(text)
	a.EmitDelta(model.AnswerDelta{Text: text})
}

// addCalls adds calls, or parts of them.
func (a *answer) addCalls(list gjson.Result, partial bool) (err error) {
	if !list.IsArray() {
		return nil
	}
	list.ForEach(func(_, c gjson.Result) bool {
		a.addCall(c, partial)
		err = a.Draft.Check() // in the loop, to stop at the limit
		return err == nil
	})
	return err
}

// addCall adds a call, or a part of one. In a whole answer each has an entry of its own, even
// if two have the same id.
func (a *answer) addCall(c gjson.Result, partial bool) {
	index, id, name := c.Get("index"), c.Get("id").Str, c.Get("function.name").Str
	args := arguments(c.Get("function.arguments"))
	at := len(a.calls)
	if partial {
		at = a.callIndex(index, id, name)
	}
	if at == len(a.calls) {
		a.calls = append(a.calls, toolCallDelta{index: index.Raw})
	}
	if id != "" {
		a.calls[at].id = id
	}
	a.Draft.AppendCall(strconv.Itoa(at), id, name, args)
	a.emitCall(&a.calls[at], name, args)
}

// emitCall emits a part of a call, with the name the first time.
func (a *answer) emitCall(c *toolCallDelta, name, args string) {
	d := model.AnswerDelta{Args: args}
	if !c.named && name != "" {
		c.named, d.Tool = true, name
	}
	a.EmitDelta(d)
}

// arguments returns the text of a call's arguments. Some servers send an object
// instead of a string.
func arguments(value gjson.Result) string {
	if value.Type == gjson.JSON {
		return value.Raw
	}
	return value.Str
}

// callIndex returns the index in a.calls of the call to which a part belongs, or
// len(a.calls) for a new call. Most servers number the calls. Some send the same
// index for all calls, or no index. Some send an id and a name with each part,
// some an empty id.
func (a *answer) callIndex(index gjson.Result, id, name string) int {
	isNew := func(c toolCallDelta) bool { return id != "" && c.id != "" && id != c.id && name != "" }
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		switch {
		case index.Type == gjson.Number && c.index == index.Raw:
			if isNew(c) {
				return len(a.calls)
			}
			return i
		case index.Type != gjson.Number && id != "" && id == c.id:
			return i
		}
	}
	if index.Type != gjson.Number && name == "" && len(a.calls) > 0 {
		return len(a.calls) - 1
	}
	return len(a.calls)
}

// setUsage sets the token counts. The last report counts.
func (a *answer) setUsage(u gjson.Result) {
	if !u.IsObject() {
		return
	}
	var got model.TokenUsage
	u.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens":
			got.Input = provider.TokenCount(value)
		case "completion_tokens":
			got.Output = provider.TokenCount(value)
		case "prompt_tokens_details":
			got.Cached = max(got.Cached, provider.TokenCount(value.Get("cached_tokens")))
		case "prompt_cache_hit_tokens": // DeepSeek
			got.Cached = max(got.Cached, provider.TokenCount(value))
		}
		return true
	})
	a.Draft.Usage = got
}

// FinalAnswer implements provider.Decoder. Some servers omit the end of the stream, others
// the finish reason; one of them is enough.
func (a *answer) FinalAnswer() (*model.Answer, error) {
	if !a.Ended && a.finish == "" {
		return nil, a.TruncatedError()
	}
	switch a.finish {
	case "length":
		a.Draft.Stop = model.Length
	case "content_filter":
		a.Draft.Stop = model.ContentFilter
		if !a.Draft.HasText() {
			a.Draft.AppendText("The provider's content filter stopped this answer.")
		}
	}
	a.Draft.Reasoning = a.reasoning.document()
	return a.ResponseReader.Answer(), nil
}

// ErrorStatus returns the HTTP status for an error object: its code, or the status that
// belongs to its code or type in words. The default is 500.
func ErrorStatus(failed gjson.Result) int {
	if code := int(failed.Get("code").Int()); code >= 400 && code <= 599 {
		return code
	}
	for _, word := range [...]string{failed.Get("code").Str, failed.Get("type").Str} {
		switch word {
		case "rate_limit_exceeded", "rate_limit_error", "requests", "tokens":
			return 429
		case "invalid_request_error", "invalid_prompt", "BadRequestError", "context_length_exceeded", "exceed_context_size_error":
			return 400
		case "authentication_error", "invalid_api_key":
			return 401
		}
	}
	return 500
}
