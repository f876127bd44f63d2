package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
)

// Options are the optional settings of New. The zero Options, or nil, make a Mutating tool that
// is available in every workflow state.
type Options struct {
	Effect  Effect
	Flags   Flags   // the zero Flags are unknown and count as all
	Listing Listing // further fields of the tool in the listing of the MCP server

	State  string          // the workflow state after a success; "" keeps the state
	States []string        // the workflow states that offer the tool; nil: all, empty: none
	Input  json.RawMessage // the input schema, instead of the one inferred from In
	Shown  json.RawMessage // the schema that models read; nil: the input schema
	Asks   Asks            // what the tool may ask the caller during a call

	// CompileLater compiles the input schema at the first call, so that a program with many
	// tools starts sooner. New then does not check the schema, and calls of a tool with an
	// invalid one are all rejected.
	CompileLater bool

	Catalog Catalog // of a tool that lists or reads resources; nil: none
}

// New returns a Tool that calls a Go function.
//
// In must be a struct or a map with string keys. The input schema is inferred from it. The
// `json` tags give the names, and the `jsonschema` tags give the descriptions. Fields without
// omitempty are required, and a struct has no further properties. Arguments are decoded with
// encoding/json, so a number in a field of type any becomes a float64; use json.RawMessage to
// keep all digits.
//
// The return value of fn becomes the Result. A string is its Text, a Result is used as it is,
// and anything else is its Structured JSON. An error of fn is a failure that the model reads.
// It has the code and message of an *errcode.Error, else the code tool_execution_failed and
// the error's text. An error after ctx has ended is returned by Call instead.
//
// fn may be called concurrently. CurrentCall returns the Call that it serves. New returns an
// error for an invalid name (CheckName) and for an invalid Listing. It also returns an error
// for a type or schema that cannot describe arguments.
func New[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts *Options) (Tool, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if fn == nil {
		return nil, fmt.Errorf("tool %q has no function", name)
	}
	if opts == nil {
		opts = new(Options)
	}
	if err := opts.Listing.check(); err != nil {
		return nil, fmt.Errorf("tool %q: %w", name, err)
	}
	input, schema, err := compileInput(reflect.TypeFor[In](), opts)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", name, err)
	}
	return &typedTool[In, Out]{define(name, description, input, opts), string(input), schema, fn}, nil
}

// define returns a Definition that shares no memory with opts.
func define(name, description string, input json.RawMessage, opts *Options) Definition {
	return Definition{
		Name:        name,
		Description: description,
		Input:       slices.Clone(input),
		Shown:       slices.Clone(opts.Shown),
		Effect:      opts.Effect,
		Flags:       opts.Flags,
		Listing:     opts.Listing.clone(),
		State:       opts.State,
		States:      slices.Clone(opts.States),
		Catalog:     opts.Catalog,
		Asks:        opts.Asks,
	}
}

// compileInput returns the input schema of a tool with arguments of type t: the given one, or
// the one inferred from t.
func compileInput(t reflect.Type, opts *Options) (json.RawMessage, *argschema.Schema, error) {
	if !isArgumentType(t) {
		return nil, nil, fmt.Errorf("arguments of type %v are neither a struct nor a map with string keys", t)
	}
	input := opts.Input
	if input == nil {
		inferred, err := inferSchema(t)
		if err != nil {
			return nil, nil, fmt.Errorf("infer input schema of %v: %w", t, err)
		}
		input = inferred
	}
	if opts.CompileLater {
		input = slices.Clone(input) // the caller may change its own
		return input, argschema.CompileLater(input), nil
	}
	schema, err := argschema.Compile(input)
	return input, schema, err
}

// isArgumentType reports whether a JSON object can be decoded into t.
func isArgumentType(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
}

// inferSchema returns the input schema of a Go type.
func inferSchema(t reflect.Type) (json.RawMessage, error) {
	schema, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(schema)
}

// typedTool is a Tool that New returns.
type typedTool[In, Out any] struct {
	definition Definition
	input      string // the source of schema
	schema     *argschema.Schema
	fn         func(context.Context, In) (Out, error)
}

// Definition implements Tool.
func (t *typedTool[In, Out]) Definition() Definition { return t.definition }

// SchemaOf returns the compiled input schema of a definition of t. The definition may differ from
// the definition of t itself. The schema of a tool of New is compiled by New, or at its first use
// with Options.CompileLater. The schema of a declared tool (Definition.Declared) is compiled at its
// first use. Any other schema is compiled now.
func SchemaOf(t Tool, d Definition) (*argschema.Schema, error) {
	if f, ok := t.(schemaOwner); ok {
		if schema := f.schemaOf(d.Input); schema != nil {
			return schema, nil
		}
	}
	if d.Declared != nil && len(d.Input) <= argschema.MaxSchema {
		return argschema.CompileLater(d.Input), nil
	}
	return argschema.Compile(d.Input)
}

// schemaOwner is a tool that keeps its compiled input schema.
type schemaOwner interface {
	schemaOf(input []byte) *argschema.Schema
}

// schemaOf returns the compiled schema if input is its source, else nil.
func (t *typedTool[In, Out]) schemaOf(input []byte) *argschema.Schema {
	if string(input) != t.input { // the definition was changed
		return nil
	}
	return t.schema
}

// Call implements Tool.
func (t *typedTool[In, Out]) Call(ctx context.Context, c Call) (Result, error) {
	name := cmp.Or(c.Name, t.definition.Name) // the tool may be registered under another name
	var in In
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return Failure(name, errcode.New(errcode.InvalidArguments, "arguments do not fit the tool: %v", err)), nil
	}
	out, err := t.fn(context.WithValue(ctx, callKey{}, c), in)
	if err != nil {
		return callError(ctx, name, err)
	}
	return resultOf(name, out), nil
}

// callError returns an error of a tool's function as a Result, or as an error if ctx has ended.
func callError(ctx context.Context, name string, err error) (Result, error) {
	if ended := ctx.Err(); ended != nil {
		if !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return Result{}, fmt.Errorf("call tool %q: %w", name, err)
	}
	if _, ok := errors.AsType[*errcode.Error](err); !ok {
		err = errcode.New(errcode.ToolExecutionFailed, "%v", err)
	}
	return Failure(name, err), nil
}

// resultOf returns the return value of a tool's function as a Result.
func resultOf(name string, out any) Result {
	switch out := out.(type) {
	case Result:
		return out
	case string:
		return Result{Text: out}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return Failure(name, errcode.New(errcode.NotSerializable, "tool %q returned a value that is not JSON: %v", name, err))
	}
	return Result{Structured: text}
}

// callKey is the context key of the current Call.
type callKey struct{}

// CurrentCall returns the call that ctx belongs to. It reports false outside of the function of a
// tool that New made. The call's ID is its idempotency key, and By is the caller.
func CurrentCall(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(Call)
	return c, ok
}
