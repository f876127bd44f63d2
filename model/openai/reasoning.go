package openai

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/chat"
)

// The fields a server gives its model's reasoning in, and wants it back in:
// OpenRouter in pieces of several kinds, DeepSeek, llama.cpp and older vLLM as
// text, newer vLLM and Ollama as text of another name.
const (
	fieldDetails   = "reasoning_details"
	fieldContent   = "reasoning_content"
	fieldReasoning = "reasoning"
)

// What reasoning may grow to: bytes, and details.
const (
	maxReasoning = 8 << 20
	maxDetails = 1024
)

// reasoning is what a model thought before it answered. Only the first of the
// fields above that a server uses is kept: the others say the same again.
type reasoning struct {
	details []*detail
	texts   [2]strings.Builder // fieldContent, fieldReasoning
	sent    [2]bool            // also when nothing stood in it
	size    int
}

// update takes in the reasoning of a message or of a piece of one.
func (r *reasoning) update(key string, value gjson.Result, piece bool) {
	switch {
	case key == fieldDetails && value.IsArray():
		if r.size += len(value.Raw); r.size > maxReasoning {
			return
		}
		value.ForEach(func(_, d gjson.Result) bool {
			r.addDetail(d, piece)
			if len(r.details) > maxDetails {
				r.size = maxReasoning + 1
			}
			return r.size <= maxReasoning
		})
	case key == fieldContent && value.Type == gjson.String:
		r.addText(0, value.Str)
	case key == fieldReasoning && value.Type == gjson.String:
		r.addText(1, value.Str)
	}
}

func (r *reasoning) addText(which int, text string) {
	r.size += len(text)
	r.sent[which] = true
	r.texts[which].WriteString(text)
}

// raw gives the fields to send back as an object, nil when there are none.
func (r *reasoning) raw() []byte {
	switch {
	case len(r.details) > 0:
		b := append([]byte(nil), `{"`+fieldDetails+`":[`...)
		for i, d := range r.details {
			if i > 0 {
				b = append(b, ',')
			}
			b = d.append(b)
		}
		return append(b, `]}`...)
	case r.sent[0]: // DeepSeek misses the field even when it is empty
		return append(appendField(nil, `{"`+fieldContent+`":`, r.texts[0].String()), '}')
	case r.texts[1].Len() > 0:
		return append(appendField(nil, `{"`+fieldReasoning+`":`, r.texts[1].String()), '}')
	}
	return nil
}

// appendReasoning writes recorded reasoning into a message: the fields known here.
func appendReasoning(b, recorded []byte) []byte {
	gjson.ParseBytes(recorded).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case fieldDetails, fieldContent, fieldReasoning:
			b = append(append(append(b, `,"`...), key.Str...), `":`...)
			b = append(b, value.Raw...)
		}
		return true
	})
	return b
}

// detail is one of OpenRouter's reasoning details. It goes back as it came,
// save that the pieces of a stream are put together.
type detail struct {
	kind, index string
	keys        []string // in the order they came
	raw         map[string]string
	key         string // the field whose text comes in pieces
	text        strings.Builder
}

// addDetail takes in a detail. A piece goes on with the one before when both are
// text of the same kind and place.
func (r *reasoning) addDetail(d gjson.Result, piece bool) {
	if !d.IsObject() {
		return
	}
	next := &detail{raw: map[string]string{}}
	next.merge(d)
	if n := len(r.details); piece && n > 0 && r.details[n-1].continues(next) {
		r.details[n-1].merge(d)
		return
	}
	r.details = append(r.details, next)
}

func (d *detail) continues(next *detail) bool {
	return d.kind == next.kind && d.index == next.index && (d.kind == "reasoning.text" || d.kind == "reasoning.summary")
}

// merge takes in fields: text is added to what is there, anything else counts
// when it came for the first time.
func (d *detail) merge(from gjson.Result) {
	from.ForEach(func(key, value gjson.Result) bool {
		switch name := key.Str; {
		case (name == "text" || name == "summary") && value.Type == gjson.String && (d.key == "" || d.key == name):
			d.key = name
			d.setFirst(name, value.Raw)
			d.text.WriteString(value.Str)
		default:
			d.setFirst(name, value.Raw)
		}
		return true
	})
	d.kind, d.index = gjson.Parse(d.raw["type"]).Str, d.raw["index"]
}

// setFirst keeps the first value of a field that is not null.
func (d *detail) setFirst(name, raw string) {
	switch d.raw[name] {
	case "":
		d.keys = append(d.keys, name)
		d.raw[name] = raw
	case "null":
		d.raw[name] = raw
	}
}

// append writes the detail.
func (d *detail) append(b []byte) []byte {
	b = append(b, '{')
	for i, key := range d.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(chat.AppendString(b, key), ':')
		if key == d.key {
			b = chat.AppendString(b, d.text.String())
		} else {
			b = append(b, d.raw[key]...)
		}
	}
	return append(b, '}')
}
