package argschema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/test/proptest"
)

var flags = proptest.NewFlags(3000)

// Property: Validate accepts what Read reports as valid, and Read reports as valid what
// Validate accepts, except for the rare values that it leaves to Validate.
func TestSchema_ReadAgreesWithValidate(t *testing.T) {
	var seen verdicts
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 200, MinChoices: 20}, seen.play)
	t.Logf("%+v", seen)
	if least := flags.Cases / 20; seen.fit < least || seen.refused < least || seen.left < 1 {
		t.Errorf("got too few cases of a kind: %+v", seen)
	}
}

// FuzzReadAgreesWithValidate checks the same with choices, schemas and documents of the fuzzer.
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
		var seen verdicts
		tape := proptest.Choices(choices)
		if err := seen.play(&tape); err != nil {
			t.Error(err)
		}
		if s, err := argschema.Compile(schema); err == nil {
			if err := seen.agree(s, false, args); err != nil {
				t.Errorf("schema %s\n%v", schema, err)
			}
		}
	})
}

// verdicts counts documents that are valid for Read, invalid, and left to Validate.
type verdicts struct{ fit, refused, left int }

// play checks documents of a random schema. It returns the first disagreement.
func (v *verdicts) play(t *proptest.Choices) error {
	g := generator{Choices: t, common: true}
	input, _ := json.Marshal(g.input()) // maps, strings and numbers always marshal
	s, err := argschema.Compile(input)
	if err != nil {
		return fmt.Errorf("schema %s: %v", input, err)
	}
	for range 4 {
		args := g.document(input)
		if err := v.agree(s, g.common, args); err != nil {
			return fmt.Errorf("schema %s\n%w", input, err)
		}
	}
	return nil
}

// agree compares the verdicts on args. common is true if the schema has no keyword that Read
// leaves to Validate.
func (v *verdicts) agree(s *argschema.Schema, common bool, args []byte) error {
	fits, err := s.Read(args)
	if (err == nil) != (s.Parse(args) == nil) {
		return fmt.Errorf("args %s\ngot %v from Read and another result from Parse", args, err)
	}
	if err != nil {
		return nil
	}
	invalid := s.Validate(args)
	switch {
	case fits && invalid != nil:
		return fmt.Errorf("args %s\nRead accepts, but Validate returns: %v", args, invalid)
	case fits:
		v.fit++
	case invalid != nil:
		v.refused++
	case common && !undecided.Match(args):
		return fmt.Errorf("args %s\nRead does not accept, but Validate does", args)
	default:
		v.left++
	}
	return nil
}

// undecided matches what Read may leave to Validate: escapes, exponents and numbers of many
// digits.
var undecided = regexp.MustCompile(`\\|\d[eE]|[\d.]{18}`)

type obj = map[string]any

// generator makes random schemas and documents.
type generator struct {
	*proptest.Choices
	common bool // no keyword so far is left to Validate
}

var (
	someNames   = []string{"a", "b", "name", "a_longer_name", "a_longer_nama", "ünï"}
	someTexts   = []any{"", "a", "b", "name", "a longer text", "é", "日本語", "x-1"}
	someNumbers = []any{0, 1, -1, 2, 7, 10, 0.5, -0.5, 1.5, 2.25, 1e17, num("9007199254740993"), num("1.0"), num("1e1"), num("12345678901234567890"), num("-0")}
)

func num(text string) json.Number { return json.Number(text) }

// input returns the schema of a tool.
func (g *generator) input() obj {
	s := g.objects(2)
	s["type"] = "object"
	s["$defs"] = obj{"one": g.schema(1), "self": obj{"type": proptest.PickFrom(g.Choices, []any{"object", "null"}, []any{"object"}),
		"properties": obj{"a": obj{"$ref": "#/$defs/self"}, "b": g.leaf("integer")}}}
	return s
}

// schema returns a schema with at most depth further levels.
func (g *generator) schema(depth int) any {
	switch g.Pick(16) {
	case 0:
		return proptest.PickFrom[any](g.Choices, true, true, false)
	case 1:
		return obj{"$ref": proptest.PickFrom(g.Choices, "#/$defs/self", "#/$defs/self", "#")}
	case 2, 3:
		return g.alternatives(depth)
	case 4:
		return obj{"allOf": []any{g.leaf("string")}, "description": "one"}
	case 5:
		return g.fixed()
	case 6:
		return g.uncommon(depth)
	case 7:
		return g.types()
	case 8, 9, 10:
		return g.leaf("object", depth)
	case 11, 12:
		return g.leaf("array", depth)
	}
	return g.leaf(proptest.PickFrom(g.Choices, "string", "number", "integer", "boolean", "null"))
}

// leaf returns a schema of one type.
func (g *generator) leaf(kind string, depth ...int) obj {
	s := obj{}
	switch kind {
	case "string":
		s = g.texts()
	case "number", "integer":
		s = g.numbers()
	case "array":
		s = g.arrays(depth[0])
	case "object":
		s = g.objects(depth[0])
	}
	s["type"] = kind
	return s
}

// types returns a schema of several types, with keywords for some of them.
func (g *generator) types() obj {
	s := g.texts()
	for keyword, value := range g.numbers() {
		s[keyword] = value
	}
	s["type"] = proptest.PickFrom(g.Choices, []any{"string", "null"}, []any{"integer", "string"}, []any{"number", "integer", "boolean"}, []any{"array", "string", "number"})
	return s
}

// alternatives returns alternatives of different types.
func (g *generator) alternatives(depth int) obj {
	list := []any{g.leaf("string"), g.leaf("integer"), g.leaf("null")}[:1+g.Pick(3)]
	if depth > 0 {
		list = append(list, g.leaf(proptest.PickFrom(g.Choices, "object", "array"), depth-1))
	}
	return obj{proptest.PickFrom(g.Choices, "anyOf", "oneOf"): list}
}

func (g *generator) fixed() obj {
	if g.Pick(3) == 0 {
		return obj{"const": g.scalar()}
	}
	return obj{"enum": []any{g.scalar(), g.scalar(), g.scalar()}}
}

// uncommon returns a schema with keywords that Read leaves to Validate.
func (g *generator) uncommon(depth int) obj {
	g.common = false
	return proptest.PickFrom(g.Choices,
		obj{"not": g.leaf("string")},
		obj{"prefixItems": []any{g.leaf("string")}, "items": g.leaf("number")},
		obj{"patternProperties": obj{"^a": g.leaf("integer")}, "properties": obj{"a": g.leaf("number")}},
		obj{"allOf": []any{g.leaf("string"), g.texts()}},
		obj{"anyOf": []any{g.texts(), g.leaf("object", max(0, depth-1))}},
		obj{"oneOf": []any{g.leaf("integer"), g.leaf("number")}},
		obj{"required": []any{"a"}},
		obj{"contains": g.leaf("integer")},
		obj{"type": "array", "uniqueItems": true},
		obj{"propertyNames": g.texts()},
		obj{"if": g.leaf("string"), "then": g.texts(), "else": g.numbers()},
		obj{"$ref": "#/$defs/self", "minProperties": 1},
		obj{"$ref": "#/$defs/one"},
		obj{"type": "string", "properties": obj{"a": g.leaf("null")}},
	)
}

func (g *generator) texts() obj {
	s := obj{}
	g.maybe(s, "minLength", 0, 1, 2, 5)
	g.maybe(s, "maxLength", 0, 1, 3, 100)
	g.maybe(s, "pattern", "^[a-z]+$", "a", "^.{2}")
	g.maybe(s, "format", "email")
	return s
}

func (g *generator) numbers() obj {
	s := obj{}
	for _, keyword := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		g.maybe(s, keyword, 0, 1, -1, 2.25, 10, num("1.50"), -0.5, num("9007199254740992"), num("1e-2"), 1e17)
	}
	g.maybe(s, "multipleOf", 1, 2, 0.5, 0.25, num("1e-2"))
	return s
}

func (g *generator) arrays(depth int) obj {
	s := obj{}
	g.maybe(s, "minItems", 0, 1, 2)
	g.maybe(s, "maxItems", 0, 2, 5)
	if depth > 0 {
		g.maybe(s, "items", g.schema(depth-1))
	}
	return s
}

func (g *generator) objects(depth int) obj {
	s, properties := obj{}, obj{}
	var names []any
	for _, name := range someNames[:g.Pick(len(someNames)+1)] {
		names = append(names, name)
		if depth > 0 {
			properties[name] = g.schema(depth - 1)
		} else {
			properties[name] = true
		}
	}
	s["properties"] = properties
	if len(names) > 0 {
		g.maybe(s, "required", names[:1], names)
	}
	g.maybe(s, "minProperties", 0, 1, 2)
	g.maybe(s, "maxProperties", 1, 3, 9)
	g.maybe(s, "additionalProperties", false, true, g.leaf("integer"))
	return s
}

// maybe sets a keyword to one of the values, or does not set it.
func (g *generator) maybe(s obj, keyword string, values ...any) {
	if g.Pick(3) == 0 {
		s[keyword] = proptest.PickFrom(g.Choices, values...)
	}
}

func (g *generator) scalar() any {
	switch g.Pick(4) {
	case 0:
		return proptest.PickFrom[any](g.Choices, nil, true, false)
	case 1:
		return proptest.PickFrom(g.Choices, someTexts...)
	}
	return proptest.PickFrom(g.Choices, someNumbers...)
}

// document returns arguments that are likely to satisfy a schema.
func (g *generator) document(input []byte) []byte {
	var root obj
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	_ = d.Decode(&root) // it was encoded
	args, _ := json.Marshal(g.valueOf(root, root, 5))
	return g.respell(args)
}

// respell may write parts of a document in another way.
func (g *generator) respell(args []byte) []byte {
	text := string(args)
	switch g.Pick(8) {
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

// valueOf returns a value that is likely to satisfy s.
func (g *generator) valueOf(s any, root obj, depth int) any {
	rules, _ := s.(obj)
	if ref, ok := rules["$ref"].(string); ok && depth > 0 {
		return g.valueOf(at(root, ref), root, depth-1)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum"} {
		if list, ok := rules[keyword].([]any); ok && len(list) > 0 {
			return g.choose(keyword == "enum", list, root, depth)
		}
	}
	if value, ok := rules["const"]; ok {
		return value
	}
	kind := rules["type"]
	if list, ok := kind.([]any); ok {
		kind = proptest.PickFrom(g.Choices, list...)
	}
	if g.Pick(24) == 23 {
		kind = nil // another type
	}
	return g.valueOfType(kind, rules, root, depth)
}

func (g *generator) choose(ready bool, list []any, root obj, depth int) any {
	if choice := proptest.PickFrom(g.Choices, list...); !ready {
		return g.valueOf(choice, root, depth)
	} else if g.Pick(4) < 3 {
		return choice
	}
	return g.scalar()
}

func (g *generator) valueOfType(kind any, rules, root obj, depth int) any {
	switch kind {
	case "string":
		return proptest.PickFrom(g.Choices, someTexts...)
	case "number", "integer":
		return proptest.PickFrom(g.Choices, someNumbers...)
	case "boolean":
		return g.Pick(2) == 0
	case "null":
		return nil
	case "array":
		return g.valuesOf(rules["items"], root, depth)
	case "object":
		return g.objectOf(rules, root, depth)
	}
	return g.scalar()
}

func (g *generator) valuesOf(items any, root obj, depth int) any {
	list := make([]any, g.Pick(4))
	for i := range list {
		if depth > 0 {
			list[i] = g.valueOf(items, root, depth-1)
		}
	}
	return list
}

func (g *generator) objectOf(rules, root obj, depth int) any {
	object := obj{}
	properties, _ := rules["properties"].(obj)
	for _, name := range someNames {
		value, known := properties[name]
		if known && depth > 0 && g.Pick(8) > 0 {
			object[name] = g.valueOf(value, root, depth-1)
		}
	}
	if g.Pick(6) == 5 {
		object[proptest.PickFrom(g.Choices, "other", "A", "x")] = g.scalar()
	}
	return object
}

// at returns the value that a reference within root points to.
func at(root obj, ref string) any {
	var v any = root
	for _, name := range strings.Split(ref, "/")[1:] {
		v = v.(obj)[name]
	}
	return v
}
