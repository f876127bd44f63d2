// Package argschema compiles the JSON schemas of tool arguments, and checks arguments against
// them.
//
// Arguments need two verdicts: whether they are strict JSON (package strictjson) and whether
// they satisfy the schema. Read returns both after one pass over the text:
//
//	schema, err := argschema.Compile(input)
//	...
//	fits, err := schema.Read(args) // err: not strict JSON
//	if err == nil && !fits {
//		err = schema.Validate(args) // err: the problems, for a model to repair its call
//	}
//
// A schema is compiled into two forms. The first are sets of rules for the frequent keywords.
// Package strictjson calls them while it parses the text, which takes no memory. The second is
// the validator of package jsonschema, which knows all keywords; it decodes the arguments and
// describes what is wrong. Read reports true only if the first form represents the whole schema
// and all values satisfy it.
//
// The package infers no schema from Go types; package tool does.
package argschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// MaxSchema is the maximum size of an input schema in bytes.
const MaxSchema = 256 << 10

// Schema is a tool's compiled input schema. It is immutable and safe for concurrent use.
type Schema struct {
	lazy func() (*compiled, error) // compiles at the first use; nil if compiled is set
	compiled
}

// compiled has the two forms of a schema: shape is fast, validator is complete.
type compiled struct {
	shape         *strictjson.Shape
	validator     *jsonschema.Schema
	stepsPerValue int // steps for one value, if shape represents all of validator; else 0
	perValue      int // at most; see maxStepsPerValue
}

// Compile compiles the input schema of a tool: a JSON schema with "type": "object", of draft
// 2020-12 unless it names another one.
//
// Compile reads no files and no network. It rejects references out of the schema, except to the
// meta-schema of a draft, and patterns that are not Go regular expressions. The error names the
// keyword.
func Compile(input json.RawMessage) (*Schema, error) {
	doc, err := schemaDocument(input)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if kind, ok := doc.(map[string]any)["type"]; !ok || kind != "object" {
		return nil, fmt.Errorf("input schema: %w", errors.New(`type: want "object" at the top`))
	}
	c, err := compileDocument(doc)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	return &Schema{compiled: *c}, nil
}

// compileDocument compiles a decoded schema.
func compileDocument(doc any) (*compiled, error) {
	validator, err := compileValidator(doc)
	if err != nil {
		return nil, err
	}
	keys, stepsPerValue, err := shapeOf(validator)
	if err != nil {
		return nil, err
	}
	return &compiled{keys, validator, stepsPerValue, maxStepsPerValue(validator, map[*jsonschema.Schema]int{})}, nil
}

// CompileLater returns a Schema that is compiled at its first use. It is for schemas of this
// program, which are known to compile. One that does not rejects all arguments.
func CompileLater(input json.RawMessage) *Schema {
	return &Schema{lazy: sync.OnceValues(func() (*compiled, error) {
		s, err := Compile(input)
		if err != nil {
			return nil, errcode.New(errcode.InvalidArguments, "the tool's input schema is invalid: %v", err)
		}
		return &s.compiled, nil
	})}
}

// compile returns the compiled forms, which a lazy Schema compiles now.
func (s *Schema) compile() (*compiled, error) {
	if s.lazy == nil {
		return &s.compiled, nil
	}
	return s.lazy()
}

// Parse checks that args is a strict JSON object (see package strictjson) without keys that differ
// from a property of the schema in case only. It must be called before anything else reads
// args. The error has the code invalid_arguments.
func (s *Schema) Parse(args json.RawMessage) error {
	_, err := s.Read(args)
	return err
}

// Read works as Parse, and also compares args with the schema in the same pass. If it reports
// true, Validate would accept args and need not be called. Otherwise Validate decides and
// describes the problems.
func (s *Schema) Read(args json.RawMessage) (fits bool, err error) {
	fits, _, err = s.read(args)
	return fits, err
}

// read works as Read, and also returns the number of values in args.
func (s *Schema) read(args json.RawMessage) (fits bool, values int, err error) {
	c, err := s.compile()
	if err != nil {
		return false, 0, err
	}
	r, err := strictjson.Read(args, c.shape)
	if err != nil {
		return false, 0, errcode.Wrap(errcode.InvalidArguments, err, "arguments are malformed or ambiguous JSON: %v", err)
	}
	return c.stepsPerValue > 0 && r.Valid && r.Values <= maxSteps/c.stepsPerValue, r.Values, nil
}

// Validate checks args, which must have passed Parse, against the schema. The error has the code
// invalid_arguments and lists up to five fields with what was expected, so that a model can
// repair its call. Arguments that would take too many steps to check, or too much memory to
// decode, are rejected without a check.
func (s *Schema) Validate(args json.RawMessage) error { return s.ValidateShown(args) }

// ValidateShown is Validate for a model that was shown another schema, which may leave out some
// of what is accepted. The error for an unknown argument lists the names of the first schema
// that has any. Without schemas it lists no names.
func (s *Schema) ValidateShown(args json.RawMessage, shown ...json.RawMessage) error {
	fits, values, err := s.read(args)
	switch {
	case err != nil:
		return err
	case values > maxValues && fits:
		return nil
	case values > maxValues:
		return errcode.New(errcode.InvalidArguments, "arguments have %d values, which do not match the tool's schema or are too many to check: use at most %d", values, maxValues)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args)) // numbers keep every digit
	if err != nil {
		return errcode.New(errcode.InvalidArguments, "arguments are not JSON: %v", err)
	}
	c, err := s.compile()
	if err != nil {
		return err
	}
	if !c.withinBudget(doc, len(args)) {
		return errcode.New(errcode.InvalidArguments, "arguments take too many steps to check against the tool's schema: use less nesting or fewer values")
	}
	if err := c.validator.Validate(doc); err != nil {
		return errcode.New(errcode.InvalidArguments, "%s", explain(doc, err, shown...))
	}
	return nil
}

// schemaDocument decodes a schema, which must be an object of strict JSON.
func schemaDocument(input json.RawMessage) (any, error) {
	if len(input) > MaxSchema {
		return nil, fmt.Errorf("%d bytes, more than %d", len(input), MaxSchema)
	}
	if err := strictjson.CheckObject(input, nil); err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(input))
}

// baseURI is the address of an input schema. It only serves to resolve references within it.
const baseURI = "schema:///input"

// compileValidator compiles a decoded schema with the library.
func compileValidator(doc any) (*jsonschema.Schema, error) {
	c, engine := jsonschema.NewCompiler(), new(regexEngine)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(engine.compile)
	if err := c.AddResource(baseURI, doc); err != nil {
		return nil, err
	}
	validator, err := c.Compile(baseURI)
	if err != nil {
		return nil, compileError(doc, err, engine)
	}
	return validator, nil
}

// compileError returns an error of the library without the library's addresses.
func compileError(doc any, err error, engine *regexEngine) error {
	if engine.err != nil {
		return engine.err
	}
	if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return fmt.Errorf("reference to %q leaves the schema", e.URL)
	}
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		return errors.New(explain(doc, e.Err))
	}
	return err
}

// noLoader is a loader that loads nothing: an untrusted schema must not make the process read
// files or addresses.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("references stay within the schema")
}

// regexEngine compiles the patterns of a schema and keeps the first error.
type regexEngine struct{ err error }

func (e *regexEngine) compile(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("pattern %q is not a Go regular expression (lookahead and back references are not supported): %w", pattern, err)
	}
	if err != nil {
		return nil, err
	}
	return re, nil
}
