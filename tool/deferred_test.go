package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/tool"
)

// declaredTool is a tool that a configuration declares. Its value is the input schema.
type declaredTool string

// Definition implements tool.Tool.
func (d declaredTool) Definition() tool.Definition {
	return tool.Definition{Name: "t", Input: json.RawMessage(d), Declared: d}
}

// Call implements tool.Tool.
func (declaredTool) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// Manifest, ClientSchema and SecureSchema implement tool.Declared.
func (declaredTool) Manifest() json.RawMessage       { return nil }
func (d declaredTool) ClientSchema() json.RawMessage { return json.RawMessage(d) }
func (declaredTool) SecureSchema() json.RawMessage   { return nil }

// A schema that is compiled late has the same verdicts as one that is compiled at once.
func TestSchemaOf_CompilesDeclaredToolLate(t *testing.T) {
	const text = `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`
	now, err := argschema.Compile(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	late, err := tool.SchemaOf(declaredTool(text), declaredTool(text).Definition())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, args := range []string{`{"n":1}`, `{"n":0}`, `{}`, `{"N":1}`, `[]`, `{"n":1,"n":2}`} {
		all.Go(func() {
			fits, err := late.Read(json.RawMessage(args))
			wantFits, wantErr := now.Read(json.RawMessage(args))
			if fits != wantFits || (err == nil) != (wantErr == nil) {
				t.Errorf("%s: got %v, %v from Read; want %v, %v", args, fits, err, wantFits, wantErr)
			}
			if err == nil && (late.Validate(json.RawMessage(args)) == nil) != (now.Validate(json.RawMessage(args)) == nil) {
				t.Errorf("%s: the results of Validate differ", args)
			}
		})
	}
	all.Wait()
}

// A tool whose schema is compiled at the first call rejects what its schema rejects, and all
// arguments if its schema is invalid.
func TestNew_CompilesLater(t *testing.T) {
	const valid, args = `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`, `{"n":1}`
	for _, tt := range []struct {
		input, args string
		accepted    bool
	}{{valid, args, true}, {valid, `{"n":0}`, false}, {valid, `{}`, false}, {`{"type":"object","properties":1}`, args, false}, {`{}`, args, false}, {``, args, false}} {
		input := json.RawMessage(tt.input)
		made, err := tool.New("late", "", accept[map[string]any], &tool.Options{Input: input, CompileLater: true})
		if err != nil {
			t.Fatal(err)
		}
		clear(input) // the tool has a copy
		schema, err := tool.SchemaOf(made, made.Definition())
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(json.RawMessage(tt.args)); (err == nil) != tt.accepted {
			t.Errorf("%s with the schema %s: got %v", tt.args, tt.input, err)
		}
	}
}

func TestSchemaOf_InvalidDeclaredSchemaRejectsArguments(t *testing.T) {
	for _, text := range []string{``, `{}`, `{"type":"object","properties":1}`, `{"type":"object","pattern":"("}`} {
		s, err := tool.SchemaOf(declaredTool(text), declaredTool(text).Definition())
		if err != nil {
			t.Fatal(err)
		}
		if fits, err := s.Read(json.RawMessage(`{}`)); fits || errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%s: got %v, %v from Read", text, fits, err)
		}
		if err := s.Validate(json.RawMessage(`{}`)); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%s: got %v from Validate", text, err)
		}
	}
	long := declaredTool(`{"type":"object","description":"` + strings.Repeat("d", argschema.MaxSchema) + `"}`)
	if _, err := tool.SchemaOf(long, long.Definition()); err == nil {
		t.Error("got no error for a schema that is too large")
	}
}
