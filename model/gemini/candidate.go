package gemini

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider"
)

// candidate decodes an answer.
type candidate struct {
	*provider.ResponseReader
	client  *client
	parts   []chat.AnswerPart
	signed  int // bytes of signatures and signed thoughts so far
	usage   usage
	finish  string // finishReason
	reason  string // explanation of finish or blocked, if there is one
	blocked string // promptFeedback.blockReason
}

// maxParts and maxSigned limit an answer in addition to chat.AnswerBuilder.Check.
const (
	maxParts  = 4096
	maxSigned = 8 << 20

	maxDetails = 100 // details of an error that are read
)

func (c *client) decoder(r *provider.ResponseReader) provider.Decoder {
	return &candidate{ResponseReader: r, client: c}
}

// DecodeDocument implements provider.Decoder.
func (c *candidate) DecodeDocument(doc gjson.Result) error { return c.DecodeEvent(doc) }

// DecodeEvent implements provider.Decoder. Each event has the form of a whole answer.
func (c *candidate) DecodeEvent(doc gjson.Result) (err error) {
	if doc.Get("error").IsObject() {
		return c.errorFrom(doc)
	}
	c.usage.update(doc.Get("usageMetadata"))
	setString(&c.blocked, doc.Get("promptFeedback.blockReason"))
	setString(&c.reason, doc.Get("promptFeedback.blockReasonMessage"))
	first := doc.Get("candidates.0")
	setString(&c.finish, first.Get("finishReason"))
	setString(&c.reason, first.Get("finishMessage"))
	first.Get("content.parts").ForEach(func(_, p gjson.Result) bool {
		c.addPart(p)
		err = c.check()
		return err == nil
	})
	return err
}

// setString assigns value unless it is empty or not a string.
func setString(to *string, value gjson.Result) {
	if value.Str != "" {
		*to = value.Str
	}
}

// check returns an error if the answer exceeds its limits.
func (c *candidate) check() error {
	if len(c.parts) > maxParts || c.signed > maxSigned {
		return c.PermanentError(errcode.LLMCallFailed, "sent %d parts and %d bytes of signatures; at most %d and %d are allowed",
			len(c.parts), c.signed, maxParts, maxSigned)
	}
	return c.Draft.Check()
}

// addPart adds a part. Thoughts are not part of the text, and are recorded only if
// they are signed.
func (c *candidate) addPart(p gjson.Result) {
	signature := p.Get("thoughtSignature").Str
	c.signed += len(signature)
	switch call, text := p.Get("functionCall"), p.Get("text"); {
	case p.Get("thought").Bool():
		if signature != "" {
			c.signed += len(p.Raw)
			c.parts = append(c.parts, chat.AnswerPart{Kind: chat.RawPart, Raw: p.Raw})
		}
	case call.IsObject():
		c.addCall(call, signature)
	case text.Type == gjson.String:
		c.addText(text.Str, signature)
	}
}

// addCall adds a call. Most calls have no id: the index distinguishes calls of the
// same tool.
func (c *candidate) addCall(call gjson.Result, signature string) {
	name, args := call.Get("name").Str, call.Get("args").Raw
	c.Draft.AppendCall(strconv.Itoa(len(c.parts)), call.Get("id").Str, name, args)
	c.parts = append(c.parts, chat.AnswerPart{Kind: chat.CallPart, Sign: signature})
	c.EmitDelta(model.AnswerDelta{Tool: name, Args: args})
}

// addText adds text. Consecutive text without signatures is one part.
func (c *candidate) addText(text, signature string) {
	if text == "" && signature == "" {
		return
	}
	c.Draft.AppendText(text)
	n := len(c.parts)
	if signature == "" && n > 0 && c.parts[n-1].Kind == chat.TextPart && c.parts[n-1].Sign == "" {
		c.parts[n-1].Size += len(text)
	} else {
		c.parts = append(c.parts, chat.AnswerPart{Kind: chat.TextPart, Size: len(text), Sign: signature})
	}
	c.EmitDelta(model.AnswerDelta{Text: text})
}

// FinalAnswer implements provider.Decoder. Only finishReason marks the end of a stream.
func (c *candidate) FinalAnswer() (*model.Answer, error) {
	if err := c.finishError(); err != nil {
		return nil, err
	}
	c.Draft.Usage = c.usage.sum()
	switch {
	case c.blocked != "" || refusals[c.finish]:
		c.RecordRefusal(model.ContentFilter, cmp.Or(c.blocked, c.finish), c.reason)
	case c.finish == "MAX_TOKENS":
		c.Draft.Stop = model.Length
	}
	if !c.Draft.Stop.Refused() {
		c.Draft.Reasoning = chat.EncodeParts(c.client.config.Model, c.parts)
	}
	return c.ResponseReader.Answer(), nil
}

// finishError returns the error of an answer that cannot be used, or nil.
func (c *candidate) finishError() error {
	switch c.finish {
	case "":
		if c.blocked == "" {
			return c.TruncatedError()
		}
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return c.TransientError("aborted its answer (%s)", c.finish)
	}
	return nil
}

// refusals are the values of finishReason with which the provider's filter ends an
// answer.
var refusals = map[string]bool{
	"SAFETY": true, "RECITATION": true, "LANGUAGE": true, "BLOCKLIST": true, "PROHIBITED_CONTENT": true, "SPII": true,
	"MODEL_ARMOR": true, "IMAGE_SAFETY": true, "IMAGE_PROHIBITED_CONTENT": true, "IMAGE_RECITATION": true,
}

// usage is the token counts of the provider. cached is a part of prompt.
type usage struct{ prompt, tools, cached, candidates, thoughts int }

// update merges a report. Reports are cumulative, and not every one has all counts.
func (u *usage) update(report gjson.Result) {
	u.prompt = max(u.prompt, provider.TokenCount(report.Get("promptTokenCount")))
	u.tools = max(u.tools, provider.TokenCount(report.Get("toolUsePromptTokenCount")))
	u.cached = max(u.cached, provider.TokenCount(report.Get("cachedContentTokenCount")))
	u.candidates = max(u.candidates, provider.TokenCount(report.Get("candidatesTokenCount")))
	u.thoughts = max(u.thoughts, provider.TokenCount(report.Get("thoughtsTokenCount")))
}

func (u usage) sum() model.TokenUsage {
	return model.TokenUsage{Input: u.prompt + u.tools, Cached: u.cached, Output: u.candidates + u.thoughts}
}

// errorFrom returns the model.Error for an error object with HTTP status 200.
func (c *candidate) errorFrom(doc gjson.Result) error {
	status := int(doc.Get("error.code").Int())
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	var after time.Duration
	details := 0
	doc.Get("error.details").ForEach(func(_, detail gjson.Result) bool {
		if d, err := time.ParseDuration(detail.Get("retryDelay").Str); err == nil && d > 0 {
			after = d
		}
		details++
		return details < maxDetails
	})
	return c.ErrorFrom(status, after, doc)
}
