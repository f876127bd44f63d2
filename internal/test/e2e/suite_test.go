package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var operator = identity.ByOperator("e2e")

// newRuntime returns a runtime on a temporary store, without a model.
func newRuntime(t *testing.T) *runtime.Runtime {
	t.Helper()
	store, err := persist.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: store, Groups: groups,
		Model: func(string) (model.Model, error) { return nil, errors.New("no model in this test") }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

// newRole creates a role that may use the groups.
func newRole(t *testing.T, rt *runtime.Runtime, name string, groups ...toolgroups.GroupID) identity.RoleID {
	t.Helper()
	use := toolgroups.SetOf(groups...)
	role, err := rt.CreateRole(t.Context(), tool.Call{By: operator}, org.RoleSpec{Name: name, Use: &use})
	if err != nil {
		t.Fatal(err)
	}
	return role.ID
}

// suiteTools is the group of tools that the conformance suite calls.
type suiteTools struct {
	rt    *runtime.Runtime
	tools []tool.Tool
	extra tool.Tool // added and removed by test_trigger_tool_change
}

const suiteGroup = toolgroups.GroupID("suite")

// newSuiteTools registers the group. It omits tools whose results a Result cannot
// express (images, audio, resources) and tools that ask the client.
func newSuiteTools(t *testing.T, rt *runtime.Runtime) *suiteTools {
	t.Helper()
	s := &suiteTools{rt: rt}
	s.tools = []tool.Tool{
		suiteTool(t, "test_simple_text", nil, fixedText("This is a simple text response for testing.")),
		suiteTool(t, "test_error_handling", nil, func(context.Context, noArgs) (string, error) {
			return "", errcode.New(errcode.ToolExecutionFailed, "This tool intentionally returns an error for testing")
		}),
		suiteTool(t, "test_tool_with_progress", nil, reportSteps),
		suiteTool(t, "test_streaming_elicitation", nil, reportSteps),
		suiteTool(t, "test_logging_tool", nil, fixedText("nothing was logged")),
		suiteTool(t, "test_trigger_tool_change", nil, s.changeTools),
		suiteTool(t, "json_schema_2020_12_tool", schema202012, func(context.Context, map[string]any) (string, error) { return "ok", nil }),
	}
	s.extra = suiteTool(t, "test_extra", nil, fixedText("temporary"))
	if err := s.register(s.tools); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *suiteTools) register(tools []tool.Tool) error {
	_, err := grouptest.RegisterGroup(s.rt.GroupManager(), "suite", toolgroups.Group{ID: suiteGroup, Tools: tools})
	return err
}

// changeTools adds a tool and removes it again.
func (s *suiteTools) changeTools(context.Context, noArgs) (string, error) {
	if err := s.register(append(s.tools[:len(s.tools):len(s.tools)], s.extra)); err != nil {
		return "", err
	}
	return "changed twice", s.register(s.tools)
}

type noArgs struct{}

func suiteTool[In any](t *testing.T, name string, input json.RawMessage, fn func(context.Context, In) (string, error)) tool.Tool {
	t.Helper()
	made, err := tool.New(name, "A tool of the conformance suite.", fn, &tool.Options{Input: input})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func fixedText(text string) func(context.Context, noArgs) (string, error) {
	return func(context.Context, noArgs) (string, error) { return text, nil }
}

func reportSteps(ctx context.Context, _ noArgs) (string, error) {
	for _, done := range []float64{0, 50, 100} {
		tool.ReportProgress(ctx, tool.Progress{Done: done, Total: 100})
	}
	return "done", nil
}

// schema202012 is the schema that the suite looks for in a list of tools.
var schema202012 = json.RawMessage(`{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`)
