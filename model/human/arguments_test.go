package human_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/model"
)

// toolRequest returns a request with one tool that has the given schema.
func toolRequest(schema string) model.Request {
	r := requestOf("analyst")
	r.Tools = []string{"tool"}
	r.ToolJSON = []byte(`[{"type":"function","function":{"name":"tool","description":"d","parameters":` + schema + `}}]`)
	return r
}

// wantCall plays a dialogue and checks the arguments of its one call, and that the
// screen has text.
func wantCall(t *testing.T, r model.Request, typed, args, text string) {
	t.Helper()
	screen, a, err := play(t, r, typed)
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	if len(a.Calls) != 1 || a.Calls[0].Name != "tool" || string(a.Calls[0].Args) != args {
		t.Errorf("answer %+v, want one call with %s", a, args)
	}
	if !strings.Contains(screen, text) {
		t.Errorf("%q is not on the screen:\n%s", text, screen)
	}
}

func TestArguments_AreJSONOfOneOrMoreLines(t *testing.T) {
	const schema = `{"type":"object","properties":{"f":{"type":"integer"},"o":{}},"additionalProperties":false}`
	tests := []struct{ name, typed, args, text string }{
		{"one line", `{"f": 1}`, `{"f": 1}`, "f (optional) {\"type\":\"integer\"}"},
		{"several lines", "{\n\"f\":\n\n1\n}", "{\n\"f\":\n\n1\n}", "... 1\n"},
		{"empty line", "", "{}", "arguments as JSON"},
		{"a number keeps its digits", `{"f":12345678901234567890}`, `{"f":12345678901234567890}`, ""},
		{"syntax error", "{f: 1}\n{}", "{}", "invalid character 'f'"},
		{"not an object", "[1]\n5\n\"x\"\n{}", "{}", "not an object"},
		{"duplicate key", "{\"f\":1,\"f\":2}\n{}", "{}", `duplicate key "f"`},
		{"number out of bounds", "{\"f\":1e999999}\n{}", "{}", "these arguments cannot be used"},
		{"line break in a string", "{\"o\":\"a\n{}", "{}", `invalid character '\n' in string literal`},
		{"text after the object", "{} and more\n{}", "{}", "unexpected text after the JSON object: and more"},
		{"wrong type", "{\"f\":\"1\"}\n{}", "{}", "f: "},
		{"unknown field", "{\"g\":1}\n{}", "{}", "g"},
		{"too long", "{\n" + strings.Repeat(strings.Repeat(" ", 1000)+"\n", 1100) + "}\n{}", "{}", "longer than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantCall(t, toolRequest(schema), "1\n"+tt.typed+"\n", tt.args, tt.text)
		})
	}
}

// oddSchemas are not lists of fields, or do not compile.
var oddSchemas = []string{
	`{}`, `true`, `false`, `null`, `7`, `"object"`, `[]`, `{"type":"string"}`, `{"type":["array","null"]}`, `{"type":"object"}`,
	`{"type":"object","properties":[]}`, `{"type":"object","properties":null}`, `{"type":"object","properties":"a"}`,
	`{"type":"object","properties":{"a":7}}`, `{"type":"object","properties":{"a":{},"a":{}}}`, `{"type":"object","required":"a"}`,
	`{"properties":{"a":{}},"oneOf":[{}]}`, `{"properties":{"a":{}},"$ref":"#/x"}`, `{"properties":{"a":{}},"minProperties":1}`,
	strings.Repeat(`{"properties":{"a":`, 200) + "{}" + strings.Repeat("}}", 200) + "}", // not JSON: describes nothing
}

func TestArguments_OddSchemaStillNeedsAnObject(t *testing.T) {
	for _, schema := range oddSchemas {
		wantCall(t, toolRequest(schema), "1\n[]\n{\"a\":1}\n", `{"a":1}`, "not an object")
		wantCall(t, toolRequest(schema), "tool\n\n", `{}`, "arguments as JSON")
	}
}

func TestToolChoices_BrokenToolListKeepsNames(t *testing.T) {
	for _, list := range []string{``, `{`, `null`, `7`, `{}`, `[null,7,"tool",[],{}]`, `[{"function":7}]`, `[{"function":{"name":["tool"]}}]`, strings.Repeat("[", 100_000)} {
		r := toolRequest(`{}`)
		r.ToolJSON = []byte(list)
		wantCall(t, r, "tool\n{\"a\":1}\n", `{"a":1}`, "  1 tool")
	}
}
