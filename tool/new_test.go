package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

func ExampleNew() {
	type query struct {
		Text  string `json:"text" jsonschema:"what to look for"`
		Limit int    `json:"limit,omitempty" jsonschema:"at most so many hits"`
	}
	search := func(ctx context.Context, q query) ([]string, error) {
		call, _ := tool.CurrentCall(ctx)
		return []string{fmt.Sprintf("%s asks for %s", call.By, q.Text)}, nil
	}
	t, err := tool.New("search", "Search the notes.", search, &tool.Options{Effect: tool.ReadOnly})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(t.Definition().Input))
	result, err := t.Call(context.Background(), tool.Call{
		Name: "search",
		Args: json.RawMessage(`{"text": "rhubarb"}`),
		By:   identity.ByAgent("a1"),
	})
	fmt.Println(string(result.JSON()), err)
	// Output:
	// {"type":"object","properties":{"text":{"type":"string","description":"what to look for"},"limit":{"type":"integer","description":"at most so many hits"}},"required":["text"],"additionalProperties":false}
	// ["agent:a1 asks for rhubarb"] <nil>
}

// mustNew returns a function that passes a tool on and fails the test on an error.
func mustNew(t *testing.T) func(tool.Tool, error) tool.Tool {
	return func(tl tool.Tool, err error) tool.Tool {
		t.Helper()
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		return tl
	}
}

// toolReturning returns a tool without arguments that returns out and err.
func toolReturning[Out any](t *testing.T, out Out, err error) tool.Tool {
	fn := func(context.Context, struct{}) (Out, error) { return out, err }
	return mustNew(t)(tool.New("answer", "Answers.", fn, nil))
}

func TestNew_Definition(t *testing.T) {
	states := []string{"draft"}
	input := json.RawMessage(`{"type":"object","properties":{"a":{}}}`)
	nothing := func(context.Context, struct{}) (string, error) { return "", nil }
	t.Run("copies options", func(t *testing.T) {
		listing := tool.Listing{Title: "N", Output: json.RawMessage(`{"type":"object"}`), Icons: json.RawMessage(`[]`), Meta: json.RawMessage(`{"a":1}`)}
		tl := mustNew(t)(tool.New("n", "d", nothing, &tool.Options{Effect: tool.Idempotent, Flags: tool.FlagsOf(tool.Private), State: "done", States: states, Input: input, Listing: listing}))
		want := tool.Definition{Name: "n", Description: "d", Input: json.RawMessage(string(input)), Effect: tool.Idempotent, Flags: tool.FlagsOf(tool.Private), State: "done", States: []string{"draft"}}
		want.Listing = tool.Listing{Title: "N", Output: json.RawMessage(`{"type":"object"}`), Icons: json.RawMessage(`[]`), Meta: json.RawMessage(`{"a":1}`)}
		states[0], input[0], listing.Output[0], listing.Icons[0], listing.Meta[0] = "changed", 'x', 'x', 'x', 'x'
		if diff := cmp.Diff(tl.Definition(), want); diff != "" {
			t.Errorf("definition (-got +want):\n%s", diff)
		}
	})
	t.Run("defaults", func(t *testing.T) {
		tl := mustNew(t)(tool.New("n", "d", nothing, nil))
		want := tool.Definition{Name: "n", Description: "d", Input: json.RawMessage(`{"type":"object","additionalProperties":false}`)}
		if diff := cmp.Diff(tl.Definition(), want); diff != "" {
			t.Errorf("definition (-got +want):\n%s", diff)
		}
	})
	t.Run("empty list of states", func(t *testing.T) {
		tl := mustNew(t)(tool.New("n", "d", nothing, &tool.Options{States: []string{}}))
		if got := tl.Definition().States; got == nil || len(got) != 0 {
			t.Errorf("got %#v, want an empty list", got)
		}
	})
	t.Run("map argument", func(t *testing.T) {
		tl := mustNew(t)(tool.New("n", "d", func(_ context.Context, in map[string]int) (int, error) { return in["a"], nil }, nil))
		if got, want := string(tl.Definition().Input), `{"type":"object","additionalProperties":{"type":"integer"}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestNew_Rejects(t *testing.T) {
	type loop struct{ Next *loop }
	tests := []struct {
		name string
		make func() (tool.Tool, error)
		want string
	}{
		{"bad name", func() (tool.Tool, error) { return tool.New("reаd", "", accept[struct{}], nil) }, `tool name "reаd" has U+0430 at byte 2`},
		{"no function", func() (tool.Tool, error) { return tool.New[struct{}, string]("n", "", nil, nil) }, `tool "n" has no function`},
		{"list", func() (tool.Tool, error) { return tool.New("n", "", accept[[]string], nil) }, `arguments of type []string are neither a struct nor a map`},
		{"pointer", func() (tool.Tool, error) { return tool.New("n", "", accept[*loop], nil) }, `are neither a struct nor a map`},
		{"map with other keys", func() (tool.Tool, error) { return tool.New("n", "", accept[map[int]string], nil) }, `are neither a struct nor a map`},
		{"any", func() (tool.Tool, error) { return tool.New("n", "", accept[any], nil) }, `are neither a struct nor a map`},
		{"type that contains itself", func() (tool.Tool, error) { return tool.New("n", "", accept[loop], nil) }, `tool "n": infer input schema of tool_test.loop: `},
		{"field that is not data", func() (tool.Tool, error) { return tool.New("n", "", accept[struct{ F func() }], nil) }, `infer input schema`},
		{"time", func() (tool.Tool, error) { return tool.New("n", "", accept[time.Time], nil) }, `input schema: type: want "object" at the top`},
		{"schema is not an object", func() (tool.Tool, error) {
			return tool.New("n", "", accept[struct{}], &tool.Options{Input: json.RawMessage(`true`)})
		}, `tool "n": input schema: not an object`},
		{"empty schema", func() (tool.Tool, error) {
			return tool.New("n", "", accept[struct{}], &tool.Options{Input: json.RawMessage(``)})
		}, `tool "n": input schema: not an object`},
		{"output schema of lists", withListing(tool.Listing{Output: json.RawMessage(`{"type":"array"}`)}), `tool "n": the output schema must be a JSON object with the type object`},
		{"invalid output schema", withListing(tool.Listing{Output: json.RawMessage(`{"type":"object","required":1}`)}), `tool "n": the output schema: `},
		{"icons that are no list", withListing(tool.Listing{Icons: json.RawMessage(`{}`)}), `tool "n": the icons must be a JSON array`},
		{"_meta that is no object", withListing(tool.Listing{Meta: json.RawMessage(`[]`)}), `tool "n": _meta must be a JSON object`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tl, err := tt.make()
			if err == nil || !strings.Contains(err.Error(), tt.want) || tl != nil {
				t.Errorf("got %v, %v, want nil, %s", tl, err, tt.want)
			}
		})
	}
}

// withListing makes a tool with a listing.
func withListing(l tool.Listing) func() (tool.Tool, error) {
	return func() (tool.Tool, error) { return tool.New("n", "", accept[struct{}], &tool.Options{Listing: l}) }
}

func accept[In any](context.Context, In) (string, error) { return "", nil }

// redefinedTool is a tool with another definition than the tool it wraps.
type redefinedTool struct {
	tool.Tool
	definition tool.Definition
}

func (r redefinedTool) Definition() tool.Definition { return r.definition }

func TestSchemaOf_UsesDefinition(t *testing.T) {
	inner, err := tool.New("t", "", func(context.Context, struct {
		A int `json:"a"`
	}) (string, error) {
		return "", nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	as := func(input string) tool.Definition {
		d := inner.Definition()
		d.Input = json.RawMessage(input)
		return d
	}
	const text = `{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}`
	tests := []struct {
		name       string
		tool       tool.Tool
		definition tool.Definition
		fits       string
	}{
		{"tool of New", inner, inner.Definition(), `{"a":1}`},
		{"changed definition", inner, as(text), `{"b":"x"}`},
		{"wrapped tool", redefinedTool{inner, as(text)}, as(text), `{"b":"x"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			schema, err := tool.SchemaOf(tt.tool, tt.definition)
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range []string{`{"a":1}`, `{"b":"x"}`} {
				if err := schema.Validate(json.RawMessage(args)); (err == nil) != (args == tt.fits) {
					t.Errorf("%s: got %v", args, err)
				}
			}
		})
	}
	t.Run("invalid schema", func(t *testing.T) {
		if _, err := tool.SchemaOf(inner, as(`{"type":"string"}`)); err == nil {
			t.Error("got no error")
		}
	})
}

func TestTool_CallReturnsResult(t *testing.T) {
	type hit struct {
		Path string `json:"path"`
	}
	failure := func(code errcode.Code, message string) tool.Result {
		return tool.Failure("answer", errcode.New(code, "%s", message))
	}
	tests := []struct {
		name string
		tool tool.Tool
		want tool.Result
	}{
		{"string", toolReturning(t, "done", nil), tool.Result{Text: "done"}},
		{"struct", toolReturning(t, hit{"a"}, nil), tool.Result{Structured: json.RawMessage(`{"path":"a"}`)}},
		{"nil", toolReturning[any](t, nil, nil), tool.Result{Structured: json.RawMessage(`null`)}},
		{"JSON", toolReturning(t, json.RawMessage(`[1]`), nil), tool.Result{Structured: json.RawMessage(`[1]`)}},
		{"result", toolReturning(t, tool.Result{Text: "no", IsError: true}, nil), tool.Result{Text: "no", IsError: true}},
		{"string in an interface", toolReturning[any](t, "done", nil), tool.Result{Text: "done"}},
		{"error", toolReturning(t, "", errors.New("disk full")), failure(errcode.ToolExecutionFailed, "disk full")},
		{"error with a code", toolReturning(t, "", fmt.Errorf("read: %w", errcode.New(errcode.FileNotFound, "no file a"))), failure(errcode.FileNotFound, "no file a")},
		{"cause of an error with a code is hidden", toolReturning(t, "", errcode.Wrap(errcode.FileNotFound, errors.New("secret"), "no file a")), failure(errcode.FileNotFound, "no file a")},
		{"context error of the function", toolReturning(t, "", context.DeadlineExceeded), failure(errcode.ToolExecutionFailed, "context deadline exceeded")},
		{"value that is not JSON", toolReturning(t, func() {}, nil), failure(errcode.NotSerializable, `tool "answer" returned a value that is not JSON: json: unsupported type: func()`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.tool.Call(t.Context(), tool.Call{Name: "answer", Args: json.RawMessage(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("result (-got +want):\n%s", diff)
			}
		})
	}
}

func TestTool_CallAfterContextEnded(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	call := tool.Call{Name: "answer", Args: json.RawMessage(`{}`)}
	t.Run("error", func(t *testing.T) {
		for _, cause := range []error{over.Err(), errors.New("connection reset"), errcode.New(errcode.FileNotFound, "no file")} {
			got, err := toolReturning(t, "", cause).Call(over, call)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
				t.Errorf("got error %v, want it to wrap %v and %v", err, context.Canceled, cause)
			}
			if diff := cmp.Diff(got, tool.Result{}); diff != "" {
				t.Errorf("result (-got +want):\n%s", diff)
			}
		}
	})
	t.Run("result", func(t *testing.T) {
		got, err := toolReturning(t, "done", nil).Call(over, call)
		if err != nil || got.Text != "done" {
			t.Errorf("got %v, %v, want done", got, err)
		}
	})
}

func TestTool_CallRejectsArgumentsOfOtherType(t *testing.T) {
	fn := func(_ context.Context, in struct{ N int8 }) (int8, error) { return in.N, nil }
	tl := mustNew(t)(tool.New("n", "d", fn, nil))
	for _, args := range []string{`{"N":"1"}`, `{"N":300}`, `[]`, ``} {
		got, err := tl.Call(t.Context(), tool.Call{Name: "n", Args: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ Error, ToolName string }
		if err := json.Unmarshal(got.Structured, &body); err != nil {
			t.Fatal(err)
		}
		if !got.IsError || body.Error != string(errcode.InvalidArguments) || body.ToolName != "n" {
			t.Errorf("got %+v for %q, want a failure invalid_arguments", body, args)
		}
	}
}

func TestCurrent_ReturnsCall(t *testing.T) {
	want := tool.Call{ID: "c1", Name: "n", Args: json.RawMessage(`{}`), By: identity.ByOperator("me")}
	var got tool.Call
	fn := func(ctx context.Context, _ struct{}) (string, error) {
		got, _ = tool.CurrentCall(ctx)
		return "", nil
	}
	if _, err := mustNew(t)(tool.New("n", "d", fn, nil)).Call(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("call in the function (-got +want):\n%s", diff)
	}
	if _, ok := tool.CurrentCall(t.Context()); ok {
		t.Error("got a call outside of a tool's function")
	}
}
