package openai

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/chat"
)

// The fields in which servers send the reasoning of a model and expect it back.
// OpenRouter sends a list of details. DeepSeek, llama.cpp and older vLLM send text.
// Newer vLLM and Ollama send text in another field.
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
	details   []*detail       // of fieldDetails
	content   reasoningText   // of fieldContent
	reasoning strings.Builder // of fieldReasoning
	size      int             // bytes of all fields
}

// reasoningText is the text of a field that is sent back even if it is empty.
type reasoningText struct {
	strings.Builder
	received bool
}

// isTooLarge reports whether the answer has more reasoning than the limits allow. Such an answer is
// an error, so update need not keep all of it.
func (r *reasoning) isTooLarge() bool { return r.size > maxReasoning || len(r.details) > maxDetails }

// update adds the value of a field with reasoning, of a message or of a part of one. It ignores other
// fields.
func (r *reasoning) update(key string, value gjson.Result, partial bool) {
	switch {
	case key == fieldDetails && value.IsArray():
		if r.size += len(value.Raw); r.isTooLarge() {
			return
		}
		value.ForEach(func(_, d gjson.Result) bool {
			r.addDetail(d, partial)
			return !r.isTooLarge()
		})
	case key == fieldContent && value.Type == gjson.String:
		r.size += len(value.Str)
		r.content.received = true
		r.content.WriteString(value.Str)
	case key == fieldReasoning && value.Type == gjson.String:
		r.size += len(value.Str)
		r.reasoning.WriteString(value.Str)
	}
}

// document returns an object with the field to send back, or nil if there is none.
func (r *reasoning) document() []byte {
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
	case r.content.received: // DeepSeek requires the field even if it is empty
		return append(appendField(nil, `{"`+fieldContent+`":`, r.content.String()), '}')
	case r.reasoning.Len() > 0:
		return append(appendField(nil, `{"`+fieldReasoning+`":`, r.reasoning.String()), '}')
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
	names       []string          // of the fields, in their original order
	raw         map[string]string // the first value of each field other than null, as JSON
	textName    string            // the field whose text arrives in parts; "" if there is none
	text        strings.Builder   // of all parts
}

// addDetail adds a detail. A part of a stream is joined to the previous detail if both
// are text with the same type and index.
func (r *reasoning) addDetail(d gjson.Result, partial bool) {
	if !d.IsObject() {
		return
	}
	next := &detail{raw: map[string]string{}}
	next.merge(d)
	if n := len(r.details); partial && n > 0 && r.details[n-1].isContinuedBy(next) {
		r.details[n-1].merge(d)
		return
	}
	r.details = append(r.details, next)
}

// isContinuedBy reports whether next is a further part of d.
func (d *detail) isContinuedBy(next *detail) bool {
	return d.kind == next.kind && d.index == next.index && (d.kind == "reasoning.text" || d.kind == "reasoning.summary")
}

// merge adds the fields of a part. It appends the text. Any other field keeps its first value.
func (d *detail) merge(from gjson.Result) {
	from.ForEach(func(key, value gjson.Result) bool {
		switch name := key.Str; {
		case (name == "text" || name == "summary") && value.Type == gjson.String && (d.textName == "" || d.textName == name):
			d.textName = name
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
		d.names = append(d.names, name)
		d.raw[name] = raw
	case "null":
		d.raw[name] = raw
	}
}

// append appends the detail as JSON.
func (d *detail) append(b []byte) []byte {
	b = append(b, '{')
	for i, name := range d.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(chat.AppendString(b, name), ':')
		if name == d.textName {
			b = chat.AppendString(b, d.text.String())
		} else {
			b = append(b, d.raw[name]...)
		}
	}
	return append(b, '}')
}
