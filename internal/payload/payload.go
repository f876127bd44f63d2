// Package payload makes the text and the input of a task from a JSON document that comes from
// outside.
//
//	t, err := payload.NewTemplate("Look at {{.alert}}.", map[string]string{"alert": "/alerts/0/labels/alertname"})
//	document, err := payload.Parse(body)
//	text, input, err := t.Render(document)
//
// The template is the operator's. Values of the document are data. They never become part of
// the template. They stand in the text as JSON, and the input has them as they are. The package
// starts nothing.
package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// Limits of what is made from a document.
const (
	MaxFields = 20      // names of an input
	maxInput  = 1 << 20 // bytes of an input
	maxValue  = 4 << 10 // bytes of a value in the text
	maxKey    = 128     // bytes of a text that Document.Text returns
)

// Document is a parsed JSON document.
type Document struct{ value any }

// Parse parses a document strictly, see package strictjson. The error has the code
// InvalidArguments.
func Parse(data []byte) (Document, error) {
	if err := strictjson.CheckKeys(data, nil); err != nil {
		return Document{}, errcode.New(errcode.InvalidArguments, "the body is malformed or ambiguous JSON: %v", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var document Document
	if err := d.Decode(&document.value); err != nil {
		return Document{}, errcode.New(errcode.InvalidArguments, "the body is not JSON")
	}
	return document, nil
}

// Text returns the text or number at a pointer. It reports false for any other value, and for a
// text that is empty or has more than 128 bytes.
func (d Document) Text(p Pointer) (string, bool) {
	value, _ := p.find(d.value)
	text := ""
	switch v := value.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	}
	return text, text != "" && len(text) <= maxKey
}

// fieldName is the form of the names of an input, which templates contain.
var fieldName = textutil.LazyPattern(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// Template makes the text and the input of tasks. It is immutable and safe for concurrent use.
type Template struct {
	names    []string
	pointers map[string]Pointer
	set      *parameter.Set
	text     *parameter.Template
}

// NewTemplate parses a template and the pointers of the names that it may use. Without
// pointers, the name payload is the whole document. The error says what is wrong.
func NewTemplate(text string, pointers map[string]string) (*Template, error) {
	if len(pointers) == 0 {
		pointers = map[string]string{"payload": ""}
	}
	if len(pointers) > MaxFields {
		return nil, fmt.Errorf("the input has %d names; at most %d are allowed", len(pointers), MaxFields)
	}
	t := &Template{names: slices.Sorted(maps.Keys(pointers)), pointers: map[string]Pointer{}}
	var specs []parameter.Spec
	for _, name := range t.names {
		p, err := ParsePointer(pointers[name])
		if err != nil {
			return nil, fmt.Errorf("%.60q of the input %w", name, err)
		}
		if !fieldName().MatchString(name) {
			return nil, fmt.Errorf("%.60q is not a name of the input: write letters, digits and _, beginning with a letter", name)
		}
		t.pointers[name] = p
		specs = append(specs, parameter.Spec{Name: name, Type: parameter.TypeString, Description: "A value of the payload."})
	}
	set, problems := parameter.CompileSet(parameter.Options{}, specs, nil)
	if problems != nil {
		return nil, fmt.Errorf("the input is wrong: %s", problems[0].Message)
	}
	var err error
	t.set = set
	t.text, err = set.MessageTemplate(text)
	return t, err
}

// Render returns the text and the input for a document. A pointer that leads to nothing is
// null. The error has the code InvalidArguments: one of the two is too long.
func (t *Template) Render(d Document) (text string, input json.RawMessage, err error) {
	fields, quoted, size := map[string]json.RawMessage{}, map[string]string{}, 0
	for _, name := range t.names {
		value, _ := t.pointers[name].find(d.value)
		fields[name], _ = json.Marshal(value) // decoded JSON always marshals
		quoted[name] = quote(fields[name])
		if size += len(fields[name]); size > maxInput {
			return "", nil, errcode.New(errcode.InvalidArguments, "the input that the trigger makes of the body has more than %d bytes", maxInput)
		}
	}
	args, _ := json.Marshal(quoted) // texts always marshal
	input, _ = json.Marshal(fields) // likewise
	values, err := t.set.ParseArguments(args, nil, nil)
	if err != nil {
		return "", nil, err
	}
	text, err = t.text.RenderText(values)
	return text, input, err
}

// quote returns the text of a value in JSON. If the value is too long, it returns the beginning, as
// the JSON of a text.
func quote(value json.RawMessage) string {
	if len(value) > maxValue {
		value, _ = json.Marshal(textutil.Truncate(string(value), maxValue)) // a text always marshals
	}
	return string(value)
}
