package bounds_test

import (
	"encoding/json"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/toolgroups/bounds"
)

func TestSatisfiable(t *testing.T) {
	for _, c := range []struct {
		rules []string
		want  bool
	}{
		{nil, true},
		{[]string{`{"/a": {"equal": 1}}`}, true},
		{[]string{`{"/a": {"equal": 1}}`, `{"/a": {"equal": 2}}`}, false},
		{[]string{`{"/a": {"equal": 1}}`, `{"/a": {"equal": 1.0}}`}, true},
		{[]string{`{"/a": {"equal": 1}}`, `{"/b": {"equal": 2}}`}, true},
		{[]string{`{"/a": {"equal": 1, "missing": "allow"}}`, `{"/a": {"equal": 2, "missing": "allow"}}`}, true},
		{[]string{`{"/a": {"equal": 1, "missing": "allow"}}`, `{"/a": {"equal": 2}}`}, false},
		{[]string{`{"/a": {"any": [{"equal": "x"}, {"equal": "y"}]}}`, `{"/a": {"any": [{"equal": "y"}, {"equal": "z"}]}}`}, true},
		{[]string{`{"/a": {"any": [{"equal": "x"}, {"equal": "y"}]}}`, `{"/a": {"glob": "z*"}}`}, false},
		{[]string{`{"/a": {"equal": "x"}}`, `{"/a": {"input": "anything"}}`}, true},
		{[]string{`{"/a": {"equal": "x"}}`, `{"/a": {"any": [{"input": "anything"}, {"equal": "y"}]}}`}, true},
		{[]string{`{"/a": {"max": 1}}`, `{"/a": {"min": 1}}`}, true},
		{[]string{`{"/a": {"max": 1}}`, `{"/a": {"min": 1.00000000000000000001}}`}, false},
		{[]string{`{"/a": {"glob": "x*"}}`, `{"/a": {"glob": "y*"}}`}, true},
		{[]string{`{}`}, false},
	} {
		var checks []*bounds.Check
		for _, text := range c.rules {
			var r bounds.Rule
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatal(err)
			}
			checks = append(checks, r.ForSchema(nil))
		}
		if got := bounds.Satisfiable(checks); got != c.want {
			t.Errorf("%v: got %v", c.rules, got)
		}
	}
}

func TestWiderPath(t *testing.T) {
	for _, c := range []struct{ rule, other, want string }{
		{`{"/a": {"max": 2000}}`, `{"/a": {"max": 1000}}`, "/a"},
		{`{"/a": {"max": 1000.0000000000001}}`, `{"/a": {"max": 1e3}}`, "/a"},
		{`{"/a": {"max": 1000}}`, `{"/a": {"max": 1e3}}`, ""},
		{`{"/a": {"max": 10}}`, `{"/a": {"min": 0, "max": 1000}}`, "/a"},
		{`{"/a": {"min": 1, "max": 10}}`, `{"/a": {"min": 0}}`, ""},
		{`{"/a": {"min": -1}}`, `{"/a": {"min": 0}}`, "/a"},
		{`{"/a": {"min": 2, "max": 1}}`, `{"/a": {"min": 3}}`, ""},
		{`{"/a": {"equal": "x"}}`, `{"/a": {"glob": "y*"}}`, "/a"},
		{`{"/a": {"any": [{"equal": "y1"}, {"equal": "x"}]}}`, `{"/a": {"glob": "y*"}}`, "/a"},
		{`{"/a": {"any": [{"equal": "y1"}, {"equal": "x"}], "glob": "y*"}}`, `{"/a": {"glob": "y*"}}`, ""},
		{`{"/a": {"equal": "x"}}`, `{"/a": {"input": "anything"}}`, ""},
		{`{"/a": {"glob": "*"}}`, `{"/a": {"equal": "x"}}`, ""},
		{`{"/b": {"max": 2000}}`, `{"/a": {"max": 1000}}`, ""},
		{`{"/a": {"max": 1, "missing": "allow"}}`, `{"/a": {"max": 1}}`, "/a"},
	} {
		if got := rule(t, c.rule).WiderPath(rule(t, c.other)); got != c.want {
			t.Errorf("%s beside %s: got %q, want %q", c.rule, c.other, got, c.want)
		}
	}
}

func TestNarrowSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number","maximum":5},"l":{"type":"array","items":{}},"r":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`)
	for _, c := range []struct{ rule, path, want string }{
		{`{"/a": {"equal": "x"}}`, "properties.a", `{"type":"string","const":"x"}`},
		{`{"/a": {"any": [{"equal": "x"}, {"equal": "y"}, {"equal": "x"}]}}`, "properties.a", `{"type":"string","enum":["x","y"]}`},
		{`{"/a": {"any": [{"equal": "x"}, {"equal": "y"}], "glob": "y*"}}`, "properties.a", `{"type":"string","const":"y"}`},
		{`{"/a": {"any": [{"equal": "x"}, {"glob": "y*"}]}}`, "properties.a", `{"type":"string"}`},
		{`{"/n": {"max": 3, "min": -12.50}}`, "properties.n", `{"type":"number","maximum":5,"minimum":-12.5}`},
		{`{"/a": {"max": 1000}}`, "properties.a", `{"type":"string","maximum":1000}`},
		{`{"/l/*": {"equal": true}}`, "properties.l.items", `{"const":true}`},
		{`{"/r": {"equal": "x"}}`, "properties.r", `{"$ref":"#/$defs/x","const":"x"}`},
		{`{"/absent": {"equal": "x"}}`, "properties.absent", ``},
	} {
		got := bounds.NarrowSchema(schema, []*bounds.Check{rule(t, c.rule).ForSchema(schema)})
		if part := partOf(t, got, c.path); part != c.want {
			t.Errorf("%s: got %s, want %s", c.rule, part, c.want)
		}
	}
}

func TestUnknownPath(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"},"o":{"type":"object","properties":{"x":{}}},"c":{"type":"object","additionalProperties":false},"l":{"type":"array","items":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"type":"object","additionalProperties":false,"properties":{"y":{}}}}}`)
	for path, known := range map[string]bool{"/a": true, "/b": false, "/o/x": true, "/o/z": true, "/c/x": false, "/l/*/y": true, "/l/*/z": false, "/l/0/y": true} {
		r := rule(t, `{"`+path+`": {"equal": 1}}`)
		if got := r.UnknownPath(schema); (got == "") != known {
			t.Errorf("%s: got %q", path, got)
		}
		if got := r.UnknownPath(json.RawMessage(`{"type":"object"}`)); got != "" {
			t.Errorf("%s of an open schema: got %q", path, got)
		}
	}
}

// partOf returns the JSON at a path of gjson.
func partOf(t *testing.T, doc json.RawMessage, path string) string {
	t.Helper()
	if !json.Valid(doc) {
		t.Fatalf("not JSON: %s", doc)
	}
	return gjson.GetBytes(doc, path).Raw
}
