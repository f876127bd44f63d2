package tool

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

// MaxSchema is how many bytes an input schema may have.
const MaxSchema = 256 << 10

// Schema is a tool's compiled input schema. It never changes; all methods are
// safe for concurrent use.
type Schema struct {
	lazy func() (*compiled, error) // at the first use; nil for one that is compiled
	compiled
}

// compiled is what a schema is used by.
type compiled struct {
	shape     *strictjson.KeySet
	rules     *jsonschema.Schema
	maxSteps  int // steps that one value takes, if shape has all that rules say; else 0
	expansion int // schemas below rules, see affordable
}

// Compile compiles the input schema of a tool: a JSON schema (2020-12 unless
// it names another draft) that says "type": "object". It reads nothing but
// input: a reference that leaves it is refused, unless it is to a draft's own
// meta-schema. So are patterns that are no Go regular expressions. The error
// names the keyword.
func Compile(input json.RawMessage) (*Schema, error) {
	doc, err := schemaDocument(input)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	rules, err := compileRules(doc)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	shape, most, err := shapeOf(rules)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	return &Schema{compiled: compiled{shape, rules, most, expansion(rules, map[*jsonschema.Schema]int{})}}, nil
}

// deferred gives the schema that Compile makes of input when it is used first: by
// who made input and knows that it compiles. One that does not lets no
// arguments through.
func deferred(input json.RawMessage) *Schema {
	return &Schema{lazy: sync.OnceValues(func() (*compiled, error) {
		made, err := Compile(input)
		if err != nil {
			return nil, errcode.New(errcode.InvalidArguments, "no arguments can be checked: %v", err)
		}
		return &made.compiled, nil
	})}
}

func (s *Schema) compile() (*compiled, error) {
	if s.lazy == nil {
		return &s.compiled, nil
	}
	return s.lazy()
}

// Parse checks that args is one strict JSON object in which no key is almost
// a property the schema knows. It comes before everything else that reads
// args. The error has the code invalid_arguments.
func (s *Schema) Parse(args json.RawMessage) error {
	_, err := s.Read(args)
	return err
}

// Read is Parse that, in the same walk over args, holds them against the
// schema. If they fit, Validate would accept them, and need not be asked; if
// not, it has the verdict and the words for it.
func (s *Schema) Read(args json.RawMessage) (fits bool, err error) {
	c, err := s.compile()
	if err != nil {
		return false, err
	}
	r, err := strictjson.Read(args, c.shape)
	if err != nil {
		return false, errcode.New(errcode.InvalidArguments, "arguments are no JSON object that is safe to read: %v", err)
	}
	return c.maxSteps > 0 && r.Valid && r.Values <= maxSteps/c.maxSteps, nil
}

// Validate checks args, which must have passed Parse, against the schema. The
// error has the code invalid_arguments and names each field, at most five,
// with what was expected, so that a model can repair its call. Arguments whose
// nesting makes the schema's alternatives multiply are refused unchecked.
func (s *Schema) Validate(args json.RawMessage) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args)) // numbers keep every digit
	if err != nil {
		return errcode.New(errcode.InvalidArguments, "arguments are no JSON: %v", err)
	}
	c, err := s.compile()
	if err != nil {
		return err
	}
	if !c.withinBudget(doc, len(args)) {
		return errcode.New(errcode.InvalidArguments, "arguments take too many steps to check against the tool's schema: nest less deep, or send less")
	}
	if err := c.rules.Validate(doc); err != nil {
		return errcode.New(errcode.InvalidArguments, "%s", explain(doc, err))
	}
	return nil
}

// schemaDocument decodes an input schema and checks what every tool's has.
func schemaDocument(input json.RawMessage) (any, error) {
	if len(input) > MaxSchema {
		return nil, fmt.Errorf("%d bytes, more than %d", len(input), MaxSchema)
	}
	if err := strictjson.Object(input, nil); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return nil, err
	}
	if kind, ok := doc.(map[string]any)["type"]; !ok || kind != "object" {
		return nil, errors.New(`type: want "object" at the top`)
	}
	return doc, nil
}

// baseURI is where references within a schema resolve; nothing is ever there.
const baseURI = "schema:///input"

func compileRules(doc any) (*jsonschema.Schema, error) {
	c, patterns := jsonschema.NewCompiler(), new(regexEngine)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patterns.compile)
	if err := c.AddResource(baseURI, doc); err != nil {
		return nil, err
	}
	rules, err := c.Compile(baseURI)
	if err != nil {
		return nil, compileError(doc, err, patterns)
	}
	return rules, nil
}

// compileError words why a schema does not compile, without the library's
// addresses.
func compileError(doc any, err error, p *regexEngine) error {
	if p.err != nil {
		return p.err
	}
	if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return fmt.Errorf("reference to %q leaves the schema", e.URL)
	}
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		return errors.New(explain(doc, e.Err))
	}
	return err
}

// noLoader is a loader that opens nothing: a schema from outside must not make
// the process read files or addresses.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("references stay within the schema")
}

// regexEngine is a regular expression engine that keeps its first error.
type regexEngine struct{ err error }

func (p *regexEngine) compile(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("pattern %q is no Go regular expression (lookahead and back references are not supported): %w", pattern, err)
	}
	if err != nil {
		return nil, err
	}
	return re, nil
}
