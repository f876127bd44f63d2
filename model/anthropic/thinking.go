package anthropic

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/chat"
)

// The types of blocks in an assistant message.
const (
	textKind     = "text"
	callKind     = "tool_use"
	thinkingKind = "thinking"
	redactedKind = "redacted_thinking"
)

// piece is a block of an assistant message as Answer.Reasoning records it:
//
//	{"model":"claude-…","blocks":[{"type":"thinking","thinking":"…","signature":"…"},{"type":"text","bytes":12},{"type":"tool_use"}]}
//
// Thinking is recorded whole. Text and calls are only counted, to restore the order:
// the provider rejects thinking that has moved.
type piece struct {
	kind string
	size int    // bytes of a text block
	raw  string // a thinking block
}

// encodeReasoning returns the recorded form of pieces, or nil if none is thinking.
func encodeReasoning(model string, pieces []piece) []byte {
	doc := chat.AppendString([]byte(`{"model":`), model)
	doc = append(doc, `,"blocks":[`...)
	hasThinking := false
	for _, p := range pieces {
		switch p.kind {
		case textKind:
			doc = strconv.AppendInt(append(doc, `{"type":"text","bytes":`...), int64(p.size), 10)
			doc = append(doc, '}')
		case callKind:
			doc = append(doc, `{"type":"tool_use"}`...)
		default:
			doc, hasThinking = append(doc, p.raw...), true
		}
		doc = append(doc, ',')
	}
	if !hasThinking {
		return nil
	}
	return append(doc[:len(doc)-1], `]}`...)
}

// recordedParts returns the recorded pieces of a turn, or nil if another model
// produced them, since their signatures would be rejected. If they do not match the
// turn it returns the thinking only, which is then sent first.
func recordedParts(turn chat.Turn, model string) []chat.AnswerPart {
	recorded := gjson.ParseBytes(turn.Reasoning)
	if turn.Provider != providerID || !gjson.ValidBytes(turn.Reasoning) || recorded.Get("model").Str != model {
		return nil
	}
	var all, thinking []chat.AnswerPart
	text, calls, fits := len(turn.Text), len(turn.Calls), true
	for _, b := range recorded.Get("blocks").Array() {
		p := chat.AnswerPart{Kind: chat.RawPart, Raw: b.Raw}
		switch b.Get("type").Str {
		case textKind:
			p = chat.AnswerPart{Kind: chat.TextPart, Size: int(min(b.Get("bytes").Uint(), 1<<30))}
			text, fits = text-p.Size, fits && p.Size <= text
		case callKind:
			p = chat.AnswerPart{Kind: chat.CallPart}
			calls--
		case thinkingKind, redactedKind:
			thinking = append(thinking, p)
		default:
			continue
		}
		all = append(all, p)
	}
	if !fits || text != 0 || calls != 0 {
		return thinking
	}
	return all
}
