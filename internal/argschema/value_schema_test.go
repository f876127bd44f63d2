package argschema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
)

func TestValueSchema_AcceptsAnyKindOfValue(t *testing.T) {
	for _, c := range []struct{ schema, value, problem string }{
		{`{"type":"integer"}`, `7`, ""},
		{`{"type":"integer"}`, `"7"`, "want integer, got string"},
		{`{"enum":["yes","no"]}`, `"yes"`, ""},
		{`{"enum":["yes","no"]}`, `"maybe"`, `want one of "yes", "no"`},
		{`{"type":"array","items":{"type":"integer"},"minItems":1}`, `[1,2]`, ""},
		{`{"type":"array","items":{"type":"integer"},"minItems":1}`, `[]`, "want at least 1 elements, got 0"},
		{`{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}`, `[{"n":"x"}]`, "[0].n: want integer, got string"},
		{`{"$defs":{"n":{"type":"integer"}},"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}`, `null`, ""},
		{`{}`, `[{"a":1,"a":2}]`, `malformed or ambiguous JSON: duplicate key "a" at byte 8`},
		{`{"properties":{"count":{}}}`, `{"Count":1}`, "Count"},
		{`{}`, `{"a":1} 2`, "malformed"},
		{`{"not":{}}`, `1`, "forbids"},
		{`{"type":"array"}`, `[` + strings.Repeat("0,", 1<<18) + `0]`, "too many to check"},
	} {
		schema, err := argschema.CompileValue(json.RawMessage(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		err = schema.Validate(json.RawMessage(c.value))
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(errcode.Message(err), c.problem) {
			t.Errorf("%s, %.40s: got %v, want %q", c.schema, c.value, err, c.problem)
		}
	}
}

func TestCompileValue_Rejects(t *testing.T) {
	for schema, problem := range map[string]string{
		``: "", `true`: "", `[]`: "", `{"type":"strong"}`: "type", `{"$ref":"https://example.com/x"}`: "leaves the schema",
		`{"pattern":"("}`: "pattern", `{"type":"string","type":"integer"}`: "duplicate key",
	} {
		if _, err := argschema.CompileValue(json.RawMessage(schema)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got %v, want %q", schema, err, problem)
		}
	}
}
