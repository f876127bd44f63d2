package argschema

import (
	"bytes"
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// ValueSchema is the compiled schema of any JSON value, such as the result of a task. It is
// immutable and safe for concurrent use.
type ValueSchema struct{ *compiled }

// CompileValue compiles a JSON schema, which must be an object. It has the bounds of Compile.
// The error is a sentence fragment that names the keyword.
func CompileValue(schema json.RawMessage) (*ValueSchema, error) {
	doc, err := schemaDocument(schema)
	if err != nil {
		return nil, err
	}
	c, err := compileDocument(doc)
	if err != nil {
		return nil, err
	}
	return &ValueSchema{c}, nil
}

// Validate checks that value is strict JSON and fits the schema. Keys that differ from a
// property of the schema in case only are rejected. The error has the code invalid_arguments
// and lists up to five problems.
func (s *ValueSchema) Validate(value json.RawMessage) error {
	n, err := strictjson.CountValues(value, s.shape)
	switch {
	case err != nil:
		return errcode.New(errcode.InvalidArguments, "malformed or ambiguous JSON: %v", err)
	case n > maxValues:
		return errcode.New(errcode.InvalidArguments, "%d values are too many to check: use at most %d", n, maxValues)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value)) // numbers keep every digit
	if err != nil {
		return errcode.New(errcode.InvalidArguments, "not JSON: %v", err)
	}
	if !s.withinBudget(doc, len(value)) {
		return errcode.New(errcode.InvalidArguments, "checking takes too many steps: use less nesting or fewer values")
	}
	if err := s.validator.Validate(doc); err != nil {
		return errcode.New(errcode.InvalidArguments, "%s", explain(doc, err))
	}
	return nil
}
