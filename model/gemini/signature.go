package gemini

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/chat"
)

// The kinds of parts that a model's content is made of.
const (
	textKind = "text"
	callKind = "call"
	rawKind  = "raw"
)

// piece is a part of a model's content as Answer.Reasoning keeps it:
//
//	{"model":"gemini-…","parts":[{"kind":"text","bytes":12},{"kind":"call","sign":"…"},{"kind":"raw","raw":{"text":"…","thought":true,"thoughtSignature":"…"}}]}
//
// Text and calls are counted only, to tell which of them a signature belongs
// to: the provider refuses one that has moved. A signed part that is neither
// stands there whole.
type piece struct {
	kind string
	size int // bytes of a text
	sign string
	raw  string
}

// encodeReasoning keeps the pieces of an answer that has a signature; nil for others.
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

// recordedPieces gives the pieces of a turn that has signatures of this model; nil
// where they do not fit the turn.
func recordedPieces(turn chat.Turn, model string) []piece {
	kept := gjson.ParseBytes(turn.Reasoning)
	if turn.Provider != providerID || !gjson.ValidBytes(turn.Reasoning) || kept.Get("model").Str != model {
		return nil
	}
	var pieces []piece
	text, calls := len(turn.Text), len(turn.Calls)
	for _, part := range kept.Get("parts").Array() {
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
