package openai

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/chat"
)

// The fields in which servers send the reasoning of a model and expect it back:
// OpenRouter sends a list of details; DeepSeek, llama.cpp and older vLLM send text;
// newer vLLM and Ollama send text in another field.
const (
	fieldDetails   = "reasoning_details"
	fieldContent   = "reasoning_content"
	fieldReasoning = "reasoning"
)

// Limits of the reasoning: bytes and details.
const (
	maxReasoning = 8 << 20
	maxDetails   = 1024
)

// reasoning collects the reasoning of an answer. If a server uses several of the
// fields above, only the first in their order is recorded: the others repeat it.
type reasoning struct {
	details []*detail
	texts   [2]strings.Builder // fieldContent, fieldReasoning
	sent    [2]bool            // the field was present, even if empty
	size    int
}

// update adds the reasoning of a message, or of a part of one.
func (r *reasoning) update(key string, value gjson.Result, partial bool) {
	switch {
	case key == fieldDetails && value.IsArray():
		if r.size += len(value.Raw); r.size > maxReasoning {
			return
		}
		value.ForEach(func(_, d gjson.Result) bool {
			r.addDetail(d, partial)
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

// raw returns the field to send back in an object, or nil if there is none.
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
	case r.sent[0]: // DeepSeek requires the field even if it is empty
		return append(appendField(nil, `{"`+fieldContent+`":`, r.texts[0].String()), '}')
	case r.texts[1].Len() > 0:
		return append(appendField(nil, `{"`+fieldReasoning+`":`, r.texts[1].String()), '}')
	}
	return nil
}

// appendReasoning appends the known fields of recorded reasoning to a message.
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

// detail is one of OpenRouter's reasoning details. It is sent back unchanged, with
// the parts of a stream joined.
type detail struct {
	kind, index string
	keys        []string // in their original order
	raw         map[string]string
	key         string // the field whose text arrives in parts; "" if there is none
	text        strings.Builder
}

// addDetail adds a detail. A part of a stream is joined to the previous detail if both
// are text with the same type and index.
func (r *reasoning) addDetail(d gjson.Result, partial bool) {
	if !d.IsObject() {
		return
	}
	next := &detail{raw: map[string]string{}}
	next.merge(d)
	if n := len(r.details); partial && n > 0 && r.details[n-1].continues(next) {
		r.details[n-1].merge(d)
		return
	}
	r.details = append(r.details, next)
}

// continues reports whether next is a further part of d.
func (d *detail) continues(next *detail) bool {
	return d.kind == next.kind && d.index == next.index && (d.kind == "reasoning.text" || d.kind == "reasoning.summary")
}

// merge adds the fields of a part: text is appended, and of any other field the first
// value counts.
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

// setFirst sets a field unless it has a value other than null.
func (d *detail) setFirst(name, raw string) {
	switch d.raw[name] {
	case "":
		d.keys = append(d.keys, name)
		d.raw[name] = raw
	case "null":
		d.raw[name] = raw
	}
}

// append appends the detail as JSON.
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
