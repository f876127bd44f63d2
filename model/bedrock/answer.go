package bedrock

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider"
)

// answer is the decoder of one answer. It collects the blocks of the answer.
type answer struct {
	*provider.ResponseReader
	client *client
	blocks []*block
	size   int    // bytes of reasoning so far
	stop   string // stopReason
}

func (c *client) decoder(r *provider.ResponseReader) provider.Decoder {
	return &answer{ResponseReader: r, client: c}
}

// The kinds of content blocks.
const (
	textKind      = "text"
	callKind      = "toolUse"
	reasoningKind = "reasoningContent"
)

// block is a content block of the answer.
type block struct {
	kind                string
	index               string // the provider's number of the block
	key                 string // of the call in Draft
	text                int    // bytes of a text
	input               string // whole arguments of a call; "" if they come in parts
	thinking, signature []byte
	redacted            []byte // reasoning that only the provider can read
}

// maxBlocks and maxReasoning limit an answer in addition to chat.AnswerBuilder.Check.
const (
	maxBlocks    = 1024
	maxReasoning = 8 << 20
)

// DecodeDocument implements provider.Decoder.
func (a *answer) DecodeDocument(doc gjson.Result) (err error) {
	content := doc.Get("output.message.content")
	if !content.IsArray() {
		return a.ErrorFrom(http.StatusInternalServerError, 0, doc)
	}
	count := 0
	content.ForEach(func(_, c gjson.Result) bool {
		a.addBlock(strconv.Itoa(count), c)
		count++
		err = a.check()
		return err == nil
	})
	a.stop = doc.Get("stopReason").Str
	a.setUsage(doc.Get("usage"))
	return err
}

// addBlock adds a whole block.
func (a *answer) addBlock(index string, content gjson.Result) {
	a.addText(index, content.Get("text"))
	if call := content.Get("toolUse"); call.IsObject() {
		a.startCall(index, call)
		a.blockAt(index, callKind).input = call.Get("input").Raw
	}
	if reasoning := content.Get("reasoningContent"); reasoning.IsObject() {
		b := a.blockAt(index, reasoningKind)
		a.addReasoning(b, reasoning)
		a.addReasoning(b, reasoning.Get("reasoningText"))
	}
}

// DecodeEvent implements provider.Decoder.
func (a *answer) DecodeEvent(doc gjson.Result) error {
	doc.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "contentBlockStart":
			if call := value.Get("start.toolUse"); call.IsObject() {
				a.startCall(value.Get("contentBlockIndex").Raw, call)
			}
		case "contentBlockDelta":
			a.addDelta(value.Get("contentBlockIndex").Raw, value.Get("delta"))
		case "messageStop":
			a.stop = value.Get("stopReason").Str
		case "metadata": // the last event
			a.setUsage(value.Get("usage"))
			a.Ended = true
		}
		return false // an event has one field; an exception has more
	})
	if exception := doc.Get("exception"); exception.Exists() {
		return a.ErrorFrom(status(exception.Str), 0, doc)
	}
	return a.check()
}

// check returns an error if the answer exceeds its limits.
func (a *answer) check() error {
	if len(a.blocks) > maxBlocks || a.size > maxReasoning {
		return a.PermanentError(errcode.LLMCallFailed, "sent %d blocks and %d bytes of reasoning; at most %d and %d are allowed",
			len(a.blocks), a.size, maxBlocks, maxReasoning)
	}
	return a.Draft.Check()
}

// blockAt returns the block with an index, which it adds if there is none: only calls are
// announced.
func (a *answer) blockAt(index, kind string) *block {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if a.blocks[i].index == index && a.blocks[i].kind == kind {
			return a.blocks[i]
		}
	}
	b := &block{kind: kind, index: index, key: strconv.Itoa(len(a.blocks))}
	a.blocks = append(a.blocks, b)
	return b
}

func (a *answer) startCall(index string, call gjson.Result) {
	b, name := a.blockAt(index, callKind), call.Get("name").Str
	a.Draft.AppendCall(b.key, call.Get("toolUseId").Str, name, "")
	a.EmitDelta(model.AnswerDelta{Tool: name})
}

// addDelta adds a part of a block, of which only one field is set.
func (a *answer) addDelta(index string, delta gjson.Result) {
	a.addText(index, delta.Get("text"))
	if args := delta.Get("toolUse.input"); args.Type == gjson.String {
		a.Draft.AppendCall(a.blockAt(index, callKind).key, "", "", args.Str)
		a.EmitDelta(model.AnswerDelta{Args: args.Str})
	}
	if reasoning := delta.Get("reasoningContent"); reasoning.IsObject() {
		a.addReasoning(a.blockAt(index, reasoningKind), reasoning)
	}
}

// addText adds text. A value that is not a text is ignored.
func (a *answer) addText(index string, text gjson.Result) {
	if text.Type != gjson.String {
		return
	}
	a.blockAt(index, textKind).text += len(text.Str)
	a.Draft.AppendText(text.Str)
	a.EmitDelta(model.AnswerDelta{Text: text.Str})
}

// addReasoning adds a part of reasoning.
func (a *answer) addReasoning(b *block, part gjson.Result) {
	text, signature, redacted := part.Get("text").Str, part.Get("signature").Str, part.Get("redactedContent").Str
	a.size += len(text) + len(signature) + len(redacted)
	b.thinking, b.signature = append(b.thinking, text...), append(b.signature, signature...)
	if data, err := base64.StdEncoding.DecodeString(redacted); err == nil {
		b.redacted = append(b.redacted, data...)
	}
}

// setUsage sets the token counts. Cached tokens do not count as input here.
func (a *answer) setUsage(u gjson.Result) {
	read, written := provider.TokenCount(u.Get("cacheReadInputTokens")), provider.TokenCount(u.Get("cacheWriteInputTokens"))
	a.Draft.Usage = model.TokenUsage{
		Input: provider.TokenCount(u.Get("inputTokens")) + read + written, Cached: read,
		Output: provider.TokenCount(u.Get("outputTokens")),
	}
}

// FinalAnswer implements provider.Decoder.
func (a *answer) FinalAnswer() (*model.Answer, error) {
	switch a.stop {
	case "":
		return nil, a.TruncatedError()
	case "malformed_model_output", "malformed_tool_use":
		return nil, a.TransientError("aborted its answer (%s)", a.stop)
	case "guardrail_intervened", "content_filtered":
		a.RecordRefusal(model.ContentFilter, a.stop, "")
	case "refusal":
		a.RecordRefusal(model.Refusal, "", "")
	case "max_tokens", "model_context_window_exceeded":
		a.Draft.Stop = model.Length
	default:
		a.Draft.Reasoning = chat.EncodeParts(a.client.config.Model, a.parts())
	}
	a.addInputs()
	if err := a.check(); err != nil {
		return nil, err
	}
	full := a.ResponseReader.Answer()
	if a.stop == "model_context_window_exceeded" && full.Text == "" && len(full.Calls) == 0 {
		return nil, a.PermanentError(errcode.ContextExceeded, "has no context left for an answer")
	}
	return full, nil
}

// addInputs adds the arguments of calls that came whole. Those of the last call of a
// truncated answer are left out: a part of them may look complete.
func (a *answer) addInputs() {
	for i, b := range a.blocks {
		truncated := a.Draft.Stop != "" && i == len(a.blocks)-1
		if b.input != "" && !truncated {
			a.Draft.AppendCall(b.key, "", "", b.input)
		}
	}
}

// parts returns the parts of the answer as Answer.Reasoning records them. Reasoning
// without a signature is left out: models that do not sign it reject it.
func (a *answer) parts() (parts []chat.AnswerPart) {
	for _, b := range a.blocks {
		switch {
		case b.kind == textKind && b.text > 0:
			parts = append(parts, chat.AnswerPart{Kind: chat.TextPart, Size: b.text})
		case b.kind == callKind:
			parts = append(parts, chat.AnswerPart{Kind: chat.CallPart})
		case len(b.signature) > 0 || len(b.redacted) > 0:
			parts = append(parts, chat.AnswerPart{Kind: chat.RawPart, Raw: b.rawReasoning()})
		}
	}
	return parts
}

// rawReasoning returns a block of reasoning as the provider wants it back.
func (b *block) rawReasoning() string {
	if len(b.redacted) > 0 {
		return `{"reasoningContent":{"redactedContent":"` + base64.StdEncoding.EncodeToString(b.redacted) + `"}}`
	}
	doc := chat.AppendString([]byte(`{"reasoningContent":{"reasoningText":{"text":`), string(b.thinking))
	doc = chat.AppendString(append(doc, `,"signature":`...), string(b.signature))
	return string(append(doc, `}}}`...))
}

// status returns the HTTP status that belongs to an exception in a stream.
func status(exception string) int {
	switch strings.ToLower(exception) {
	case "throttlingexception":
		return http.StatusTooManyRequests
	case "validationexception":
		return http.StatusBadRequest
	case "accessdeniedexception":
		return http.StatusForbidden
	case "serviceunavailableexception":
		return http.StatusServiceUnavailable
	case "modeltimeoutexception":
		return http.StatusRequestTimeout
	}
	return http.StatusInternalServerError
}
