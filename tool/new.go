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
)

// Options are what New need not be told. The zero Options, and nil, are a
// Mutating tool that every workflow state offers.
type Options struct {
	Effect Effect
	State  string          // see Definition
	States []string        // see Definition
	Input  json.RawMessage // replaces the schema inferred from In
}

// New makes a Tool of a Go function.
//
// In must be a struct or a map with string keys. The tool's input schema is
// inferred from it: names from `json` tags, descriptions from `jsonschema`
// tags, fields without omitempty required, no further properties of structs.
// Arguments are decoded as encoding/json does, so numbers in a field of type
// any become float64; json.RawMessage keeps them as they are.
//
// What fn returns becomes the Result: a string its Text, a Result itself,
// anything else its Structured JSON. An error of fn is the tool's failure, a
// Result that the model reads: with the error's own code and message if it
// carries an errcode, else as tool_execution_failed with the error's text. An
// error after ctx has ended is the machinery's, and Call returns it.
//
// fn may run concurrently with itself; Current gives it the Call it serves.
// New refuses a name that CheckName refuses, and a type or a schema that
// cannot describe arguments.
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
	input, schema, err := inputOf(reflect.TypeFor[In](), opts.Input)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", name, err)
	}
	return &function[In, Out]{define(name, description, input, opts), string(input), schema, fn}, nil
}

// define makes a Definition that shares nothing with opts.
func define(name, description string, input json.RawMessage, opts *Options) Definition {
	return Definition{
		Name:        name,
		Description: description,
		Input:       slices.Clone(input),
		Effect:      opts.Effect,
		State:       opts.State,
		States:      slices.Clone(opts.States),
	}
}

// inputOf gives the input schema of a tool that takes t: the given one, or
// the one inferred from t.
func inputOf(t reflect.Type, given json.RawMessage) (json.RawMessage, *Schema, error) {
	if !holdsArguments(t) {
		return nil, nil, fmt.Errorf("arguments of type %v are neither a struct nor a map with string keys", t)
	}
	input := given
	if input == nil {
		inferred, err := infer(t)
		if err != nil {
			return nil, nil, fmt.Errorf("infer input schema of %v: %w", t, err)
		}
		input = inferred
	}
	schema, err := Compile(input)
	return input, schema, err
}

func holdsArguments(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
}

func infer(t reflect.Type) (json.RawMessage, error) {
	schema, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(schema)
}

// function is a Tool made by New.
type function[In, Out any] struct {
	definition Definition
	input      string // what schema was compiled from
	schema     *Schema
	fn         func(context.Context, In) (Out, error)
}

// Definition implements Tool.
func (f *function[In, Out]) Definition() Definition { return f.definition }

// SchemaOf gives the compiled schema of a tool with this definition. That of a
// tool made by New is compiled already, that of a declared tool (Declared) with
// its first call, any other now.
func SchemaOf(t Tool, d Definition) (*Schema, error) {
	if f, ok := t.(interface{ schemaOf(input []byte) *Schema }); ok {
		if schema := f.schemaOf(d.Input); schema != nil {
			return schema, nil
		}
	}
	if d.Declared != nil && len(d.Input) <= MaxSchema {
		return deferred(d.Input), nil
	}
	return Compile(d.Input)
}

func (f *function[In, Out]) schemaOf(input []byte) *Schema {
	if string(input) != f.input { // somebody changed the definition
		return nil
	}
	return f.schema
}

// Call implements Tool.
func (f *function[In, Out]) Call(ctx context.Context, c Call) (Result, error) {
	name := cmp.Or(c.Name, f.definition.Name) // it may be offered under another
	var in In
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return Failure(name, errcode.New(errcode.InvalidArguments, "arguments do not fit the tool: %v", err)), nil
	}
	out, err := f.fn(context.WithValue(ctx, callKey{}, c), in)
	if err != nil {
		return failed(ctx, name, err)
	}
	return resultOf(name, out), nil
}

// failed says whose failure an error of a tool's function is.
func failed(ctx context.Context, name string, err error) (Result, error) {
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

func resultOf(name string, out any) Result {
	switch out := out.(type) {
	case Result:
		return out
	case string:
		return Result{Text: out}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return Failure(name, errcode.New(errcode.NotSerializable, "tool %q returned what is no JSON: %v", name, err))
	}
	return Result{Structured: text}
}

// callKey is where a context holds the Call it serves.
type callKey struct{}

// Current gives the call that ctx serves, to the function of a tool made by
// New; false elsewhere. The Call's ID is the idempotency key of what the
// function does, and By is who asked for it.
func Current(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(Call)
	return c, ok
}
