package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var update = flag.Bool("update", false, "rewrite testdata and docs/tools.md")

// callerID is the agent that calls tools in tests.
const callerID = identity.AgentID("ann")

// fixture is a set of tools by name.
type fixture map[string]tool.Tool

func newFixture(t testing.TB, tools []tool.Tool, err error) fixture {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	k := fixture{}
	for _, tl := range tools {
		k[tl.Definition().Name] = tl
	}
	return k
}

func (k fixture) callAs(t testing.TB, by identity.Principal, name string, args any) tool.Result {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	result, err := k[name].Call(t.Context(), tool.Call{ID: "call-1", Name: name, Args: text, By: by})
	if err != nil {
		t.Fatalf("%s(%s): %v", name, text, err)
	}
	return result
}

// call calls a tool as callerID and returns its result as JSON.
func (k fixture) call(t testing.TB, name string, args any) string {
	t.Helper()
	return string(k.callAs(t, identity.ByAgent(callerID), name, args).JSON())
}

// callResult is call for a result that must be a success, decoded.
func callResult[T any](t testing.TB, k fixture, name string, args any) T {
	t.Helper()
	result := k.callAs(t, identity.ByAgent(callerID), name, args)
	var out T
	if result.IsError {
		t.Fatalf("%s(%v) failed: %s", name, args, result.JSON())
	}
	if err := json.Unmarshal(result.JSON(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// callCode calls a tool and returns the error code of its result, "" for a success.
func (k fixture) callCode(t testing.TB, name string, args any) errcode.Code {
	t.Helper()
	result := k.callAs(t, identity.ByAgent(callerID), name, args)
	if !result.IsError {
		return ""
	}
	var body struct{ Error errcode.Code }
	if err := json.Unmarshal(result.JSON(), &body); err != nil {
		t.Fatal(err)
	}
	return body.Error
}

type obj = map[string]any

// allGroups returns all built-in groups without dependencies.
func allGroups(t *testing.T) []toolgroups.Group {
	t.Helper()
	groups, err := NewGroups(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// allToolsByName returns all built-in tools without dependencies.
func allToolsByName(t *testing.T) fixture {
	all := fixture{}
	for _, g := range allGroups(t) {
		for _, tl := range g.Tools {
			all[tl.Definition().Name] = tl
		}
	}
	return all
}

// Each definition is recorded in testdata/tools, and nothing else is.
func TestDefinitions_TestdataHasNoOtherTools(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "tools", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	tools := allToolsByName(t)
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".json"); tools[name] == nil {
			t.Errorf("%s describes a tool that does not exist: delete it", file)
		}
	}
}

func TestDefinitions_MatchTestdata(t *testing.T) {
	for name, tl := range allToolsByName(t) {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(tl.Definition()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "tools", name+".json")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("run with -update if the change is intended (-want +got):\n%s", diff)
			}
		})
	}
}

// manual returns the text that docs/tools.md has about a tool, with examples.
func manual(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "manual", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// examples returns the arguments of the examples in the manual of a tool.
func examples(t *testing.T, name string) (list []json.RawMessage) {
	t.Helper()
	for _, part := range strings.Split(manual(t, name), "```json\n")[1:] {
		example, _, _ := strings.Cut(part, "\n```")
		if !json.Valid([]byte(example)) {
			t.Fatalf("%s: the example is not JSON: %s", name, example)
		}
		list = append(list, json.RawMessage(example))
	}
	return list
}

func TestManuals_HaveValidExample(t *testing.T) {
	for name, tl := range allToolsByName(t) {
		t.Run(name, func(t *testing.T) {
			d := tl.Definition()
			schema, err := argschema.Compile(d.Input)
			if err != nil {
				t.Fatal(err)
			}
			list := examples(t, name)
			if len(list) == 0 {
				t.Error("the manual has no example")
			}
			for _, args := range list {
				if err := errors.Join(schema.Parse(args), schema.Validate(args)); err != nil {
					t.Errorf("%s: %v", args, err)
				}
			}
		})
	}
}

// unboundedInSchema names properties without a bound in their schema, with the reason.
var unboundedInSchema = map[string]string{
	"send_message.delayMs": "negative values mean no delay, large ones a year",
	"write_file.content":   "8 MiB once decoded: a schema counts characters",

	// Any JSON is bounded by the size of all arguments, which the gate checks.
	"http_request.body": "any JSON", "put_artifact.content": "any JSON", "run_javascript.input": "any JSON",
	"send_message.payload": "any JSON", "send_message.quickReplies": "any JSON",
}

func TestSchemas_PropertiesAreDescribedAndBounded(t *testing.T) {
	for name, tl := range allToolsByName(t) {
		t.Run(name, func(t *testing.T) {
			var schema any
			if err := json.Unmarshal(tl.Definition().Input, &schema); err != nil {
				t.Fatal(err)
			}
			eachSchema(name, schema, func(path string, s obj) {
				if s["description"] == nil && s["enum"] == nil && !strings.HasSuffix(path, "[]") && path != name {
					t.Errorf("%s has no description", path)
				}
				if lacks := unbounded(s); lacks != "" && unboundedInSchema[path] == "" {
					t.Errorf("%s has no %s", path, lacks)
				}
			})
		})
	}
}

// eachSchema visits a schema and those of its properties and items.
func eachSchema(path string, schema any, visit func(path string, s obj)) {
	s, ok := schema.(obj)
	if !ok {
		return
	}
	visit(path, s)
	if properties, ok := s["properties"].(obj); ok {
		for name, property := range properties {
			eachSchema(path+"."+name, property, visit)
		}
	}
	eachSchema(path+"[]", s["items"], visit)
}

// unbounded returns the name of the bound that a schema lacks, "" if none.
func unbounded(s obj) string {
	if s["enum"] != nil || s["const"] != nil {
		return ""
	}
	for _, kind := range typesOf(s) {
		for _, need := range map[string][]string{
			"string": {"maxLength"}, "array": {"maxItems"}, "integer": {"minimum", "maximum"}, "number": {"minimum", "maximum"},
		}[kind] {
			if s[need] == nil {
				return need
			}
		}
	}
	return ""
}

// typesOf returns the types that a schema names.
func typesOf(s obj) []string {
	switch kind := s["type"].(type) {
	case string:
		return []string{kind}
	case []any:
		var list []string
		for _, k := range kind {
			list = append(list, k.(string))
		}
		return list
	}
	return nil
}

func TestSchemas_RejectInvalidArguments(t *testing.T) {
	all := allToolsByName(t)
	for _, c := range []struct{ name, tool, args string }{
		{"create_role without prompt", "create_role", `{"name":"a"}`},
		{"create_role with empty name", "create_role", `{"name":"","rolePrompt":""}`},
		{"toolGroups as text", "create_role", `{"name":"a","rolePrompt":"","toolGroups":"*"}`},
		{"find_role_by_name with empty name", "find_role_by_name", `{"name":""}`},
		{"spawn_agent without brief", "spawn_agent", `{"roleId":"r"}`},
		{"spawn_agent without role", "spawn_agent", `{"taskBrief":{}}`},
		{"spawn_agent with first message", "spawn_agent", `{"roleId":"r","taskBrief":{},"initialMessage":"go"}`},
		{"missing first message", "spawn_agent_with_task", `{"roleId":"r","taskBrief":{}}`},
		{"null first message", "spawn_agent_with_task", `{"roleId":"r","taskBrief":{},"initialMessage":null}`},
		{"first message as list", "spawn_agent_with_task", `{"roleId":"r","taskBrief":{},"initialMessage":[]}`},
		{"collaborator without id", "spawn_agent", `{"roleId":"r","taskBrief":{"collaborators":[{"role":"r"}]}}`},
		{"terminate_agent without agent", "terminate_agent", `{}`},
		{"message without recipient", "send_message", `{"payload":1}`},
		{"message without payload", "send_message", `{"to":"a"}`},
		{"message with sender", "send_message", `{"to":"a","payload":1,"from":"b"}`},
		{"empty list of recipients", "send_message", `{"to":[],"payload":1}`},
		{"number as recipient", "send_message", `{"to":[1],"payload":1}`},
		{"more than 100 recipients", "send_message", `{"to":["a"` + strings.Repeat(`,"a"`, 100) + `],"payload":1}`},
		{"unknown field in brief", "spawn_agent", `{"roleId":"r","taskBrief":{"deadline":"now"}}`},
		{"delay as list", "send_message", `{"to":"a","payload":1,"delayMs":[1]}`},
		{"unknown property", "read_file", `{"path":"a","mode":"r"}`},
		{"empty path", "read_file", `{"path":""}`},
		{"negative offset", "read_file", `{"path":"a","offset":-1}`},
		{"zero length", "read_file", `{"path":"a","length":0}`},
		{"length over a million", "read_file", `{"path":"a","length":1000001}`},
		{"write_file without path", "write_file", `{"content":"a"}`},
		{"empty pattern", "list_files", `{"pattern":""}`},
		{"content as object", "write_file", `{"path":"a","content":{"a":1}}`},
		{"unknown encoding", "write_file", `{"path":"a","content":"","encoding":"hex"}`},
		{"put_artifact without type", "put_artifact", `{"content":1}`},
		{"zero length of artifact", "get_artifact", `{"ref":"a","length":0}`},
		{"length of artifact over a million", "get_artifact", `{"ref":"a","length":1000001}`},
		{"meta as list", "put_artifact", `{"type":"a","content":1,"meta":[]}`},
		{"missing summary", "compress_context", `{}`},
		{"negative count", "compress_context", `{"summary":"s","keepRecentCount":-1}`},
		{"empty argv", "run_command", `{"argv":[]}`},
		{"URL of another scheme", "http_request", `{"url":"ftp://example.com/"}`},
		{"unknown method", "http_request", `{"url":"https://example.com/","method":"TRACE"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, err := jsonschema.UnmarshalJSON(strings.NewReader(c.args))
			if err != nil {
				t.Fatal(err)
			}
			if err := compile(t, all[c.tool].Definition().Input).Validate(args); err == nil {
				t.Errorf("%s accepts %s", c.tool, c.args)
			}
		})
	}
}

func compile(t *testing.T, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tool.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("tool.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// Arguments that may be any JSON say so by all types: a value of each is accepted.
func TestSchemas_AnyJSON(t *testing.T) {
	for name, args := range map[string]string{
		"http_request": `{"url":"https://a.example","body":%s}`, "put_artifact": `{"type":"t","content":%s}`, "run_javascript": `{"code":"1","input":%s}`,
		"send_message": `{"to":"root","payload":%[1]s,"quickReplies":%[1]s}`,
	} {
		schema, err := argschema.Compile(allToolsByName(t)[name].Definition().Input)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{`"x"`, `1`, `1.5`, `true`, `{"a":[]}`, `[1,{}]`, `null`} {
			if err := schema.Validate([]byte(fmt.Sprintf(args, value))); err != nil {
				t.Errorf("%s: %s: %v", name, value, err)
			}
		}
	}
}
