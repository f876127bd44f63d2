package human

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// kind is the type of a field as schemas name it.
type kind string

// The kinds that are read in a way of their own. All others are JSON.
const (
	stringKind  kind = "string"
	numberKind  kind = "number"
	integerKind kind = "integer"
	booleanKind kind = "boolean"
	objectKind  kind = "object"
	arrayKind   kind = "array"
	anyKind     kind = "any JSON"
)

func (k kind) with(required bool) string {
	if required {
		return string(k) + ", required"
	}
	return string(k) + ", optional"
}

// field is a property of a tool's arguments.
type field struct {
	name, description string
	kind              kind
	required          bool
	nullable          bool
	multiline         bool            // of several types, of which one is string: what is no JSON is that
	choices           []gjson.Result  // empty: any
	preset            json.RawMessage // what the tool takes if nothing is given
	shape             string          // the schema of what is typed as JSON
}

// maxFields is how many fields are asked one by one.
const maxFields = 40

// tooDeep are the words by which an object schema says more than a list of
// fields can.
var tooDeep = []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "dependentRequired", "propertyNames", "minProperties"}

// fieldsOf reads the fields of an object schema; not ok is one that is odd, or
// that a list of fields does not say all of.
func fieldsOf(schema gjson.Result) (list []field, ok bool) {
	if !schema.IsObject() || kindOf(schema) != objectKind && schema.Get("type").Exists() {
		return nil, false
	}
	for _, word := range tooDeep {
		if schema.Get(word).Exists() {
			return nil, false
		}
	}
	properties := schema.Get("properties")
	if !properties.IsObject() {
		closed := schema.Get("additionalProperties").Type == gjson.False
		return nil, closed && !properties.Exists() && !schema.Get("required").Exists()
	}
	return collect(properties, required(schema))
}

// collect reads properties in the order the schema has them. One that comes
// twice, or is required and not there, is odd; too many are a form nobody fills.
func collect(properties gjson.Result, required map[string]bool) (list []field, ok bool) {
	seen, ok := map[string]bool{}, true
	properties.ForEach(func(key, schema gjson.Result) bool {
		name := key.String()
		ok = !seen[name] && len(list) < maxFields
		seen[name] = true
		list = append(list, newField(name, schema, required[name]))
		return ok
	})
	for name := range required {
		ok = ok && seen[name]
	}
	return list, ok
}

func required(schema gjson.Result) map[string]bool {
	names := map[string]bool{}
	for _, name := range schema.Get("required").Array() {
		names[name.String()] = true
	}
	return names
}

func newField(name string, schema gjson.Result, required bool) field {
	f := field{name: name, kind: anyKind, required: required}
	if !schema.IsObject() { // true, false, or no schema at all
		return f
	}
	f.kind = kindOf(schema)
	f.description = strings.TrimSpace(schema.Get("description").String())
	f.nullable, f.multiline = allowsType(schema, "null"), f.kind == anyKind && allowsType(schema, "string")
	f.choices = choices(schema)
	if preset := schema.Get("default"); preset.Exists() && preset.Type != gjson.Null {
		f.preset = json.RawMessage(preset.Raw)
	}
	if f.kind == objectKind || f.kind == arrayKind || f.kind == anyKind {
		f.shape = schema.Raw
	}
	return f
}

func allowsType(schema gjson.Result, name string) bool {
	return slices.ContainsFunc(schema.Get("type").Array(), func(r gjson.Result) bool { return r.String() == name })
}

// fields gives the fields of an object that a list of them says all of.
func (f field) fields() []field {
	if f.kind != objectKind || f.nullable || f.preset != nil || len(f.choices) > 0 {
		return nil
	}
	list, ok := fieldsOf(gjson.Parse(f.shape))
	if !ok {
		return nil
	}
	return list
}

// kindOf gives the one type of a schema, beside null; of a schema without any,
// that of its choices.
func kindOf(schema gjson.Result) kind {
	var names []string
	for _, name := range schema.Get("type").Array() {
		if name.String() != "null" {
			names = append(names, name.String())
		}
	}
	if len(names) == 0 && allTexts(choices(schema)) {
		return stringKind
	}
	known := []kind{stringKind, numberKind, integerKind, booleanKind, objectKind, arrayKind}
	if len(names) != 1 || !slices.Contains(known, kind(names[0])) {
		return anyKind
	}
	return kind(names[0])
}

func choices(schema gjson.Result) []gjson.Result {
	if only := schema.Get("const"); only.Exists() {
		return []gjson.Result{only}
	}
	if list := schema.Get("enum"); list.IsArray() {
		return list.Array()
	}
	return nil
}

func allTexts(list []gjson.Result) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(r gjson.Result) bool { return r.Type != gjson.String })
}

// list gives the choices as they are typed, one a line.
func (f field) list() string {
	var b strings.Builder
	for i, c := range f.choices {
		if i > 0 {
			b.WriteByte('\n')
		}
		if f.kind == stringKind {
			b.WriteString(strings.ReplaceAll(c.String(), "\n", " "))
		} else {
			b.WriteString(c.Raw)
		}
	}
	return b.String()
}

// value gives what a line says, nil when the field is left out.
func (f field) value(line string) (json.RawMessage, error) {
	if line == "" && f.required && f.preset == nil {
		return nil, errors.New("this field is required")
	}
	if line == "" {
		return f.emptyValue(), nil
	}
	value, err := f.parse(line)
	if err != nil {
		return nil, err
	}
	same := func(c gjson.Result) bool { return canonical([]byte(c.Raw)) == canonical(value) }
	if len(f.choices) > 0 && !slices.ContainsFunc(f.choices, same) {
		return nil, errors.New("this is none of the choices")
	}
	return value, nil
}

// emptyValue is the value of a field that nothing was typed into: a tool need not
// know the default of what it requires.
func (f field) emptyValue() json.RawMessage {
	if f.required {
		return f.preset
	}
	return nil
}

// parse reads a line as the kind of the field wants it.
func (f field) parse(line string) (json.RawMessage, error) {
	if f.kind == stringKind && line == `""` {
		return quoted(""), nil
	}
	if f.kind == stringKind {
		return quoted(line), nil
	}
	line = strings.TrimSpace(line)
	if f.kind == booleanKind {
		line = yesOrNo(line)
	}
	err := strictjson.Check([]byte(line), nil)
	if err != nil && f.multiline && !strings.ContainsAny(line[:1], "[{\"") {
		return quoted(line), nil
	}
	if err != nil && f.shape != "" { // typed as JSON, so the place of the fault helps
		return nil, fmt.Errorf("expected %s: %w", f.kind, err)
	}
	if err != nil || !f.kind.fits(line) && !(f.nullable && line == "null") {
		return nil, fmt.Errorf("expected %s", f.kind)
	}
	return json.RawMessage(line), nil
}

// fits says whether a JSON value is of a kind.
func (k kind) fits(value string) bool {
	v := gjson.Parse(value)
	switch k {
	case numberKind:
		return v.Type == gjson.Number
	case integerKind:
		return v.Type == gjson.Number && !strings.ContainsAny(value, ".eE")
	case booleanKind:
		return v.IsBool()
	case objectKind:
		return v.IsObject()
	case arrayKind:
		return v.IsArray()
	}
	return true
}

func yesOrNo(word string) string {
	switch strings.ToLower(word) {
	case "y", "yes":
		return "true"
	case "n", "no":
		return "false"
	}
	return word
}

func quoted(text string) json.RawMessage {
	doc, _ := json.Marshal(text) // a string always marshals
	return doc
}

// canonical gives equal JSON values the same text.
func canonical(doc []byte) string {
	var v any
	if json.Unmarshal(doc, &v) != nil {
		return string(doc)
	}
	again, _ := json.Marshal(v) // what was unmarshalled marshals
	return string(again)
}
