package openai

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
)

// answer is an answer as it comes.
type answer struct {
	*provider.ResponseReader
	started bool // there was a message, or a piece of one
	calls   []toolCallDelta
	reasoning   reasoning
	finish  string // the server's word for how it ended; "" when it has not
}

func decoder(r *provider.ResponseReader) provider.Decoder { return &answer{ResponseReader: r} }

// toolCallDelta is a call of an answer that has begun.
type toolCallDelta struct {
	index string // as it stands in the document; "" when the server counts none
	id    string
	named bool // its name was shown
}

// Document implements provider.Decoder.
func (a *answer) Document(doc gjson.Result) error {
	if err := a.update(doc, false); err != nil {
		return err
	}
	if !a.started {
		return a.Transient("sent an answer without a message")
	}
	return nil
}

// Event implements provider.Decoder.
func (a *answer) Event(doc gjson.Result) error { return a.update(doc, true) }

// update takes in a whole answer, or a piece of one.
func (a *answer) update(doc gjson.Result, piece bool) error {
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
		return a.ErrorFrom(status(failed), 0, doc)
	}
	a.addUsage(usage)
	return a.updateChoice(firstElement(choices), piece)
}

// firstElement gives the first element of an array.
func firstElement(list gjson.Result) (element gjson.Result) {
	if list.IsArray() {
		list.ForEach(func(_, value gjson.Result) bool {
			element = value
			return false
		})
	}
	return element
}

// updateChoice takes in the one choice there is.
func (a *answer) updateChoice(choice gjson.Result, piece bool) (err error) {
	name := "message"
	if piece {
		name = "delta"
	}
	choice.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case name:
			err = a.updateMessage(value, piece)
		case "finish_reason":
			if value.Str != "" {
				a.finish = value.Str
			}
		}
		return err == nil
	})
	if err == nil && (a.finish == "error" || a.finish == "insufficient_system_resource") {
		err = a.Transient("gave up in the middle of an answer: %q", a.finish)
	}
	return err
}

// updateMessage takes in what is said in a choice.
func (a *answer) updateMessage(m gjson.Result, piece bool) (err error) {
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
			err = a.addCalls(value)
		case fieldDetails, fieldContent, fieldReasoning:
			a.reasoning.update(key.Str, value, piece)
		}
		return err == nil
	})
	if err == nil {
		err = a.check()
	}
	return err
}

// check refuses an answer that has grown past every measure.
func (a *answer) check() error {
	if a.reasoning.size > maxReasoning {
		return a.Permanent(errcode.LLMCallFailed, "thought for more than %d bytes", maxReasoning)
	}
	return a.Draft.Check()
}

// contentText gives the text of a content: a string, or a list of parts.
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
	a.Emit(model.Delta{Text: text})
}

// addCalls takes in calls, or pieces of them.
func (a *answer) addCalls(list gjson.Result) (err error) {
	if !list.IsArray() {
		return nil
	}
	list.ForEach(func(_, c gjson.Result) bool {
		a.addCall(c)
		err = a.Draft.Check() // before there are more than it allows
		return err == nil
	})
	return err
}

func (a *answer) addCall(c gjson.Result) {
	index, id, name := c.Get("index"), c.Get("id").Str, c.Get("function.name").Str
	args := arguments(c.Get("function.arguments"))
	at := a.callIndex(index, id, name)
	if at == len(a.calls) {
		a.calls = append(a.calls, toolCallDelta{index: index.Raw})
	}
	if id != "" {
		a.calls[at].id = id
	}
	a.Draft.Call(strconv.Itoa(at), id, name, args)
	a.emitCall(&a.calls[at], name, args)
}

// emitCall passes on a piece of a call, with its name when that is new.
func (a *answer) emitCall(c *toolCallDelta, name, args string) {
	d := model.Delta{Args: args}
	if !c.named && name != "" {
		c.named, d.Tool = true, name
	}
	a.Emit(d)
}

// arguments gives the text of a call's arguments. Some servers send the object
// itself.
func arguments(value gjson.Result) string {
	if value.Type == gjson.JSON {
		return value.Raw
	}
	return value.Str
}

// callIndex says to which call of the answer a piece belongs; len(a.calls) when it
// begins one. Most servers count the calls by index; some send all with the
// same, some none, some an id and a name with each piece, some an empty id.
func (a *answer) callIndex(index gjson.Result, id, name string) int {
	begins := func(c toolCallDelta) bool { return id != "" && c.id != "" && id != c.id && name != "" }
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		switch {
		case index.Type == gjson.Number && c.index == index.Raw:
			if begins(c) {
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

// addUsage takes in the tokens used; the last that are told count.
func (a *answer) addUsage(u gjson.Result) {
	if !u.IsObject() {
		return
	}
	var got model.Usage
	u.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens":
			got.Input = provider.Count(value)
		case "completion_tokens":
			got.Output = provider.Count(value)
		case "prompt_tokens_details":
			got.Cached = max(got.Cached, provider.Count(value.Get("cached_tokens")))
		case "prompt_cache_hit_tokens": // DeepSeek
			got.Cached = max(got.Cached, provider.Count(value))
		}
		return true
	})
	a.Draft.Usage = got
}

// Answer implements provider.Decoder. Some servers leave out the end of the
// stream, others the word how it ended.
func (a *answer) Answer() (*model.Answer, error) {
	if !a.Ended && a.finish == "" {
		return nil, a.Truncated()
	}
	switch a.finish {
	case "length":
		a.Draft.Stop = model.Length
	case "content_filter":
		a.Draft.Stop = model.Refusal
		if !a.Draft.HasText() {
			a.Draft.AppendText("The provider's content filter stopped this answer.")
		}
	}
	a.Draft.Reasoning = a.reasoning.raw()
	return a.ResponseReader.Answer(), nil
}

// status gives the HTTP status an error stands for: its code, or what its
// words mean. What says neither is taken for the server's own trouble.
func status(failed gjson.Result) int {
	if code := int(failed.Get("code").Int()); code >= 400 && code <= 599 {
		return code
	}
	for _, word := range [...]string{failed.Get("code").Str, failed.Get("type").Str} {
		switch word {
		case "rate_limit_exceeded", "rate_limit_error", "requests", "tokens":
			return 429
		case "invalid_request_error", "BadRequestError", "context_length_exceeded", "exceed_context_size_error":
			return 400
		case "authentication_error", "invalid_api_key":
			return 401
		}
	}
	return 500
}
