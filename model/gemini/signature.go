package gemini

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/chat"
)

// The kinds of parts in a content of the model, as recorded.
const (
	textKind = "text"
	callKind = "call"
	rawKind  = "raw"
)

// piece is a part of a content of the model as Answer.Reasoning records it:
//
//	{"model":"gemini-…","parts":[{"kind":"text","bytes":12},{"kind":"call","sign":"…"},{"kind":"raw","raw":{"text":"…","thought":true,"thoughtSignature":"…"}}]}
//
// Text and calls are only counted, to restore which of them has a signature: the
// provider rejects a signature that has moved. Other signed parts are recorded
// whole.
type piece struct {
	kind string
	size int    // bytes of a text part
	sign string // thoughtSignature; "" if there is none
	raw  string // the part, of rawKind
}

// encodeReasoning returns the recorded form of pieces, or nil if none is signed.
func encodeReasoning(model string, pieces []piece) []byte {
	doc := chat.AppendString([]byte(`{"model":`), model)
	doc = append(doc, `,"parts":[`...)
	signed := false
	for _, p := range pieces {
		doc = append(appendPiece(doc, p), ',')
		signed = signed || p.sign != "" || p.kind == rawKind
	}
	if !signed {
		return nil
	}
	return append(doc[:len(doc)-1], `]}`...)
}

func appendPiece(doc []byte, p piece) []byte {
	doc = append(doc, `{"kind":"`+p.kind+`"`...)
	switch p.kind {
	case textKind:
		doc = strconv.AppendInt(append(doc, `,"bytes":`...), int64(p.size), 10)
	case rawKind:
		doc = append(append(doc, `,"raw":`...), p.raw...)
	}
	if p.sign != "" {
		doc = chat.AppendString(append(doc, `,"sign":`...), p.sign)
	}
	return append(doc, '}')
}

// recordedPieces returns the recorded pieces of a turn, or nil if another model
// produced them or they do not match the turn.
func recordedPieces(turn chat.Turn, model string) []piece {
	recorded := gjson.ParseBytes(turn.Reasoning)
	if turn.Provider != providerID || !gjson.ValidBytes(turn.Reasoning) || recorded.Get("model").Str != model {
		return nil
	}
	var pieces []piece
	text, calls := len(turn.Text), len(turn.Calls)
	for _, part := range recorded.Get("parts").Array() {
		p := piece{kind: part.Get("kind").Str, sign: part.Get("sign").Str, raw: part.Get("raw").Raw}
		switch {
		case p.kind == textKind:
			p.size = int(min(part.Get("bytes").Uint(), 1<<30))
			text -= p.size
		case p.kind == callKind:
			calls--
		case p.kind != rawKind || !part.Get("raw").IsObject():
			return nil
		}
		if text < 0 {
			return nil
		}
		pieces = append(pieces, p)
	}
	if text != 0 || calls != 0 {
		return nil
	}
	return pieces
}
