package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	google "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/argschema"
)

// arguments are about 2 KB of JSON that a model might write, with their schema.
type arguments struct{ name, schema, json string }

// The arguments of the comparisons, one kind each.
var (
	flatArgs     = arguments{"60 properties of all scalar types", flatSchema(), flatJSON()}
	nestedArgs   = arguments{"a list of objects with a list in each", nestedSchema, listJSON(nestedItem, 15)}
	indentedArgs = arguments{"a shorter list over many lines", nestedSchema, indentJSON(listJSON(nestedItem, 12))}
	textArgs     = arguments{"a file with escaped line ends", textSchema, textJSON("\tif err := run(ctx, args); err != nil {\\n", 48)}
	unicodeArgs  = arguments{"a text beyond ASCII", textSchema, textJSON("文件 «données» приклад. ", 60)}
	numbersArgs  = arguments{"500 small numbers with bounds", numbersSchema, numbersJSON()}
)

const (
	nestedItem   = `{"id": 17, "path": "src/main.go", "kind": "file", "size": 10.5, "tags": ["a", "b"], "text": "A line of text.\nAnd one more."}`
	nestedSchema = `{"type":"object","required":["query","items"],"additionalProperties":false,"properties":{
		"query":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":100},
		"items":{"type":"array","maxItems":100,"items":{"type":"object","required":["id","path"],"additionalProperties":false,"properties":{
			"id":{"type":"integer"},"path":{"type":"string","minLength":1,"maxLength":4096},"kind":{"enum":["file","directory"]},
			"size":{"type":"number","minimum":0},"tags":{"type":"array","items":{"type":"string"}},"text":{"type":["string","null"]}}}}}}`
	textSchema = `{"type":"object","required":["path","content"],"additionalProperties":false,"properties":{
		"path":{"type":"string","minLength":1},"content":{"type":"string","maxLength":1000000},"append":{"type":"boolean"}}}`
	numbersSchema = `{"type":"object","required":["values"],"properties":{"values":{"type":"array","items":{"type":"integer","minimum":0,"maximum":1000}}}}`
)

func listJSON(item string, n int) string {
	return `{"query": "find it", "limit": 25, "items": [` + strings.TrimSuffix(strings.Repeat(item+", ", n), ", ") + `]}`
}

func textJSON(line string, n int) string {
	return `{"path": "src/main.go", "content": "` + strings.ReplaceAll(strings.Repeat(line, n), "\t", `\t`) + `", "append": false}`
}

func numbersJSON() string {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, ",%d", i*7%1000)
	}
	return `{"values":[` + b.String()[1:] + `]}`
}

// flatJSON returns an object whose properties are not in the schema's order.
func flatJSON() string {
	var b strings.Builder
	for i := range 60 {
		value := []string{`"a value, as long as names and notes are"`, `1234567`, `true`, `0.25`}[i%4]
		fmt.Fprintf(&b, `, "property_%d": %s`, i*7%60, value)
	}
	return "{" + b.String()[2:] + "}"
}

func flatSchema() string {
	var b strings.Builder
	for i := range 60 {
		rules := []string{`"string","maxLength":100`, `"integer","minimum":0`, `"boolean"`, `"number"`}[i%4]
		fmt.Fprintf(&b, `,"property_%d":{"type":%s}`, i*7%60, rules)
	}
	return `{"type":"object","additionalProperties":false,"required":["property_0"],"properties":{` + b.String()[1:] + `}}`
}

func indentJSON(text string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		panic(err)
	}
	return b.String()
}

// comparison compares reading arguments with a mere syntax check of the JSON, and with full
// validators.
func (a arguments) comparison() (comparison, error) {
	ours, err := argschema.Compile(json.RawMessage(a.schema))
	if err != nil {
		return comparison{}, err
	}
	theirs, err := a.newSanthoshValidator()
	if err != nil {
		return comparison{}, err
	}
	googles, err := a.newGoogleValidator()
	if err != nil {
		return comparison{}, err
	}
	data := []byte(a.json)
	return comparison{title: fmt.Sprintf("arguments: %d bytes, %s", len(data), a.name), candidates: []candidate{
		{"gjson.ValidBytes", 20_000, func(n int) {
			for range n {
				assert(gjson.ValidBytes(data))
			}
		}},
		{"rolecall Read: strict, checked against the schema", 20_000, func(n int) {
			for range n {
				fits, err := ours.Read(data)
				assert(fits && err == nil)
			}
		}},
		{"rolecall Parse and Validate: the full validator", 1000, func(n int) {
			for range n {
				assert(ours.Parse(data) == nil && ours.Validate(data) == nil)
			}
		}},
		{"santhosh-tekuri/jsonschema", 1000, func(n int) { assert(repeat(n, func() error { return theirs(data) })) }},
		{"google/jsonschema-go", 1000, func(n int) { assert(repeat(n, func() error { return googles(data) })) }},
	}}, nil
}

// repeat calls f n times and reports whether all calls succeeded.
func repeat(n int, f func() error) (ok bool) {
	ok = true
	for range n {
		ok = f() == nil && ok
	}
	return ok
}

// assert panics on false, so that a candidate is not fast because it rejects its
// input.
func assert(ok bool) {
	if !ok {
		panic("bench: unexpected result")
	}
}

func (a arguments) newSanthoshValidator() (func([]byte) error, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(a.schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("a.json", doc); err != nil {
		return nil, err
	}
	rules, err := c.Compile("a.json")
	return func(data []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return err
		}
		return rules.Validate(v)
	}, err
}

func (a arguments) newGoogleValidator() (func([]byte) error, error) {
	var schema google.Schema
	if err := json.Unmarshal([]byte(a.schema), &schema); err != nil {
		return nil, err
	}
	rules, err := schema.Resolve(nil)
	return func(data []byte) error {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			return err
		}
		return rules.Validate(v)
	}, err
}
