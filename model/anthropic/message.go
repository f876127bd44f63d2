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

// message is the provider's answer as it comes.
type message struct {
	*provider.ResponseReader
	client *client
	blocks []*block
	size   int // bytes of thinking
	usage  usage
	stop   string // stop_reason
	reason string // of a refusal, when the provider says it
}

func (c *client) decoder(r *provider.ResponseReader) provider.Decoder {
	return &message{ResponseReader: r, client: c}
}

// block is a content block of a message.
type block struct {
	piece
	index               string // by the provider
	key                 string // in the draft
	start               gjson.Result
	thinking, signature []byte
	args                int // bytes of a call's arguments
}

// maxBlocks and maxThinking bound a message beside chat.AnswerBuilder.Check.
const (
	maxBlocks   = 1024
	maxThinking = 8 << 20
)

// Document implements provider.Decoder.
func (s *message) Document(doc gjson.Result) (err error) {
	if doc.Get("type").Str == "error" {
		return s.errorFrom(doc)
	}
	blocks := 0
	doc.Get("content").ForEach(func(_, content gjson.Result) bool {
		s.begin(strconv.Itoa(blocks), content)
		blocks++
		err = s.check()
		return err == nil
	})
	if err != nil {
		return err
	}
	s.end(doc)
	s.usage.take(doc.Get("usage"))
	return s.check()
}

// Event implements provider.Decoder.
func (s *message) Event(doc gjson.Result) error {
	switch doc.Get("type").Str {
	case "message_start":
		s.usage.take(doc.Get("message.usage"))
	case "content_block_start":
		s.begin(doc.Get("index").Raw, doc.Get("content_block"))
	case "content_block_delta":
		s.extend(doc.Get("index").Raw, doc.Get("delta"))
	case "message_delta":
		s.end(doc.Get("delta"))
		s.usage.take(doc.Get("usage"))
	case "message_stop":
		s.Ended = true
	case "error":
		return s.errorFrom(doc)
	}
	return s.check()
}

// check refuses a message that has grown past every measure.
func (s *message) check() error {
	if len(s.blocks) > maxBlocks || s.size > maxThinking {
		return s.Permanent(errcode.LLMCallFailed, "sent %d blocks and %d bytes of thinking; at most %d and %d are taken",
			len(s.blocks), s.size, maxBlocks, maxThinking)
	}
	return s.Draft.Check()
}

// begin takes in the beginning of a block, or a whole one.
func (s *message) begin(index string, start gjson.Result) {
	b := &block{index: index, key: strconv.Itoa(len(s.blocks)), start: start, piece: piece{kind: start.Get("type").Str}}
	s.blocks = append(s.blocks, b)
	switch b.kind {
	case textKind:
		s.say(b, start.Get("text").Str)
	case callKind:
		name := start.Get("name").Str
		s.Draft.Call(b.key, start.Get("id").Str, name, "")
		s.Emit(model.Delta{Tool: name})
	case thinkingKind:
		s.thinking(&b.thinking, start.Get("thinking").Str)
		s.thinking(&b.signature, start.Get("signature").Str)
	case redactedKind:
		s.size += len(start.Raw)
	}
}

// extend takes in more of a block.
func (s *message) extend(index string, delta gjson.Result) {
	b := s.find(index)
	if b == nil {
		return
	}
	switch kind := delta.Get("type").Str; {
	case kind == "text_delta" && b.kind == textKind:
		s.say(b, delta.Get("text").Str)
	case kind == "input_json_delta" && b.kind == callKind:
		args := delta.Get("partial_json").Str
		b.args += len(args)
		s.Draft.Call(b.key, "", "", args)
		s.Emit(model.Delta{Args: args})
	case kind == "thinking_delta" && b.kind == thinkingKind:
		s.thinking(&b.thinking, delta.Get("thinking").Str)
	case kind == "signature_delta" && b.kind == thinkingKind:
		s.thinking(&b.signature, delta.Get("signature").Str)
	}
}

// find gives the block that was begun last with an index.
func (s *message) find(index string) *block {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		if s.blocks[i].index == index {
			return s.blocks[i]
		}
	}
	return nil
}

func (s *message) say(b *block, text string) {
	b.size += len(text)
	s.Draft.AppendText(text)
	s.Emit(model.Delta{Text: text})
}

func (s *message) thinking(to *[]byte, text string) {
	s.size += len(text)
	*to = append(*to, text...)
}

// end takes in why the message ends.
func (s *message) end(delta gjson.Result) {
	if stop := delta.Get("stop_reason").Str; stop != "" {
		s.stop = stop
	}
	if reason := delta.Get("stop_details.explanation").Str; reason != "" {
		s.reason = reason
	}
}

// Answer implements provider.Decoder.
func (s *message) Answer() (*model.Answer, error) {
	if !s.Ended {
		return nil, s.Truncated()
	}
	s.Draft.Usage = s.usage.sum()
	switch s.stop {
	case "refusal":
		s.Refusal("", s.reason)
	case "max_tokens", "model_context_window_exceeded":
		s.Draft.Stop = model.Length
	default:
		s.Draft.Reasoning = s.reasoning()
	}
	s.complete()
	a := s.ResponseReader.Answer()
	switch {
	case s.stop == "model_context_window_exceeded" && a.Text == "" && len(a.Calls) == 0:
		return nil, s.Permanent(errcode.ContextExceeded, "has no room left for an answer")
	case s.stop == "pause_turn" && a.Finish == model.FinishEnd && a.Text != "":
		a.Finish = model.FinishContinue // it wants to be asked again, with what it has said
	}
	return a, nil
}

// complete adds the arguments of calls that came with their beginning. The
// last ones of an answer that was cut off stay away: a part of them may look
// like all.
func (s *message) complete() {
	for i, b := range s.blocks {
		cut := s.Draft.Stop != "" && i == len(s.blocks)-1
		if input := b.start.Get("input"); b.kind == callKind && b.args == 0 && input.Exists() && !cut {
			s.Draft.Call(b.key, "", "", input.Raw)
		}
	}
}

// reasoning gives the thinking of a message in the form of record.
func (s *message) reasoning() []byte {
	var pieces []piece
	for _, b := range s.blocks {
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
	return record(s.client.config.Model, pieces)
}

func (b *block) rawThinking() []byte {
	doc := chat.AppendString([]byte(`{"type":"thinking","thinking":`), string(b.thinking))
	if len(b.signature) > 0 {
		doc = chat.AppendString(append(doc, `,"signature":`...), string(b.signature))
	}
	return append(doc, '}')
}

// usage is what the provider counts: what it had not kept, kept anew, and read
// from what it kept, each without the others.
type usage struct{ fresh, written, read, output int }

// take takes in a report. Later ones say more or the same, never less.
func (u *usage) take(report gjson.Result) {
	u.fresh = max(u.fresh, provider.Count(report.Get("input_tokens")))
	u.written = max(u.written, provider.Count(report.Get("cache_creation_input_tokens")))
	u.read = max(u.read, provider.Count(report.Get("cache_read_input_tokens")))
	u.output = max(u.output, provider.Count(report.Get("output_tokens")))
}

func (u usage) sum() model.Usage {
	return model.Usage{Input: u.fresh + u.written + u.read, Cached: u.read, Output: u.output}
}

// errorFrom gives the trouble of an error that comes with a good status.
func (s *message) errorFrom(doc gjson.Result) error {
	return s.ErrorFrom(status(doc.Get("error.type").Str), 0, doc)
}

// status gives the status that an error has when it comes before an answer.
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
