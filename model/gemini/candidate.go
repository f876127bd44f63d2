package gemini

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// candidate is the provider's answer as it comes.
type candidate struct {
	model   *Model
	tools   *chat.Tools
	draft   chat.Draft
	pieces  []piece
	signed  int // bytes of signatures
	usage   usage
	finish  string // finishReason
	reason  string // in words, when the provider says it
	blocked string // promptFeedback.blockReason
}

// maxPieces and maxSigned bound a candidate beside chat.Draft.Check.
const (
	maxPieces = 4096
	maxSigned = 8 << 20
)

// take takes in a chunk of a stream, or a whole answer, and gives what there is
// to show of it.
func (c *candidate) take(data []byte) ([]model.Delta, error) {
	doc, err := c.model.parse(data)
	if err != nil {
		return nil, err
	}
	if doc.Get("error").IsObject() {
		return nil, c.model.complaint(doc)
	}
	c.usage.take(doc.Get("usageMetadata"))
	set(&c.blocked, doc.Get("promptFeedback.blockReason"))
	set(&c.reason, doc.Get("promptFeedback.blockReasonMessage"))
	first := doc.Get("candidates.0")
	set(&c.finish, first.Get("finishReason"))
	set(&c.reason, first.Get("finishMessage"))
	var deltas []model.Delta
	first.Get("content.parts").ForEach(func(_, p gjson.Result) bool {
		if delta := c.part(p); delta != (model.Delta{}) {
			deltas = append(deltas, delta)
		}
		err = c.check()
		return err == nil
	})
	return deltas, err
}

// parse reads what the provider sent as an object.
func (m *Model) parse(data []byte) (gjson.Result, error) {
	text := strings.ToValidUTF8(string(data), "\ufffd")
	doc := gjson.Parse(text)
	if !doc.IsObject() || !chat.Valid(text) {
		return doc, m.broken("sent something that is no JSON object")
	}
	return doc, nil
}

func set(to *string, value gjson.Result) {
	if value.Str != "" {
		*to = value.Str
	}
}

// check refuses a candidate that has grown past every measure.
func (c *candidate) check() error {
	if len(c.pieces) > maxPieces || c.signed > maxSigned {
		return model.Lasting(errcode.LLMCallFailed, nil, "model %q sent %d parts and %d bytes of signatures; at most %d and %d are taken",
			c.model.config.Name, len(c.pieces), c.signed, maxPieces, maxSigned)
	}
	return c.draft.Check()
}

// part takes in a part. What is thought is not said, and kept only if signed.
func (c *candidate) part(p gjson.Result) model.Delta {
	signature := p.Get("thoughtSignature").Str
	c.signed += len(signature)
	switch call, text := p.Get("functionCall"), p.Get("text"); {
	case p.Get("thought").Bool():
		if signature != "" {
			c.signed += len(p.Raw)
			c.pieces = append(c.pieces, piece{kind: rawKind, raw: p.Raw})
		}
	case call.IsObject():
		return c.call(call, signature)
	case text.Type == gjson.String:
		return c.say(text.Str, signature)
	}
	return model.Delta{}
}

// call takes in a call. Few come with an id: its place tells it from others of
// the same name.
func (c *candidate) call(call gjson.Result, signature string) model.Delta {
	name, args := call.Get("name").Str, call.Get("args").Raw
	c.draft.Call(strconv.Itoa(len(c.pieces)), call.Get("id").Str, name, args)
	c.pieces = append(c.pieces, piece{kind: callKind, sign: signature})
	if c.tools != nil {
		name = c.tools.Real(name)
	}
	return model.Delta{Tool: name, Args: args}
}

// say takes in text. What comes without signatures is one part in pieces.
func (c *candidate) say(text, signature string) model.Delta {
	if text == "" && signature == "" {
		return model.Delta{}
	}
	c.draft.Say(text)
	n := len(c.pieces)
	if signature == "" && n > 0 && c.pieces[n-1].kind == textKind && c.pieces[n-1].sign == "" {
		c.pieces[n-1].size += len(text)
	} else {
		c.pieces = append(c.pieces, piece{kind: textKind, size: len(text), sign: signature})
	}
	return model.Delta{Text: text}
}

// answer gives the candidate as an answer to items.
func (c *candidate) answer(items []model.Item) (*model.Answer, error) {
	if err := c.fault(); err != nil {
		return nil, err
	}
	c.draft.Usage = c.usage.sum()
	switch {
	case c.blocked != "" || refusals[c.finish]:
		c.draft.Stop = model.Refusal
	case c.finish == "MAX_TOKENS":
		c.draft.Stop = model.Length
	}
	if c.draft.Stop != model.Refusal {
		c.draft.Reasoning = record(c.model.config.Model, c.pieces)
	}
	a := c.draft.Answer(provider, c.tools, items)
	if a.Stop == model.Refusal {
		c.refuse(a)
	}
	return a, nil
}

// fault gives the trouble of an answer that cannot be used.
func (c *candidate) fault() error {
	switch c.finish {
	case "":
		if c.blocked == "" {
			return c.model.broken("broke off in the middle of an answer")
		}
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return c.model.broken("gave up its own answer (" + c.finish + ")")
	}
	return nil
}

// refusals are the reasons to finish that mean the provider's filter.
var refusals = map[string]bool{
	"SAFETY": true, "RECITATION": true, "LANGUAGE": true, "BLOCKLIST": true, "PROHIBITED_CONTENT": true, "SPII": true,
	"MODEL_ARMOR": true, "IMAGE_SAFETY": true, "IMAGE_PROHIBITED_CONTENT": true, "IMAGE_RECITATION": true,
}

// refuse makes an answer a refusal: what it began to do is not done.
func (c *candidate) refuse(a *model.Answer) {
	a.Calls, a.Finish = nil, model.End
	said := "The model refused to answer"
	if a.Text != "" {
		said = a.Text + "\n\nThe model refused to go on"
	}
	why := c.finish
	if c.blocked != "" {
		why = c.blocked
	}
	a.Text = strings.TrimSpace(said + " (" + why + "). " + c.reason)
}

// usage is what the provider counts.
type usage struct{ prompt, tools, cached, said, thought int }

// take takes in a report. Later ones say more or the same, never less.
func (u *usage) take(report gjson.Result) {
	count(&u.prompt, report.Get("promptTokenCount"))
	count(&u.tools, report.Get("toolUsePromptTokenCount"))
	count(&u.cached, report.Get("cachedContentTokenCount"))
	count(&u.said, report.Get("candidatesTokenCount"))
	count(&u.thought, report.Get("thoughtsTokenCount"))
}

// maxTokens bounds what is believed: no sum of such numbers runs over.
const maxTokens = 1 << 30

func count(n *int, report gjson.Result) {
	*n = max(*n, int(min(report.Int(), maxTokens)))
}

func (u usage) sum() model.Usage {
	input := u.prompt + u.tools
	return model.Usage{Input: input, Cached: min(u.cached, input), Output: u.said + u.thought}
}

// complaint gives the trouble of an error that comes with a good status.
func (m *Model) complaint(doc gjson.Result) error {
	status := int(doc.Get("error.code").Int())
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	var after time.Duration
	for _, delay := range doc.Get("error.details.#.retryDelay").Array() {
		if d, err := time.ParseDuration(delay.Str); err == nil && d > 0 {
			after = d
		}
	}
	return m.endpoint.Complaint(status, after, []byte(doc.Raw))
}
