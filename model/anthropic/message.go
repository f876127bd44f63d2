package anthropic

import (
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider"
)

// message decodes an answer.
type message struct {
	*provider.ResponseReader
	client *client
	blocks []*block
	size   int // bytes of thinking so far
	usage  usage
	stop   string // stop_reason
	reason string // explanation of a refusal, if there is one
}

func (c *client) decoder(r *provider.ResponseReader) provider.Decoder {
	return &message{ResponseReader: r, client: c}
}

// block is a content block of the answer.
type block struct {
	piece
	index               string // the provider's number of the block
	key                 string // of the call in Draft
	start               gjson.Result
	thinking, signature []byte
	args                int // bytes of a call's arguments
}

// maxBlocks and maxThinking limit an answer in addition to chat.AnswerBuilder.Check.
const (
	maxBlocks   = 1024
	maxThinking = 8 << 20
)

// DecodeDocument implements provider.Decoder.
func (m *message) DecodeDocument(doc gjson.Result) (err error) {
	if doc.Get("type").Str == "error" {
		return m.errorFrom(doc)
	}
	blocks := 0
	doc.Get("content").ForEach(func(_, content gjson.Result) bool {
		m.startBlock(strconv.Itoa(blocks), content)
		blocks++
		err = m.check()
		return err == nil
	})
	if err != nil {
		return err
	}
	m.setStop(doc)
	m.usage.update(doc.Get("usage"))
	return m.check()
}

// DecodeEvent implements provider.Decoder.
func (m *message) DecodeEvent(doc gjson.Result) error {
	switch doc.Get("type").Str {
	case "message_start":
		m.usage.update(doc.Get("message.usage"))
	case "content_block_start":
		m.startBlock(doc.Get("index").Raw, doc.Get("content_block"))
	case "content_block_delta":
		m.extendBlock(doc.Get("index").Raw, doc.Get("delta"))
	case "message_delta":
		m.setStop(doc.Get("delta"))
		m.usage.update(doc.Get("usage"))
	case "message_stop":
		m.Ended = true
	case "error":
		return m.errorFrom(doc)
	}
	return m.check()
}

// check returns an error if the answer exceeds its limits.
func (m *message) check() error {
	if len(m.blocks) > maxBlocks || m.size > maxThinking {
		return m.PermanentError(errcode.LLMCallFailed, "sent %d blocks and %d bytes of thinking; at most %d and %d are allowed",
			len(m.blocks), m.size, maxBlocks, maxThinking)
	}
	return m.Draft.Check()
}

// startBlock adds a block, which may be complete already.
func (m *message) startBlock(index string, start gjson.Result) {
	b := &block{index: index, key: strconv.Itoa(len(m.blocks)), start: start, piece: piece{kind: start.Get("type").Str}}
	m.blocks = append(m.blocks, b)
	switch b.kind {
	case textKind:
		m.addText(b, start.Get("text").Str)
	case callKind:
		name := start.Get("name").Str
		m.Draft.AppendCall(b.key, start.Get("id").Str, name, "")
		m.EmitDelta(model.AnswerDelta{Tool: name})
	case thinkingKind:
		m.addThinking(&b.thinking, start.Get("thinking").Str)
		m.addThinking(&b.signature, start.Get("signature").Str)
	case redactedKind:
		m.size += len(start.Raw)
	}
}

// extendBlock adds a delta to a block.
func (m *message) extendBlock(index string, delta gjson.Result) {
	b := m.blockAt(index)
	if b == nil {
		return
	}
	switch kind := delta.Get("type").Str; {
	case kind == "text_delta" && b.kind == textKind:
		m.addText(b, delta.Get("text").Str)
	case kind == "input_json_delta" && b.kind == callKind:
		args := delta.Get("partial_json").Str
		b.args += len(args)
		m.Draft.AppendCall(b.key, "", "", args)
		m.EmitDelta(model.AnswerDelta{Args: args})
	case kind == "thinking_delta" && b.kind == thinkingKind:
		m.addThinking(&b.thinking, delta.Get("thinking").Str)
	case kind == "signature_delta" && b.kind == thinkingKind:
		m.addThinking(&b.signature, delta.Get("signature").Str)
	}
}

// blockAt returns the latest block with an index, or nil. Some servers use an index
// twice.
func (m *message) blockAt(index string) *block {
	for i := len(m.blocks) - 1; i >= 0; i-- {
		if m.blocks[i].index == index {
			return m.blocks[i]
		}
	}
	return nil
}

func (m *message) addText(b *block, text string) {
	b.size += len(text)
	m.Draft.AppendText(text)
	m.EmitDelta(model.AnswerDelta{Text: text})
}

func (m *message) addThinking(to *[]byte, text string) {
	m.size += len(text)
	*to = append(*to, text...)
}

// setStop records why the answer ends.
func (m *message) setStop(delta gjson.Result) {
	if stop := delta.Get("stop_reason").Str; stop != "" {
		m.stop = stop
	}
	if reason := delta.Get("stop_details.explanation").Str; reason != "" {
		m.reason = reason
	}
}

// FinalAnswer implements provider.Decoder.
func (m *message) FinalAnswer() (*model.Answer, error) {
	if !m.Ended {
		return nil, m.TruncatedError()
	}
	m.Draft.Usage = m.usage.sum()
	switch m.stop {
	case "refusal":
		m.RecordRefusal(model.Refusal, "", m.reason)
	case "max_tokens", "model_context_window_exceeded":
		m.Draft.Stop = model.Length
	default:
		m.Draft.Reasoning = m.reasoning()
	}
	m.addInitialArgs()
	if err := m.check(); err != nil {
		return nil, err
	}
	a := m.ResponseReader.Answer()
	switch {
	case m.stop == "model_context_window_exceeded" && a.Text == "" && len(a.Calls) == 0:
		return nil, m.PermanentError(errcode.ContextExceeded, "has no context left for an answer")
	case m.stop == "pause_turn" && a.Finish == model.FinishEnd && a.Text != "":
		a.Finish = model.FinishContinue // the model paused and continues when asked again
	}
	return a, nil
}

// addInitialArgs adds the arguments of calls that came with the start of their block.
// Those of the last call of a truncated answer are left out: a part of them may
// look complete.
func (m *message) addInitialArgs() {
	for i, b := range m.blocks {
		truncated := m.Draft.Stop != "" && i == len(m.blocks)-1
		if input := b.start.Get("input"); b.kind == callKind && b.args == 0 && input.Exists() && !truncated {
			m.Draft.AppendCall(b.key, "", "", input.Raw)
		}
	}
}

// reasoning returns the thinking of the answer as Answer.Reasoning records it.
func (m *message) reasoning() []byte {
	var pieces []piece
	for _, b := range m.blocks {
		switch b.kind {
		case thinkingKind:
			b.raw = string(b.rawThinking())
		case redactedKind:
			b.raw = string(append(chat.AppendString([]byte(`{"type":"redacted_thinking","data":`), b.start.Get("data").Str), '}'))
		case textKind, callKind:
		default:
			continue
		}
		pieces = append(pieces, b.piece)
	}
	return encodeReasoning(m.client.config.Model, pieces)
}

// rawThinking returns a thinking block as the provider wants it back.
func (b *block) rawThinking() []byte {
	doc := chat.AppendString([]byte(`{"type":"thinking","thinking":`), string(b.thinking))
	if len(b.signature) > 0 {
		doc = chat.AppendString(append(doc, `,"signature":`...), string(b.signature))
	}
	return append(doc, '}')
}

// usage has the token counts of the provider. fresh is input that is neither read from the cache
// nor written to it. written and read are input written to the cache and read from it. output
// counts the tokens of the answer.
type usage struct{ fresh, written, read, output int }

// update merges a report. Reports are cumulative, and not every one has all counts.
func (u *usage) update(report gjson.Result) {
	u.fresh = max(u.fresh, provider.TokenCount(report.Get("input_tokens")))
	u.written = max(u.written, provider.TokenCount(report.Get("cache_creation_input_tokens")))
	u.read = max(u.read, provider.TokenCount(report.Get("cache_read_input_tokens")))
	u.output = max(u.output, provider.TokenCount(report.Get("output_tokens")))
}

func (u usage) sum() model.TokenUsage {
	return model.TokenUsage{Input: u.fresh + u.written + u.read, Cached: u.read, Output: u.output}
}

// errorFrom returns the model.Error for an error object with HTTP status 200.
func (m *message) errorFrom(doc gjson.Result) error {
	return m.ErrorFrom(status(doc.Get("error.type").Str), 0, doc)
}

// status returns the HTTP status that belongs to a type of error.
func status(kind string) int {
	switch kind {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "timeout_error":
		return http.StatusGatewayTimeout
	case "overloaded_error":
		return 529
	}
	return http.StatusInternalServerError
}
