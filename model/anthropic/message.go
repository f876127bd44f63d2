package anthropic

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// message is the provider's answer as it comes.
type message struct {
	model  *Model
	tools  *chat.Tools
	draft  chat.Draft
	blocks []*block
	size   int // bytes of thinking
	usage  usage
	stop   string // stop_reason
	reason string // of a refusal, when the provider says it
	done   bool
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

// maxBlocks and maxThinking bound a message beside chat.Draft.Check.
const (
	maxBlocks   = 1024
	maxThinking = 8 << 20
)

// document takes in a whole message.
func (s *message) document(data []byte) error {
	doc, err := s.model.parse(data)
	if err != nil {
		return err
	}
	if doc.Get("type").Str == "error" {
		return s.model.complaint(doc)
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

// event takes in an event of a stream and gives what there is to show of it.
func (s *message) event(data []byte) (model.Delta, error) {
	var delta model.Delta
	doc, err := s.model.parse(data)
	if err != nil {
		return delta, err
	}
	switch doc.Get("type").Str {
	case "message_start":
		s.usage.take(doc.Get("message.usage"))
	case "content_block_start":
		delta = s.begin(doc.Get("index").Raw, doc.Get("content_block"))
	case "content_block_delta":
		delta = s.extend(doc.Get("index").Raw, doc.Get("delta"))
	case "message_delta":
		s.end(doc.Get("delta"))
		s.usage.take(doc.Get("usage"))
	case "message_stop":
		s.done = true
	case "error":
		return delta, s.model.complaint(doc)
	}
	return delta, s.check()
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

// check refuses a message that has grown past every measure.
func (s *message) check() error {
	if len(s.blocks) > maxBlocks || s.size > maxThinking {
		return model.Lasting(errcode.LLMCallFailed, nil, "model %q sent %d blocks and %d bytes of thinking; at most %d and %d are taken",
			s.model.config.Name, len(s.blocks), s.size, maxBlocks, maxThinking)
	}
	return s.draft.Check()
}

// begin takes in the beginning of a block, or a whole one.
func (s *message) begin(index string, start gjson.Result) model.Delta {
	b := &block{index: index, key: strconv.Itoa(len(s.blocks)), start: start, piece: piece{kind: start.Get("type").Str}}
	s.blocks = append(s.blocks, b)
	switch b.kind {
	case textKind:
		return s.say(b, start.Get("text").Str)
	case callKind:
		name := start.Get("name").Str
		s.draft.Call(b.key, start.Get("id").Str, name, "")
		if s.tools != nil {
			name = s.tools.Real(name)
		}
		return model.Delta{Tool: name}
	case thinkingKind:
		s.think(&b.thinking, start.Get("thinking").Str)
		s.think(&b.signature, start.Get("signature").Str)
	case redactedKind:
		s.size += len(start.Raw)
	}
	return model.Delta{}
}

// extend takes in more of a block.
func (s *message) extend(index string, delta gjson.Result) model.Delta {
	b := s.find(index)
	if b == nil {
		return model.Delta{}
	}
	switch kind := delta.Get("type").Str; {
	case kind == "text_delta" && b.kind == textKind:
		return s.say(b, delta.Get("text").Str)
	case kind == "input_json_delta" && b.kind == callKind:
		args := delta.Get("partial_json").Str
		b.args += len(args)
		s.draft.Call(b.key, "", "", args)
		return model.Delta{Args: args}
	case kind == "thinking_delta" && b.kind == thinkingKind:
		s.think(&b.thinking, delta.Get("thinking").Str)
	case kind == "signature_delta" && b.kind == thinkingKind:
		s.think(&b.signature, delta.Get("signature").Str)
	}
	return model.Delta{}
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

func (s *message) say(b *block, text string) model.Delta {
	b.size += len(text)
	s.draft.Say(text)
	return model.Delta{Text: text}
}

func (s *message) think(to *[]byte, text string) {
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

// answer gives the message as an answer to items.
func (s *message) answer(items []model.Item) (*model.Answer, error) {
	s.draft.Usage = s.usage.sum()
	switch s.stop {
	case "refusal":
		s.draft.Stop = model.Refusal
	case "max_tokens", "model_context_window_exceeded":
		s.draft.Stop = model.Length
	default:
		s.draft.Reasoning = s.reasoning()
	}
	s.complete()
	a := s.draft.Answer(provider, s.tools, items)
	switch {
	case s.stop == "model_context_window_exceeded" && a.Text == "" && len(a.Calls) == 0:
		return nil, model.Lasting(errcode.ContextExceeded, nil, "model %q has no room left for an answer", s.model.config.Name)
	case s.stop == "pause_turn" && a.Finish == model.End && a.Text != "":
		a.Finish = model.Continue // it wants to be asked again, with what it has said
	case a.Stop == model.Refusal:
		refuse(a, s.reason)
	}
	return a, nil
}

// complete adds the arguments of calls that came with their beginning. The
// last ones of an answer that was cut off stay away: a part of them may look
// like all.
func (s *message) complete() {
	for i, b := range s.blocks {
		cut := s.draft.Stop != "" && i == len(s.blocks)-1
		if input := b.start.Get("input"); b.kind == callKind && b.args == 0 && input.Exists() && !cut {
			s.draft.Call(b.key, "", "", input.Raw)
		}
	}
}

// refuse makes an answer a refusal: what it began to do is not done.
func refuse(a *model.Answer, reason string) {
	a.Calls, a.Finish = nil, model.End
	said := "The model refused to answer."
	if a.Text != "" {
		said = a.Text + "\n\nThe model refused to go on."
	}
	a.Text = strings.TrimSpace(said + " " + reason)
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
	return record(s.model.config.Model, pieces)
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
	count(&u.fresh, report.Get("input_tokens"))
	count(&u.written, report.Get("cache_creation_input_tokens"))
	count(&u.read, report.Get("cache_read_input_tokens"))
	count(&u.output, report.Get("output_tokens"))
}

// maxTokens bounds what is believed: no sum of such numbers runs over.
const maxTokens = 1 << 30

func count(n *int, report gjson.Result) {
	*n = max(*n, int(min(report.Int(), maxTokens)))
}

func (u usage) sum() model.Usage {
	return model.Usage{Input: u.fresh + u.written + u.read, Cached: u.read, Output: u.output}
}

// complaint gives the trouble of an error that comes with a good status.
func (m *Model) complaint(doc gjson.Result) error {
	return m.endpoint.Complaint(status(doc.Get("error.type").Str), 0, []byte(doc.Raw))
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
