package human_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/model"
)

// oneTool is a request with a tool of this schema.
func oneTool(schema string) model.Request {
	r := requestOf("analyst")
	r.Tools = []string{"tool"}
	r.ToolJSON = []byte(`[{"type":"function","function":{"name":"tool","description":"d","parameters":` + schema + `}}]`)
	return r
}

// A field takes what its schema describes and refuses the rest in words.
func TestFields(t *testing.T) {
	tests := []struct {
		name, schema, typed string
		value               string // of the argument f, "" when it is left out
		said                string
	}{
		{"a string is as it is typed", `{"type":"string"}`, ` "a" \n `, `" \"a\" \\n "`, "f (string, optional)"},
		{"a number in a string field is a string", `{"type":"string"}`, `5`, `"5"`, ""},
		{"two quotes are the empty string", `{"type":"string"}`, `""`, `""`, ""},
		{"nothing leaves an optional field out", `{"type":"string"}`, ``, ``, ""},
		{"nothing leaves a default to the tool", `{"type":"integer","default":7}`, ``, ``, "  default 7"},
		{"a number", `{"type":"number"}`, `-1.5e3`, `-1.5e3`, ""},
		{"a number keeps its digits", `{"type":"integer"}`, `12345678901234567890`, `12345678901234567890`, ""},
		{"what is no number is asked again", `{"type":"number"}`, "five\n05\n\"5\"\n5", `5`, "f: expected number"},
		{"a number without bound is asked again", `{"type":"number"}`, "1e999999\n5", `5`, "f: expected number"},
		{"an integer has no fraction", `{"type":"integer"}`, "5.0\n5e1\n5", `5`, "f: expected integer"},
		{"a boolean", `{"type":"boolean"}`, ` true `, `true`, ""},
		{"a boolean in words", `{"type":"boolean"}`, `No`, `false`, ""},
		{"a boolean in a letter", `{"type":"boolean"}`, `y`, `true`, ""},
		{"what is no boolean is asked again", `{"type":"boolean"}`, "1\n\"true\"\ntrue", `true`, "f: expected boolean"},
		{"an object on one line", `{"type":"object"}`, `{"a": [1]}`, `{"a": [1]}`, `  |   "type": "object"`},
		{"an object is no list", `{"type":"object"}`, "[1]\n{}", `{}`, "f: expected object"},
		{"a list", `{"type":"array","items":{"type":"string"}}`, `["a"]`, `["a"]`, `  |     "type": "string"`},
		{"a list is no object", `{"type":"array"}`, "{}\n[]", `[]`, "f: expected array"},
		{"JSON is read strictly", `{"type":"object"}`, "{\"a\":1,\"a\":2}\n{}", `{}`, `f: expected object: duplicate key "a" at byte`},
		{"a choice", `{"type":"string","enum":["red","green"]}`, "blue\ngreen", `"green"`, "f: this is none of the choices"},
		{"choices without a type are texts", `{"enum":["red","green"]}`, `red`, `"red"`, "  | green"},
		{"choices of numbers", `{"type":"integer","enum":[1,2]}`, "3\n2", `2`, "f: this is none of the choices"},
		{"choices of all kinds are JSON", `{"enum":["a",1,null]}`, "a\n\"a\"", `"a"`, "f: expected any JSON"},
		{"a choice equals whatever its spelling", `{"enum":[{"a":1,"b":2},1]}`, `{"b":2, "a":1.0}`, `{"b":2, "a":1.0}`, ""},
		{"a constant is a choice", `{"const":"on"}`, "off\non", `"on"`, "  | on"},
		{"null where the schema allows it", `{"type":["integer","null"]}`, `null`, `null`, "f (integer, optional)"},
		{"no null elsewhere", `{"type":"integer"}`, "null\n1", `1`, "f: expected integer"},
		{"several types are JSON", `{"type":["integer","array"]}`, "x\n[1]", `[1]`, "f (any JSON, optional)"},
		{"several types with string are JSON or a text", `{"type":["array","string"]}`, "a, b", `"a, b"`, "f (any JSON, optional)"},
		{"a list that is broken is no text", `{"type":["array","string"]}`, "[a\n{a\n\"a\n[\"a\"]", `["a"]`, "f: expected any JSON"},
		{"no type is JSON", `{"description":"whatever"}`, `[1]`, `[1]`, "  | whatever"},
		{"a reference is JSON", `{"$ref":"#/$defs/x"}`, `1`, `1`, "f (any JSON, optional)"},
		{"true is JSON", `true`, `1`, `1`, "f (any JSON, optional)"},
		{"a type of no known name is JSON", `{"type":"date"}`, `1`, `1`, "f (any JSON, optional)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := oneTool(`{"type":"object","properties":{"f":` + tt.schema + `}}`)
			want := "{}"
			if tt.value != "" {
				want = `{"f":` + tt.value + `}`
			}
			wantCall(t, r, "1\n"+tt.typed+"\n\n", want, tt.said)
		})
	}
}

// wantCall plays a dialogue and compares the arguments of its one call, and
// that something was said.
func wantCall(t *testing.T, r model.Request, typed, args, said string) {
	t.Helper()
	screen, a, err := play(t, r, typed)
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	if len(a.Calls) != 1 || a.Calls[0].Name != "tool" || string(a.Calls[0].Args) != args {
		t.Errorf("answer %+v, want one call with %s", a, args)
	}
	if !strings.Contains(screen, said) {
		t.Errorf("%q was not said:\n%s", said, screen)
	}
}

func TestRequiredFields(t *testing.T) {
	tests := []struct{ name, schema, typed, args, said string }{
		{"nothing is not enough", `{"type":"string"}`, "\nx\n\n", `{"f":"x"}`, "f: this field is required"},
		{"nothing is the default", `{"type":"string","default":"d"}`, "\n\n", `{"f":"d"}`, `  default "d"`},
		{"a default of null is none", `{"type":"string","default":null}`, "\nx\n\n", `{"f":"x"}`, "f: this field is required"},
		{"the whole object instead", `{"type":"string"}`, "/json\n{\"f\":\"/json\"}\n\n", `{"f":"/json"}`, "schema of tool"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantCall(t, oneTool(`{"type":"object","properties":{"f":`+tt.schema+`},"required":["f"]}`), "1\n"+tt.typed, tt.args, tt.said)
		})
	}
}

// What a list of fields does not say all of.
var oddSchemas = []string{
	`{}`, `true`, `false`, `null`, `7`, `"object"`, `[]`, `{"type":"string"}`, `{"type":["array","null"]}`, `{"type":"object"}`,
	`{"type":"object","properties":[]}`, `{"type":"object","properties":null}`, `{"type":"object","properties":"a"}`,
	`{"type":"object","properties":{"a":{}},"required":["b"]}`, `{"type":"object","additionalProperties":false,"required":["b"]}`,
	`{"type":"object","properties":{"a":{},"a":{}}}`, `{"properties":{"a":{}},"oneOf":[{}]}`, `{"properties":{"a":{}},"$ref":"#/x"}`, `{"properties":{"a":{}},"minProperties":1}`,
	`{"type":"object","properties":{` + manyFields + `}}`,
	strings.Repeat(`{"properties":{"a":`, 200) + "{}" + strings.Repeat("}}", 200) + "}", // not JSON: the list describes nothing
}

var manyFields = strings.TrimSuffix(strings.Repeat(`"a":{},`, 1)+fieldNames(60), ",")

func fieldNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"f` + strings.Repeat("x", i) + `":{},`)
	}
	return b.String()
}

func TestOddSchemasAreAskedAsOneObject(t *testing.T) {
	for _, schema := range oddSchemas {
		wantCall(t, oneTool(schema), "1\n[]\n{\"a\":1}\n\n", `{"a":1}`, "arguments: ")
		wantCall(t, oneTool(schema), "tool\n\n\n", `{}`, "arguments as a JSON object on one line")
	}
}

func TestASchemaWithoutFieldsAsksForNone(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{}}`, `{"type":"object","additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`,
	} {
		wantCall(t, oneTool(schema), "1\n\n", `{}`, "call tool")
	}
}

// A list of tools that is broken leaves their names.
func TestOddListsOfTools(t *testing.T) {
	for _, list := range []string{``, `{`, `null`, `7`, `{}`, `[null,7,"tool",[],{}]`, `[{"function":7}]`, `[{"function":{"name":["tool"]}}]`, strings.Repeat("[", 100_000)} {
		r := oneTool(`{}`)
		r.ToolJSON = []byte(list)
		wantCall(t, r, "tool\n{\"a\":1}\n\n", `{"a":1}`, "  1 tool")
	}
}
