package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var update = flag.Bool("update", false, "write testdata anew")

// ann is the agent who calls in tests.
const ann = identity.AgentID("ann")

// kit is a group's tools by name.
type kit map[string]tool.Tool

func newKit(t testing.TB, tools []tool.Tool, err error) kit {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	k := kit{}
	for _, tl := range tools {
		k[tl.Definition().Name] = tl
	}
	return k
}

func (k kit) result(t testing.TB, by identity.Principal, name string, args any) tool.Result {
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

// ask calls a tool as ann and gives what the model reads.
func (k kit) ask(t testing.TB, name string, args any) string {
	t.Helper()
	return string(k.result(t, identity.ByAgent(ann), name, args).JSON())
}

// get is ask for an answer that is no failure, decoded.
func get[T any](t testing.TB, k kit, name string, args any) T {
	t.Helper()
	result := k.result(t, identity.ByAgent(ann), name, args)
	var out T
	if result.IsError {
		t.Fatalf("%s(%v) failed: %s", name, args, result.JSON())
	}
	if err := json.Unmarshal(result.JSON(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// code gives the error code of an answer, "" for a success.
func (k kit) code(t testing.TB, name string, args any) errcode.Code {
	t.Helper()
	result := k.result(t, identity.ByAgent(ann), name, args)
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

// everyGroup gives the groups made here, over nothing.
func everyGroup(t *testing.T) []toolgroups.Group {
	t.Helper()
	groups, err := Groups(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// everyTool gives the tools made here, over nothing.
func everyTool(t *testing.T) kit {
	all := kit{}
	for _, g := range everyGroup(t) {
		for _, tl := range g.Tools {
			all[tl.Definition().Name] = tl
		}
	}
	return all
}

func TestThereAreSevenGroupsAndEighteenTools(t *testing.T) {
	if groups, tools := len(everyGroup(t)), len(everyTool(t)); groups != 7 || tools != 18 {
		t.Errorf("%d groups and %d tools", groups, tools)
	}
}

func TestDefinitionsAreThoseInTestdata(t *testing.T) {
	for name, tl := range everyTool(t) {
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
				t.Errorf("run with -update if this is meant (-want +got):\n%s", diff)
			}
		})
	}
}

// examples gives the arguments that a description shows, and what follows
// the last of them.
func examples(t *testing.T, description string) (list []json.RawMessage, rest string) {
	t.Helper()
	parts := strings.Split(description, "Example: ")
	for _, part := range parts[1:] {
		var args json.RawMessage
		dec := json.NewDecoder(strings.NewReader(part))
		if err := dec.Decode(&args); err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		list, rest = append(list, args), part[dec.InputOffset():]
	}
	return list, rest
}

func TestEveryDescriptionEndsWithAnExampleTheGateWouldTake(t *testing.T) {
	for name, tl := range everyTool(t) {
		t.Run(name, func(t *testing.T) {
			d := tl.Definition()
			schema, err := tool.Compile(d.Input)
			if err != nil {
				t.Fatal(err)
			}
			list, rest := examples(t, d.Description)
			if len(list) == 0 || rest != "" && !strings.HasPrefix(rest, " answers ") {
				t.Errorf("%d examples, the last before %q", len(list), rest)
			}
			for _, args := range list {
				if err := errors.Join(schema.Parse(args), schema.Validate(args)); err != nil {
					t.Errorf("%s: %v", args, err)
				}
			}
		})
	}
}

// boundless names what has no bound of its own in its schema, and why.
var boundless = map[string]string{
	"send_message.delayMs": "what is negative is at once, what is too much a year",
	"write_file.content":   "8 MiB once decoded: a schema counts characters",
}

func TestEveryPropertyIsDescribedAndBounded(t *testing.T) {
	for name, tl := range everyTool(t) {
		t.Run(name, func(t *testing.T) {
			var schema any
			if err := json.Unmarshal(tl.Definition().Input, &schema); err != nil {
				t.Fatal(err)
			}
			eachSchema(name, schema, func(path string, s obj) {
				if s["description"] == nil && s["enum"] == nil && !strings.HasSuffix(path, "[]") && path != name {
					t.Errorf("%s has no description", path)
				}
				if lacks := unbounded(s); lacks != "" && boundless[path] == "" {
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

// unbounded names the bound that a schema of a type lacks.
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

// typesOf gives the types a schema names.
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

func TestSchemasRefuse(t *testing.T) {
	all := everyTool(t)
	for _, c := range []struct{ name, tool, args string }{
		{"a role without a prompt", "create_role", `{"name":"a"}`},
		{"a role without a name", "create_role", `{"name":"","rolePrompt":""}`},
		{"tool groups that are no list", "create_role", `{"name":"a","rolePrompt":"","toolGroups":"*"}`},
		{"an empty name", "find_role_by_name", `{"name":""}`},
		{"a spawn without brief", "spawn_agent", `{"roleId":"r"}`},
		{"a spawn without role", "spawn_agent", `{"taskBrief":{}}`},
		{"a first message for who gets none", "spawn_agent", `{"roleId":"r","taskBrief":{},"initialMessage":"go"}`},
		{"no first message", "spawn_agent_with_task", `{"roleId":"r","taskBrief":{}}`},
		{"a first message that is null", "spawn_agent_with_task", `{"roleId":"r","taskBrief":{},"initialMessage":null}`},
		{"a first message that is a list", "spawn_agent_with_task", `{"roleId":"r","taskBrief":{},"initialMessage":[]}`},
		{"a collaborator without id", "spawn_agent", `{"roleId":"r","taskBrief":{"collaborators":[{"role":"r"}]}}`},
		{"an end of nobody", "terminate_agent", `{}`},
		{"a message to nobody", "send_message", `{"payload":1}`},
		{"a message without payload", "send_message", `{"to":"a"}`},
		{"a message with a sender", "send_message", `{"to":"a","payload":1,"from":"b"}`},
		{"a message to an empty list", "send_message", `{"to":[],"payload":1}`},
		{"a message to a number", "send_message", `{"to":[1],"payload":1}`},
		{"a message to more than a hundred", "send_message", `{"to":["a"` + strings.Repeat(`,"a"`, 100) + `],"payload":1}`},
		{"a field of a brief nobody knows", "spawn_agent", `{"roleId":"r","taskBrief":{"deadline":"now"}}`},
		{"a delay that is a list", "send_message", `{"to":"a","payload":1,"delayMs":[1]}`},
		{"a property nobody knows", "read_file", `{"path":"a","mode":"r"}`},
		{"an empty path", "read_file", `{"path":""}`},
		{"a negative offset", "read_file", `{"path":"a","offset":-1}`},
		{"a length of nothing", "read_file", `{"path":"a","length":0}`},
		{"a length over a million", "read_file", `{"path":"a","length":1000001}`},
		{"a write without path", "write_file", `{"content":"a"}`},
		{"an empty pattern", "list_files", `{"pattern":""}`},
		{"content that is no text", "write_file", `{"path":"a","content":{"a":1}}`},
		{"an encoding nobody knows", "write_file", `{"path":"a","content":"","encoding":"hex"}`},
		{"an artifact without type", "put_artifact", `{"content":1}`},
		{"a part of nothing", "get_artifact", `{"ref":"a","length":0}`},
		{"a part over a million", "get_artifact", `{"ref":"a","length":1000001}`},
		{"meta that is no object", "put_artifact", `{"type":"a","content":1,"meta":[]}`},
		{"a missing summary", "compress_context", `{}`},
		{"a negative count", "compress_context", `{"summary":"s","keepRecentCount":-1}`},
		{"an empty argv", "run_command", `{"argv":[]}`},
		{"a url of another scheme", "http_request", `{"url":"ftp://example.com/"}`},
		{"a method nobody knows", "http_request", `{"url":"https://example.com/","method":"TRACE"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, err := jsonschema.UnmarshalJSON(strings.NewReader(c.args))
			if err != nil {
				t.Fatal(err)
			}
			if err := compile(t, all[c.tool].Definition().Input).Validate(args); err == nil {
				t.Errorf("%s allows %s", c.tool, c.args)
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
