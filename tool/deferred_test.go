package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// written is a tool that a configuration declared with this schema.
type written string

// Definition implements tool.Tool.
func (d written) Definition() tool.Definition {
	return tool.Definition{Name: "t", Input: json.RawMessage(d), Declared: d}
}

// Call implements tool.Tool.
func (written) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// Manifest, ClientSchema and SecureSchema implement tool.Declared.
func (written) Manifest() json.RawMessage       { return nil }
func (d written) ClientSchema() json.RawMessage { return json.RawMessage(d) }
func (written) SecureSchema() json.RawMessage   { return nil }

// The schema of a declared tool is compiled by its first call, and says what
// one that is compiled at once does.
func TestTheSchemaOfADeclaredToolIsCompiledLate(t *testing.T) {
	const text = `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`
	now, err := tool.Compile(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	late, err := tool.SchemaOf(written(text), written(text).Definition())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, args := range []string{`{"n":1}`, `{"n":0}`, `{}`, `{"N":1}`, `[]`, `{"n":1,"n":2}`} {
		all.Go(func() {
			fits, err := late.Read(json.RawMessage(args))
			wantFits, wantErr := now.Read(json.RawMessage(args))
			if fits != wantFits || (err == nil) != (wantErr == nil) {
				t.Errorf("%s: read as %v, %v; want %v, %v", args, fits, err, wantFits, wantErr)
			}
			if err == nil && (late.Validate(json.RawMessage(args)) == nil) != (now.Validate(json.RawMessage(args)) == nil) {
				t.Errorf("%s: the verdicts differ", args)
			}
		})
	}
	all.Wait()
}

func TestADeclaredToolWhoseSchemaDoesNotCompileTakesNothing(t *testing.T) {
	for _, text := range []string{``, `{}`, `{"type":"object","properties":1}`, `{"type":"object","pattern":"("}`} {
		s, err := tool.SchemaOf(written(text), written(text).Definition())
		if err != nil {
			t.Fatal(err)
		}
		if fits, err := s.Read(json.RawMessage(`{}`)); fits || errcode.Of(err) != errcode.InvalidArguments {
			t.Errorf("%s: read as %v, %v", text, fits, err)
		}
		if err := s.Validate(json.RawMessage(`{}`)); errcode.Of(err) != errcode.InvalidArguments {
			t.Errorf("%s: validated with %v", text, err)
		}
	}
	long := written(`{"type":"object","description":"` + strings.Repeat("d", tool.MaxSchema) + `"}`)
	if _, err := tool.SchemaOf(long, long.Definition()); err == nil {
		t.Error("a schema that is too long is taken")
	}
}
