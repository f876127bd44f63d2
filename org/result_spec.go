package org

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
)

// MaxResultSchema is the size of the largest schema of a result, in bytes. It is part of
// each request to the model that returns the result.
const MaxResultSchema = 16 << 10

// ResultSpec describes the result of an agent or of a task. A nil ResultSpec is any result.
type ResultSpec struct {
	Schema json.RawMessage `json:"schema"` // a JSON schema
}

// schema returns the schema; nil if any result will do.
func (s *ResultSpec) schema() json.RawMessage {
	if s == nil {
		return nil
	}
	return s.Schema
}

// normalized returns s with its schema as the stored record has it. The schema must be
// valid.
func (s *ResultSpec) normalized() *ResultSpec {
	if s == nil {
		return nil
	}
	schema, err := json.Marshal(s.Schema)
	if err != nil {
		return s
	}
	return &ResultSpec{schema}
}

// equal reports whether two normalized specifications have the same text.
func (s *ResultSpec) equal(other *ResultSpec) bool {
	return (s == nil) == (other == nil) && bytes.Equal(s.schema(), other.schema())
}

// ResultProblem describes why no result can be checked against a schema; "" if results can
// be.
func ResultProblem(schema json.RawMessage) string {
	switch {
	case len(schema) == 0:
		return "it is missing"
	case len(schema) > MaxResultSchema:
		return fmt.Sprintf("it has %d bytes, at most %d are allowed", len(schema), MaxResultSchema)
	}
	if _, err := argschema.CompileValue(schema); err != nil {
		return err.Error()
	}
	return ""
}

// checkResult rejects a role whose result has a schema that nothing can be checked against.
func checkResult(spec RoleSpec) error {
	if spec.Result == nil {
		return nil
	}
	if problem := ResultProblem(spec.Result.Schema); problem != "" {
		return errcode.New(errcode.InvalidRole, "role %q: the schema of its result: %s", spec.Name, problem).With("field", "result")
	}
	return nil
}
