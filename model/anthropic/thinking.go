package anthropic

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/chat"
)

// The kinds of blocks that an assistant's message is made of.
const (
	textKind     = "text"
	callKind     = "tool_use"
	thinkingKind = "thinking"
	redactedKind = "redacted_thinking"
)

// piece is a block of an assistant's message as Answer.Reasoning keeps it:
//
//	{"model":"claude-…","blocks":[{"type":"thinking","thinking":"…","signature":"…"},{"type":"text","bytes":12},{"type":"tool_use"}]}
//
// Thinking stands there whole. Text and calls are counted only, to tell where
// between them it belongs: a provider refuses thinking that has moved.
type piece struct {
	kind string
	size int    // bytes of a text
	raw  string // the block, of thinking
}

// record keeps the pieces of an answer that has thinking; nil for others.
func record(model string, pieces []piece) []byte {
	doc := chat.AppendString([]byte(`{"model":`), model)
	doc = append(doc, `,"blocks":[`...)
	thought := false
	for _, p := range pieces {
		switch p.kind {
		case textKind:
			doc = strconv.AppendInt(append(doc, `{"type":"text","bytes":`...), int64(p.size), 10)
			doc = append(doc, '}')
		case callKind:
			doc = append(doc, `{"type":"tool_use"}`...)
		default:
			doc, thought = append(doc, p.raw...), true
		}
		doc = append(doc, ',')
	}
	if !thought {
		return nil
	}
	return append(doc[:len(doc)-1], `]}`...)
}

// recall gives the pieces of a turn that has thinking of this model: the
// signatures of another's are refused. Where they do not fit the turn, the
// thinking alone is given, which then comes first.
func recall(turn chat.Turn, model string) []piece {
	kept := gjson.ParseBytes(turn.Reasoning)
	if turn.Provider != providerID || !gjson.ValidBytes(turn.Reasoning) || kept.Get("model").Str != model {
		return nil
	}
	var all, thinking []piece
	text, calls, fits := len(turn.Text), len(turn.Calls), true
	for _, b := range kept.Get("blocks").Array() {
		p := piece{kind: b.Get("type").Str, raw: b.Raw}
		switch p.kind {
		case textKind:
			p.size = int(min(b.Get("bytes").Uint(), 1<<30))
			text, fits = text-p.size, fits && p.size <= text
		case callKind:
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
