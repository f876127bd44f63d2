package chat

import (
	"encoding/json"
	"iter"
	"strconv"

	"github.com/tidwall/gjson"
)

// PartKind is the kind of an AnswerPart.
type PartKind string

// The kinds of parts of an answer.
const (
	TextPart PartKind = "text"
	CallPart PartKind = "call"
	RawPart  PartKind = "raw" // data of the provider, such as signed reasoning
)

// AnswerPart is a part of an answer, in the order in which the provider sent it. A
// provider that needs its reasoning back at the same place records all parts as
// Answer.Reasoning:
//
//	{"model":"gemini-…","parts":[{"kind":"text","bytes":12},{"kind":"call","sign":"…"},{"kind":"raw","raw":{…}}]}
//
// Text and calls are only counted: the answer has them.
type AnswerPart struct {
	Kind PartKind
	Size int    // bytes of a TextPart
	Sign string // what the provider added to the part and needs back, such as a signature or the phase of a message; "" if nothing
	Raw  string // a JSON object, of a RawPart
}

// EncodeParts returns the recorded form of parts, or nil if none of them is needed
// back. model is the provider's name of the model.
func EncodeParts(model string, parts []AnswerPart) json.RawMessage {
	doc := AppendString([]byte(`{"model":`), model)
	doc = append(doc, `,"parts":[`...)
	needed := false
	for _, p := range parts {
		doc = append(appendPart(doc, p), ',')
		needed = needed || p.Sign != "" || p.Kind == RawPart
	}
	if !needed {
		return nil
	}
	return append(doc[:len(doc)-1], `]}`...)
}

func appendPart(doc []byte, p AnswerPart) []byte {
	doc = append(doc, `{"kind":"`+string(p.Kind)+`"`...)
	switch p.Kind {
	case TextPart:
		doc = strconv.AppendInt(append(doc, `,"bytes":`...), int64(p.Size), 10)
	case RawPart:
		doc = append(append(doc, `,"raw":`...), p.Raw...)
	}
	if p.Sign != "" {
		doc = AppendString(append(doc, `,"sign":`...), p.Sign)
	}
	return append(doc, '}')
}

// RecordedParts returns the recorded parts of an Assistant turn. It returns nil if
// another provider or model produced them, or if they do not match the turn: providers
// reject reasoning that has moved. The sizes add up to the text of the turn, and there
// is a CallPart for each call.
func RecordedParts(turn Turn, provider, model string) []AnswerPart {
	recorded := gjson.ParseBytes(turn.Reasoning)
	if turn.Provider != provider || !gjson.ValidBytes(turn.Reasoning) || recorded.Get("model").Str != model {
		return nil
	}
	var parts []AnswerPart
	text, calls := len(turn.Text), len(turn.Calls)
	for _, entry := range recorded.Get("parts").Array() {
		p := AnswerPart{Kind: PartKind(entry.Get("kind").Str), Sign: entry.Get("sign").Str, Raw: entry.Get("raw").Raw}
		switch {
		case p.Kind == TextPart:
			p.Size = int(min(entry.Get("bytes").Uint(), 1<<30))
			text -= p.Size
		case p.Kind == CallPart:
			calls--
		case p.Kind != RawPart || !entry.Get("raw").IsObject():
			return nil
		}
		if text < 0 {
			return nil
		}
		parts = append(parts, p)
	}
	if text != 0 || calls != 0 {
		return nil
	}
	return parts
}

// AnswerBlock is a part of an Assistant turn with its content.
type AnswerBlock struct {
	AnswerPart
	Text string // of a TextPart
	Call Call   // of a CallPart
}

// Blocks yields the parts of an Assistant turn with their content. What parts leaves out
// comes last: the rest of the text, then the other calls. The parts must not have more text
// or calls than the turn.
func (t *Turn) Blocks(parts []AnswerPart) iter.Seq[AnswerBlock] {
	return func(yield func(AnswerBlock) bool) {
		text, calls := t.Text, t.Calls
		for _, p := range parts {
			b := AnswerBlock{AnswerPart: p}
			switch p.Kind {
			case TextPart:
				b.Text, text = text[:p.Size], text[p.Size:]
			case CallPart:
				b.Call, calls = calls[0], calls[1:]
			}
			if !yield(b) {
				return
			}
		}
		if text != "" && !yield(AnswerBlock{AnswerPart: AnswerPart{Kind: TextPart, Size: len(text)}, Text: text}) {
			return
		}
		for _, c := range calls {
			if !yield(AnswerBlock{AnswerPart: AnswerPart{Kind: CallPart}, Call: c}) {
				return
			}
		}
	}
}
