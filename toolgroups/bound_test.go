package toolgroups_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// payTools returns the tools pay, with a shorter schema for models, and note.
func payTools(t *testing.T) []tool.Tool {
	t.Helper()
	schema := json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"number"}}}`)
	pay, err := tool.New("pay", "", func(context.Context, struct{}) (string, error) { return "", nil }, &tool.Options{Input: schema, Shown: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	return append(stubs("note"), pay)
}

// parsed returns the Bind with this text.
func parsed(t *testing.T, text string) bounds.Bind {
	t.Helper()
	b, err := bounds.ParseBind([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A View has the rules of all sets, each once. It has no tool whose rules surely let nothing
// through.
func TestCompile_Bounds(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "bank", Tools: payTools(t)})
	s := m.CurrentSnapshot()
	use := s.PinOwners(toolgroups.SetOf("bank"))
	limit := func(text string) toolgroups.PinnedSet {
		return toolgroups.PinnedSet{Set: toolgroups.AllGroups(), Bind: parsed(t, text)}
	}
	for _, c := range []struct {
		binds []string
		tools string
		rules int // of pay
	}{
		{nil, "note pay", 0},
		{[]string{`{"pay": {"/to": {"equal": "a"}}}`}, "note pay", 1},
		{[]string{`{"pay": {"/to": {"equal": "a"}}}`, `{"pay": {"/to": { "equal": "a"}}}`}, "note pay", 1},
		{[]string{`{"pay": {"/to": {"equal": "a"}}}`, `{"pay": {"/to": {"glob": "a*"}}}`}, "note pay", 2},
		{[]string{`{"pay": {"/to": {"equal": "a"}}}`, `{"pay": {"/to": {"equal": "b"}}}`}, "note", 0},
		{[]string{`{"other": {"/to": {"equal": "a"}}}`}, "note pay", 0},
	} {
		var limits []toolgroups.PinnedSet
		for _, text := range c.binds {
			limits = append(limits, limit(text))
		}
		v := s.Compile(use, limits...)
		if got := strings.Join(v.ToolNames(), " "); got != c.tools {
			t.Errorf("%v: tools %s, want %s", c.binds, got, c.tools)
		}
		h := lookup(t, s, "pay")
		if got := v.ForState("").EvaluateTool(h).ToolChecks(h); len(got) != c.rules {
			t.Errorf("%v: %d rules, want %d", c.binds, len(got), c.rules)
		}
	}
	rule := `{"pay": {"/to": {"equal": "a"}}}`
	if got := s.Compile(use, limit(rule)).ToolBounds(); len(got) != 1 || len(got["pay"]) != 1 {
		t.Errorf("bounds by tool: %v", got)
	}
	if (toolgroups.PinnedSet{Set: toolgroups.AllGroups(), Bind: parsed(t, `{"pay": {"/to": {"equal": "a"}}}`)}).IsAll() {
		t.Error("a set with bounds contains all tools with any arguments")
	}
	if !(toolgroups.PinnedSet{Set: toolgroups.AllGroups()}).IsAll() || new(toolgroups.Evaluation).ToolChecks(lookup(t, s, "pay")) != nil {
		t.Error("without bounds")
	}
}

// Models and clients read the fixed values in the schema, in the shorter one too.
func TestCompile_ShowsFixedValues(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "bank", Tools: payTools(t)})
	s := m.CurrentSnapshot()
	use := s.PinOwners(toolgroups.SetOf("bank"))
	use.Bind = parsed(t, `{"pay": {"/to": {"equal": "a"}, "/amount": {"max": 7}}}`)
	v := s.Compile(use)
	for _, d := range append(v.ForState("").ToolDefinitions(), v.ListableTools()...) {
		if d.Name == "pay" && (!strings.Contains(string(d.Input), `"maximum":7`) || !strings.Contains(string(d.Input), `"const":"a"`) || !strings.Contains(string(d.Shown), `"const":"a"`)) {
			t.Errorf("got %s and %s", d.Input, d.Shown)
		}
	}
	if h := lookup(t, s, "pay"); strings.Contains(string(h.Definition.Input), "const") {
		t.Error("the registered definition was changed")
	}
	if text := string(v.ForState("").ToolJSON()); !strings.Contains(text, `"const":"a"`) {
		t.Errorf("got %s", text)
	}
}

// A rule for one name of a tool holds for its other name.
func TestCompile_BoundsBothNames(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, toolgroups.ServerOwner("web"), toolgroups.Group{ID: "web", Tools: payTools(t), APIs: map[string]string{"pay": "pay"}})
	s := m.CurrentSnapshot()
	for _, name := range []string{"pay", "call_web_pay"} {
		for _, group := range []toolgroups.GroupID{"web", "web/pay"} {
			use := s.PinOwners(toolgroups.SetOf(group))
			use.Bind = bounds.Bind{name: parsed(t, `{"x": {"/to": {"equal": "a"}}}`)["x"]}
			v := s.Compile(use)
			found := 0
			for _, h := range s.ListTools() {
				found += len(v.ToolChecks(h))
			}
			if api, ok := s.LookupTool("call_web_pay"); ok && group == "web/pay" {
				found = len(v.ToolChecks(api))
			}
			if found != 1 {
				t.Errorf("bound on %s, group %s: %d rules", name, group, found)
			}
		}
	}
}
