package gemini

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
)

// candidate is the provider's answer as it comes.
type candidate struct {
	*provider.ResponseReader
	client  *client
	pieces  []piece
	signed  int // bytes of signatures
	usage   usage
	finish  string // finishReason
	reason  string // in words, when the provider says it
	blocked string // promptFeedback.blockReason
}

// maxPieces and maxSigned bound a candidate beside chat.AnswerBuilder.Check.
const (
	maxPieces = 4096
	maxSigned = 8 << 20

	maxDetails = 100 // of an error
)

func (c *client) decoder(r *provider.ResponseReader) provider.Decoder {
	return &candidate{ResponseReader: r, client: c}
}

// Document implements provider.Decoder.
func (c *candidate) Document(doc gjson.Result) error { return c.Event(doc) }

// Event implements provider.Decoder. The pieces of an answer are answers.
func (c *candidate) Event(doc gjson.Result) (err error) {
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

func setString(to *string, value gjson.Result) {
	if value.Str != "" {
		*to = value.Str
	}
}

// check refuses a candidate that has grown past every measure.
func (c *candidate) check() error {
	if len(c.pieces) > maxPieces || c.signed > maxSigned {
		return c.Permanent(errcode.LLMCallFailed, "sent %d parts and %d bytes of signatures; at most %d and %d are taken",
			len(c.pieces), c.signed, maxPieces, maxSigned)
	}
	return c.Draft.Check()
}

// addPart takes in a part. What is thought is not said, and kept only if signed.
func (c *candidate) addPart(p gjson.Result) {
	signature := p.Get("thoughtSignature").Str
	c.signed += len(signature)
	switch call, text := p.Get("functionCall"), p.Get("text"); {
	case p.Get("thought").Bool():
		if signature != "" {
			c.signed += len(p.Raw)
			c.pieces = append(c.pieces, piece{kind: rawKind, raw: p.Raw})
		}
	case call.IsObject():
		c.addCall(call, signature)
	case text.Type == gjson.String:
		c.addText(text.Str, signature)
	}
}

// addCall takes in a call. Few come with an id: its place tells it from others of
// the same name.
func (c *candidate) addCall(call gjson.Result, signature string) {
	name, args := call.Get("name").Str, call.Get("args").Raw
	c.Draft.Call(strconv.Itoa(len(c.pieces)), call.Get("id").Str, name, args)
	c.pieces = append(c.pieces, piece{kind: callKind, sign: signature})
	c.Emit(model.Delta{Tool: name, Args: args})
}

// addText takes in text. What comes without signatures is one part in pieces.
func (c *candidate) addText(text, signature string) {
	if text == "" && signature == "" {
		return
	}
	c.Draft.AppendText(text)
	n := len(c.pieces)
	if signature == "" && n > 0 && c.pieces[n-1].kind == textKind && c.pieces[n-1].sign == "" {
		c.pieces[n-1].size += len(text)
	} else {
		c.pieces = append(c.pieces, piece{kind: textKind, size: len(text), sign: signature})
	}
	c.Emit(model.Delta{Text: text})
}

// Answer implements provider.Decoder. A stream has no other mark of its end
// than the reason to finish.
func (c *candidate) Answer() (*model.Answer, error) {
	if err := c.finishError(); err != nil {
		return nil, err
	}
	c.Draft.Usage = c.usage.sum()
	switch {
	case c.blocked != "" || refusals[c.finish]:
		c.Refusal(cmp.Or(c.blocked, c.finish), c.reason)
	case c.finish == "MAX_TOKENS":
		c.Draft.Stop = model.Length
	}
	if c.Draft.Stop != model.Refusal {
		c.Draft.Reasoning = encodeReasoning(c.client.config.Model, c.pieces)
	}
	return c.ResponseReader.Answer(), nil
}

// finishError gives the trouble of an answer that cannot be used.
func (c *candidate) finishError() error {
	switch c.finish {
	case "":
		if c.blocked == "" {
			return c.Truncated()
		}
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return c.Transient("gave up its own answer (%s)", c.finish)
	}
	return nil
}

// refusals are the reasons to finish that mean the provider's filter.
var refusals = map[string]bool{
	"SAFETY": true, "RECITATION": true, "LANGUAGE": true, "BLOCKLIST": true, "PROHIBITED_CONTENT": true, "SPII": true,
	"MODEL_ARMOR": true, "IMAGE_SAFETY": true, "IMAGE_PROHIBITED_CONTENT": true, "IMAGE_RECITATION": true,
}

// usage is what the provider counts.
type usage struct{ prompt, tools, cached, said, thought int }

// update takes in a report. Later ones say more or the same, never less.
func (u *usage) update(report gjson.Result) {
	u.prompt = max(u.prompt, provider.Count(report.Get("promptTokenCount")))
	u.tools = max(u.tools, provider.Count(report.Get("toolUsePromptTokenCount")))
	u.cached = max(u.cached, provider.Count(report.Get("cachedContentTokenCount")))
	u.said = max(u.said, provider.Count(report.Get("candidatesTokenCount")))
	u.thought = max(u.thought, provider.Count(report.Get("thoughtsTokenCount")))
}

func (u usage) sum() model.Usage {
	return model.Usage{Input: u.prompt + u.tools, Cached: u.cached, Output: u.said + u.thought}
}

// errorFrom gives the trouble of an error that comes with a good status.
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
