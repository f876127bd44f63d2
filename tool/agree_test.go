package tool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/tool"
)

var flags = proptest.NewFlags(3000)

// Read and Validate have one verdict, on every schema and every document: what
// fits is valid, and what is valid fits, unless it is one of the few things
// that Read leaves to Validate.
func TestPropertyReadAgreesWithValidate(t *testing.T) {
	var seen tally
	flags.Check(t, proptest.Size{Choices: 200, Least: 20}, seen.play)
	t.Logf("%+v", seen)
	if least := flags.Cases / 20; seen.fit < least || seen.refused < least || seen.left < 1 {
		t.Errorf("the cases are too much alike: %+v", seen)
	}
}

// FuzzReadAgreesWithValidate does the same with schemas and documents that
// the fuzzer makes: by choices, and byte for byte.
func FuzzReadAgreesWithValidate(f *testing.F) {
	f.Add([]byte("any choices will do"), []byte(`{"a":1}`), []byte(`{"a":1}`))
	for _, schema := range []string{
		object(`"a":{"anyOf":[{"type":"string","maxLength":3},{"type":"null"}]},"b":{"$ref":"#"}`),
		`{"type":"object","required":["a"],"additionalProperties":{"enum":["x",1,null]},"properties":{"a":{"type":"integer","exclusiveMaximum":9.5}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":{"uniqueItems":true}},"b":{"format":"email"}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`,
	} {
		f.Add([]byte{7, 3, 250, 16}, []byte(schema), []byte(`{"a":[["x"],1.50],"b":{"a":"\n"}}`))
	}
	f.Fuzz(func(t *testing.T, choices, schema, args []byte) {
		var seen tally
		tape := proptest.Choices(choices)
		if err := seen.play(&tape); err != nil {
			t.Error(err)
		}
		if s, err := tool.Compile(schema); err == nil {
			if err := seen.agree(s, false, args); err != nil {
				t.Errorf("schema %s\n%v", schema, err)
			}
		}
	})
}

// tally counts verdicts.
type tally struct{ fit, refused, left int }

// play makes a schema and documents and says where the verdicts differ.
func (y *tally) play(t *proptest.Choices) error {
	w := author{Choices: t, common: true}
	input, _ := json.Marshal(w.input()) // what is made of maps and numbers marshals
	s, err := tool.Compile(input)
	if err != nil {
		return fmt.Errorf("schema %s: %v", input, err)
	}
	for range 4 {
		args := w.document(input)
		if err := y.agree(s, w.common, args); err != nil {
			return fmt.Errorf("schema %s\n%w", input, err)
		}
	}
	return nil
}

// agree holds the verdicts on args against each other; common says that the
// schema has only keywords of which Read leaves nothing to Validate.
func (y *tally) agree(s *tool.Schema, common bool, args []byte) error {
	fits, err := s.Read(args)
	if (err == nil) != (s.Parse(args) == nil) {
		return fmt.Errorf("args %s\nRead says %v, Parse says otherwise", args, err)
	}
	if err != nil {
		return nil
	}
	invalid := s.Validate(args)
	switch {
	case fits && invalid != nil:
		return fmt.Errorf("args %s\nfit, but the full validator says: %v", args, invalid)
	case fits:
		y.fit++
	case invalid != nil:
		y.refused++
	case common && !doubtful.Match(args):
		return fmt.Errorf("args %s\ndo not fit, but the full validator accepts them", args)
	default:
		y.left++
	}
	return nil
}

// doubtful finds what Read may leave to Validate: escapes, exponents, and
// numbers of many digits.
var doubtful = regexp.MustCompile(`\\|\d[eE]|[\d.]{18}`)

type obj = map[string]any

// author writes schemas and documents by a tape.
type author struct {
	*proptest.Choices
	common bool // no keyword so far is one that Read leaves to Validate
}

var (
	someNames   = []string{"a", "b", "name", "a_longer_name", "a_longer_nama", "ünï"}
	someTexts   = []any{"", "a", "b", "name", "a longer text", "é", "日本語", "x-1"}
	someNumbers = []any{0, 1, -1, 2, 7, 10, 0.5, -0.5, 1.5, 2.25, 1e17, num("9007199254740993"), num("1.0"), num("1e1"), num("12345678901234567890"), num("-0")}
)

func num(text string) json.Number { return json.Number(text) }

// input writes the schema of a tool.
func (w *author) input() obj {
	s := w.objects(2)
	s["type"] = "object"
	s["$defs"] = obj{"one": w.schema(1), "self": obj{"type": proptest.OneOf(w.Choices, []any{"object", "null"}, []any{"object"}),
		"properties": obj{"a": obj{"$ref": "#/$defs/self"}, "b": w.leaf("integer")}}}
	return s
}

// schema writes a schema that goes at most depth deeper.
func (w *author) schema(depth int) any {
	switch w.Pick(16) {
	case 0:
		return proptest.OneOf[any](w.Choices, true, true, false)
	case 1:
		return obj{"$ref": proptest.OneOf(w.Choices, "#/$defs/self", "#/$defs/self", "#")}
	case 2, 3:
		return w.alternatives(depth)
	case 4:
		return obj{"allOf": []any{w.leaf("string")}, "description": "one"}
	case 5:
		return w.fixed()
	case 6:
		return w.uncommon(depth)
	case 7:
		return w.types()
	case 8, 9, 10:
		return w.leaf("object", depth)
	case 11, 12:
		return w.leaf("array", depth)
	}
	return w.leaf(proptest.OneOf(w.Choices, "string", "number", "integer", "boolean", "null"))
}

// leaf writes a schema of one type.
func (w *author) leaf(kind string, depth ...int) obj {
	s := obj{}
	switch kind {
	case "string":
		s = w.texts()
	case "number", "integer":
		s = w.numbers()
	case "array":
		s = w.arrays(depth[0])
	case "object":
		s = w.objects(depth[0])
	}
	s["type"] = kind
	return s
}

// types writes a schema of several types, with keywords for some of them.
func (w *author) types() obj {
	s := w.texts()
	for keyword, value := range w.numbers() {
		s[keyword] = value
	}
	s["type"] = proptest.OneOf(w.Choices, []any{"string", "null"}, []any{"integer", "string"}, []any{"number", "integer", "boolean"}, []any{"array", "string", "number"})
	return s
}

// alternatives writes those that differ in type.
func (w *author) alternatives(depth int) obj {
	list := []any{w.leaf("string"), w.leaf("integer"), w.leaf("null")}[:1+w.Pick(3)]
	if depth > 0 {
		list = append(list, w.leaf(proptest.OneOf(w.Choices, "object", "array"), depth-1))
	}
	return obj{proptest.OneOf(w.Choices, "anyOf", "oneOf"): list}
}

func (w *author) fixed() obj {
	if w.Pick(3) == 0 {
		return obj{"const": w.scalar()}
	}
	return obj{"enum": []any{w.scalar(), w.scalar(), w.scalar()}}
}

// uncommon writes keywords that Read leaves to Validate.
func (w *author) uncommon(depth int) obj {
	w.common = false
	return proptest.OneOf(w.Choices,
		obj{"not": w.leaf("string")},
		obj{"prefixItems": []any{w.leaf("string")}, "items": w.leaf("number")},
		obj{"patternProperties": obj{"^a": w.leaf("integer")}, "properties": obj{"a": w.leaf("number")}},
		obj{"allOf": []any{w.leaf("string"), w.texts()}},
		obj{"anyOf": []any{w.texts(), w.leaf("object", max(0, depth-1))}},
		obj{"oneOf": []any{w.leaf("integer"), w.leaf("number")}},
		obj{"required": []any{"a"}},
		obj{"contains": w.leaf("integer")},
		obj{"type": "array", "uniqueItems": true},
		obj{"propertyNames": w.texts()},
		obj{"if": w.leaf("string"), "then": w.texts(), "else": w.numbers()},
		obj{"$ref": "#/$defs/self", "minProperties": 1},
		obj{"$ref": "#/$defs/one"},
		obj{"type": "string", "properties": obj{"a": w.leaf("null")}},
	)
}

func (w *author) texts() obj {
	s := obj{}
	w.maybe(s, "minLength", 0, 1, 2, 5)
	w.maybe(s, "maxLength", 0, 1, 3, 100)
	w.maybe(s, "pattern", "^[a-z]+$", "a", "^.{2}")
	w.maybe(s, "format", "email")
	return s
}

func (w *author) numbers() obj {
	s := obj{}
	for _, keyword := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		w.maybe(s, keyword, 0, 1, -1, 2.25, 10, num("1.50"), -0.5, num("9007199254740992"), num("1e-2"), 1e17)
	}
	w.maybe(s, "multipleOf", 1, 2, 0.5, 0.25, num("1e-2"))
	return s
}

func (w *author) arrays(depth int) obj {
	s := obj{}
	w.maybe(s, "minItems", 0, 1, 2)
	w.maybe(s, "maxItems", 0, 2, 5)
	if depth > 0 {
		w.maybe(s, "items", w.schema(depth-1))
	}
	return s
}

func (w *author) objects(depth int) obj {
	s, properties := obj{}, obj{}
	var names []any
	for _, name := range someNames[:w.Pick(len(someNames)+1)] {
		names = append(names, name)
		if depth > 0 {
			properties[name] = w.schema(depth - 1)
		} else {
			properties[name] = true
		}
	}
	s["properties"] = properties
	if len(names) > 0 {
		w.maybe(s, "required", names[:1], names)
	}
	w.maybe(s, "minProperties", 0, 1, 2)
	w.maybe(s, "maxProperties", 1, 3, 9)
	w.maybe(s, "additionalProperties", false, true, w.leaf("integer"))
	return s
}

// maybe sets a keyword to one of a few values, or not.
func (w *author) maybe(s obj, keyword string, values ...any) {
	if w.Pick(3) == 0 {
		s[keyword] = proptest.OneOf(w.Choices, values...)
	}
}

func (w *author) scalar() any {
	switch w.Pick(4) {
	case 0:
		return proptest.OneOf[any](w.Choices, nil, true, false)
	case 1:
		return proptest.OneOf(w.Choices, someTexts...)
	}
	return proptest.OneOf(w.Choices, someNumbers...)
}

// document writes arguments that a schema might allow.
func (w *author) document(input []byte) []byte {
	var root obj
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	_ = d.Decode(&root) // it was encoded
	args, _ := json.Marshal(w.valueOf(root, root, 5))
	return w.respell(args)
}

// respell writes some things of a document otherwise.
func (w *author) respell(args []byte) []byte {
	text := string(args)
	switch w.Pick(8) {
	case 0:
		text = strings.Replace(text, `"a`, `"\u0061`, 1)
	case 1:
		text = strings.ReplaceAll(text, ":", " :\n\t")
	case 2:
		text = strings.Replace(text, "1", "1.0", 1)
	case 3:
		text = strings.Replace(text, "é", `\u00e9`, 1)
	}
	return []byte(text)
}

// valueOf writes a value that s most likely allows.
func (w *author) valueOf(s any, root obj, depth int) any {
	rules, _ := s.(obj)
	if ref, ok := rules["$ref"].(string); ok && depth > 0 {
		return w.valueOf(at(root, ref), root, depth-1)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum"} {
		if list, ok := rules[keyword].([]any); ok && len(list) > 0 {
			return w.choose(keyword == "enum", list, root, depth)
		}
	}
	if value, ok := rules["const"]; ok {
		return value
	}
	kind := rules["type"]
	if list, ok := kind.([]any); ok {
		kind = proptest.OneOf(w.Choices, list...)
	}
	if w.Pick(24) == 23 {
		kind = nil // another type
	}
	return w.valueOfType(kind, rules, root, depth)
}

func (w *author) choose(ready bool, list []any, root obj, depth int) any {
	if choice := proptest.OneOf(w.Choices, list...); !ready {
		return w.valueOf(choice, root, depth)
	} else if w.Pick(4) < 3 {
		return choice
	}
	return w.scalar()
}

func (w *author) valueOfType(kind any, rules, root obj, depth int) any {
	switch kind {
	case "string":
		return proptest.OneOf(w.Choices, someTexts...)
	case "number", "integer":
		return proptest.OneOf(w.Choices, someNumbers...)
	case "boolean":
		return w.Pick(2) == 0
	case "null":
		return nil
	case "array":
		return w.valuesOf(rules["items"], root, depth)
	case "object":
		return w.objectOf(rules, root, depth)
	}
	return w.scalar()
}

func (w *author) valuesOf(items any, root obj, depth int) any {
	list := make([]any, w.Pick(4))
	for i := range list {
		if depth > 0 {
			list[i] = w.valueOf(items, root, depth-1)
		}
	}
	return list
}

func (w *author) objectOf(rules, root obj, depth int) any {
	object := obj{}
	properties, _ := rules["properties"].(obj)
	for _, name := range someNames {
		value, known := properties[name]
		if known && depth > 0 && w.Pick(8) > 0 {
			object[name] = w.valueOf(value, root, depth-1)
		}
	}
	if w.Pick(6) == 5 {
		object[proptest.OneOf(w.Choices, "other", "A", "x")] = w.scalar()
	}
	return object
}

// at gives what a reference within root points to.
func at(root obj, ref string) any {
	var v any = root
	for _, name := range strings.Split(ref, "/")[1:] {
		v = v.(obj)[name]
	}
	return v
}
