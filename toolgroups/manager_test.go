package toolgroups_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// After RegisterGroup the group is present with its id, description and tool count, and
// all of its tools are in it. After UnregisterGroup the group and its tools are gone.
func TestManager_RegisterAndUnregister(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
		id := toolgroups.GroupID(randomName(r, 20, "x"))
		var tools []string
		for i := range 1 + r.IntN(10) {
			tools = append(tools, fmt.Sprintf("%s%d", randomName(r, 30, ""), i))
		}
		description := strings.Repeat("é", r.IntN(100))
		warning, err := grouptest.RegisterGroup(m, "o", toolgroups.Group{ID: id, Description: description, Tools: stubs(tools...)})
		if err != nil || warning != "" {
			t.Fatalf("seed %d: got %q, %v", seed, warning, err)
		}
		s := m.CurrentSnapshot()
		info, ok := s.LookupGroup(id)
		info.RegisteredAt = time.Time{}
		if diff := cmp.Diff(info, toolgroups.GroupInfo{ID: id, Description: description, Owner: "o", Tools: tools, Count: len(tools)}); !ok || diff != "" {
			t.Errorf("seed %d, got before want:\n%s", seed, diff)
		}
		for _, name := range tools {
			if g, ok := s.GroupOf(name); !ok || g != id {
				t.Errorf("seed %d: tool %s is in %q, %v, want %q", seed, name, g, ok, id)
			}
		}
		if err := grouptest.UnregisterGroup(m, "o", id); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s = m.CurrentSnapshot()
		if _, ok := s.LookupGroup(id); ok || len(s.ListGroups()) != 0 || len(s.GroupIDs()) != 0 || s.GroupOwner(id) != "" {
			t.Errorf("seed %d: group %s is still there", seed, id)
		}
		for _, name := range tools {
			if g, ok := s.GroupOf(name); ok || g != "" {
				t.Errorf("seed %d: tool %s is still in %q", seed, name, g)
			}
		}
		wantCode(t, grouptest.UnregisterGroup(m, "o", id), errcode.GroupNotFound, string(id))
	}
}

// randomName returns prefix and 1 to n characters of ^[a-z][a-z0-9_]*$. A prefix makes
// it different from the built-in ids.
func randomName(r *rand.Rand, n int, prefix string) string {
	const first, rest = "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz0123456789_"
	b := []byte{first[r.IntN(len(first))]}
	for range r.IntN(n) {
		b = append(b, rest[r.IntN(len(rest))])
	}
	return prefix + string(b)
}

func TestRegister_RejectsInvalidGroups(t *testing.T) {
	other := toolgroups.Group{ID: "theirs", Tools: stubs("their_tool")}
	mine := toolgroups.Group{ID: "mine", Description: "before", Tools: stubs("a", "b")}
	schema := func(text string) []tool.Tool {
		return []tool.Tool{&stub{tool.Definition{Name: "c", Input: json.RawMessage(text)}}}
	}
	tests := []struct {
		name  string
		owner toolgroups.GroupOwner
		group toolgroups.Group
		code  errcode.Code
		text  string
	}{
		{"id of another owner", "o", toolgroups.Group{ID: "theirs", Tools: stubs("c")}, errcode.DuplicateGroupID, "belongs to p"},
		{"tool name of another owner", "o", toolgroups.Group{ID: "mine", Tools: stubs("c", "their_tool")}, errcode.DuplicateToolName, `"their_tool" belongs to group "theirs" of p`},
		{"tool name of another group of the same owner", "o", toolgroups.Group{ID: "more", Tools: stubs("a")}, errcode.DuplicateToolName, `group "mine" of o`},
		{"two tools with one name", "o", toolgroups.Group{ID: "mine", Tools: stubs("c", "c")}, errcode.DuplicateToolName, `two tools named "c"`},
		{"nil tool", "o", toolgroups.Group{ID: "mine", Tools: []tool.Tool{nil}}, errcode.InvalidGroupDef, "tool 0: tool is nil"},
		{"no owner", "", toolgroups.Group{ID: "more"}, errcode.InvalidGroupDef, "the name is missing"},
		{"no schema", "o", toolgroups.Group{ID: "mine", Tools: schema(``)}, errcode.InvalidGroupDef, `input schema of "c"`},
		{"schema of a string", "o", toolgroups.Group{ID: "mine", Tools: schema(`{"type":"string"}`)}, errcode.InvalidGroupDef, `want "object"`},
		{"schema with a reference to a file", "o", toolgroups.Group{ID: "mine", Tools: schema(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`)}, errcode.InvalidGroupDef, "leaves the schema"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := toolgroups.NewManager()
			register(t, m, "p", other)
			register(t, m, "o", mine)
			before, want := m.CurrentSnapshot(), render(m.CurrentSnapshot())
			warning, err := grouptest.RegisterGroup(m, tt.owner, tt.group)
			wantCode(t, err, tt.code, tt.text)
			if warning != "" || m.CurrentSnapshot() != before {
				t.Errorf("got warning %q, or a new snapshot", warning)
			}
			if diff := cmp.Diff(render(m.CurrentSnapshot()), want); diff != "" {
				t.Errorf("the registry changed, got before want:\n%s", diff)
			}
		})
	}
}

// render returns everything that a Snapshot contains, as text.
func render(s *toolgroups.Snapshot) string {
	all := s.Compile(s.PinOwners(toolgroups.AllGroups())).ForState("")
	data, err := json.MarshalIndent(map[string]any{
		"groups": s.ListGroups(), "ids": s.GroupIDs(), "definitions": s.ToolDefinitions(s.GroupIDs()...), "tools": names(definitions(s.ListTools())), "view": string(all.ToolJSON()),
	}, "", " ")
	if err != nil {
		panic(err)
	}
	return string(data)
}

func definitions(handles []*toolgroups.ToolHandle) []tool.Definition {
	var list []tool.Definition
	for _, h := range handles {
		list = append(list, h.Definition)
	}
	return list
}

func TestRegister_SameOwnerReplacesGroup(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Description: "old", Tools: stubs("a", "b")})
	register(t, m, "o", toolgroups.Group{ID: "h", Tools: stubs("c")})
	warning, err := grouptest.RegisterGroup(m, "o", toolgroups.Group{ID: "g", Description: "new", Tools: stubs("b", "d")})
	if warning != errcode.DuplicateGroupID || err != nil {
		t.Fatalf("got %q, %v, want the warning duplicate_group_id", warning, err)
	}
	s := m.CurrentSnapshot()
	info, _ := s.LookupGroup("g")
	if diff := cmp.Diff(info.Tools, []string{"b", "d"}); diff != "" || info.Description != "new" {
		t.Errorf("got %q with\n%s", info.Description, diff)
	}
	if _, ok := s.LookupTool("a"); ok {
		t.Error("a tool of the replaced group is still registered")
	}
	if diff := cmp.Diff(s.GroupIDs(), ids{"g", "h"}); diff != "" {
		t.Errorf("the order of first registration, got before want:\n%s", diff)
	}
	register(t, m, "p", toolgroups.Group{ID: "k", Tools: stubs("a")}) // the name is free again
}

func TestManager_Update(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "other", Tools: stubs("x")})
	register(t, m, "o", toolgroups.Group{ID: "g", Description: "kept", Tools: stubs("a"), Refs: []string{"x"}})
	if err := grouptest.ReplaceTools(m, "o", "g", stubs("b", "c")); err != nil {
		t.Fatal(err)
	}
	info, _ := m.CurrentSnapshot().LookupGroup("g")
	if diff := cmp.Diff(info.Tools, []string{"b", "c", "x"}); diff != "" || info.Description != "kept" {
		t.Errorf("got %q with\n%s", info.Description, diff)
	}
	wantCode(t, grouptest.ReplaceTools(m, "o", "nowhere", stubs("d")), errcode.GroupNotFound, "nowhere")
	wantCode(t, grouptest.ReplaceTools(m, "p", "g", stubs("d")), errcode.GroupNotFound, "p has no group")
	wantCode(t, grouptest.ReplaceTools(m, "o", "g", stubs("x")), errcode.DuplicateToolName)
	wantCode(t, grouptest.ReplaceTools(m, "o", "g", stubs("d ")), errcode.InvalidGroupDef)
}

// hookedTool is a tool that calls hook in Definition.
type hookedTool struct {
	stub
	hook func()
}

func (h *hookedTool) Definition() tool.Definition { h.hook(); return h.d }

func TestUpdate_DoesNotRestoreRemovedGroup(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	late := &hookedTool{stub: *stubs("b")[0].(*stub), hook: func() {
		if err := grouptest.UnregisterGroup(m, "o", "g"); err != nil {
			t.Error(err)
		}
	}}
	wantCode(t, grouptest.ReplaceTools(m, "o", "g", []tool.Tool{late}), errcode.GroupNotFound)
	if got := m.CurrentSnapshot().GroupIDs(); len(got) != 0 {
		t.Errorf("got groups %v, want none", got)
	}
}

func TestUnregister_RejectsOtherOwner(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	wantCode(t, grouptest.UnregisterGroup(m, "p", "g"), errcode.GroupNotFound, `p has no group`)
	if m.CurrentSnapshot().GroupOwner("g") != "o" {
		t.Error("the group is gone")
	}
}

// Groups has one entry for each id, with all fields, sorted by id.
func TestSnapshot_GroupsSorted(t *testing.T) {
	m := toolgroups.NewManager("zz")
	register(t, m, "o", toolgroups.Group{ID: "b", Tools: stubs("t1", "t0")})
	register(t, m, "o", toolgroups.Group{ID: "a", Description: "first"})
	register(t, m, toolgroups.Builtin, toolgroups.Group{ID: "zz"})
	register(t, m, "o", toolgroups.Group{ID: "a", Description: "again"})
	list := m.CurrentSnapshot().ListGroups()
	for i := range list {
		if list[i].RegisteredAt.IsZero() || list[i].RegisteredAt.Location() != time.UTC {
			t.Errorf("%s was registered at %v", list[i].ID, list[i].RegisteredAt)
		}
		list[i].RegisteredAt = time.Time{}
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	const at = `"registeredAt":"0001-01-01T00:00:00Z"`
	want := `[{"id":"a","description":"again","owner":"o","tools":[],"toolCount":0,"isReserved":false,` + at + `},` +
		`{"id":"b","description":"","owner":"o","tools":["t1","t0"],"toolCount":2,"isReserved":false,` + at + `},` +
		`{"id":"zz","description":"","owner":"builtin","tools":[],"toolCount":0,"isReserved":true,` + at + `}]`
	if diff := cmp.Diff(string(data), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if diff := cmp.Diff(m.CurrentSnapshot().GroupIDs(), ids{"b", "a", "zz"}); diff != "" {
		t.Errorf("order of registration, got before want:\n%s", diff)
	}
	if _, ok := m.CurrentSnapshot().LookupGroup("c"); ok {
		t.Error("got a group c that was not registered")
	}
}

func TestSnapshot_Queries(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g2", Tools: stubs("c", "b")})
	register(t, m, "o", toolgroups.Group{ID: "g1", Tools: stubs("a")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set", Refs: []string{"a", "nowhere", "a", "c"}, Tools: stubs("d")})
	s := m.CurrentSnapshot()
	t.Run("Definitions", func(t *testing.T) {
		tests := []struct {
			ids  ids
			want []string
		}{
			{ids{"g2"}, []string{"c", "b"}},
			{ids{"g2", "g2"}, []string{"c", "b"}},
			{ids{"g1", "g2"}, []string{"a", "c", "b"}},
			{ids{"nowhere"}, []string{}},
			{nil, []string{}},
			{ids{"nowhere", "g1", "*", "G1"}, []string{"a"}},
			{ids{"set", "g2"}, []string{"d", "a", "c", "b"}},
			{s.GroupIDs(), []string{"c", "b", "a", "d"}},
		}
		for _, tt := range tests {
			if diff := cmp.Diff(names(s.ToolDefinitions(tt.ids...)), tt.want); diff != "" {
				t.Errorf("%v, got before want:\n%s", tt.ids, diff)
			}
		}
	})
	t.Run("InGroups", func(t *testing.T) {
		tests := []struct {
			tool string
			ids  ids
			want bool
		}{
			{"a", ids{"g1"}, true},
			{"a", ids{"g2", "g1"}, true},
			{"a", ids{"set"}, true},
			{"c", ids{"g1"}, false},
			{"c", ids{"g2"}, true},
			{"b", ids{"set"}, false},
			{"a", nil, false},
			{"a", ids{"nowhere", "*", ""}, false},
			{"nowhere", ids{"g1", "g2", "set"}, false},
			{"A", ids{"g1"}, false},
		}
		for _, tt := range tests {
			if got := s.InGroups(tt.tool, tt.ids...); got != tt.want {
				t.Errorf("InGroups(%q, %v) is %v", tt.tool, tt.ids, got)
			}
		}
	})
	t.Run("Tools", func(t *testing.T) {
		if diff := cmp.Diff(names(definitions(s.ListTools())), []string{"a", "b", "c", "d"}); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
	})
	t.Run("empty registry", func(t *testing.T) {
		s := toolgroups.NewManager().CurrentSnapshot()
		if got := len(s.ListGroups()) + len(s.ListTools()) + len(s.GroupIDs()) + len(s.ToolDefinitions("g")); got != 0 {
			t.Errorf("got %d things", got)
		}
		if _, ok := s.GroupOf("a"); ok {
			t.Error("an empty registry has a tool")
		}
	})
}

func TestSnapshot_Toolsets(t *testing.T) {
	tests := []struct {
		name  string
		owner toolgroups.GroupOwner
		refs  []string
		want  []string
	}{
		{"configuration references other owners", toolgroups.Config, []string{"theirs", "mine", "configured"}, []string{"theirs", "mine", "configured"}},
		{"configuration cannot reference a reserved group", toolgroups.Config, []string{"run_command", "theirs"}, []string{"theirs"}},
		{"module references its own tools", "o", []string{"mine"}, []string{"mine"}},
		{"module cannot reference other owners", "o", []string{"theirs", "run_command", "configured", "mine"}, []string{"mine"}},
		{"built-in group references its own tools", toolgroups.Builtin, []string{"run_command", "theirs"}, []string{"run_command"}},
		{"unknown names have no effect", toolgroups.Config, []string{"later", "", "*"}, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := toolgroups.NewManager(toolgroups.Command)
			register(t, m, toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Command, Tools: stubs("run_command")})
			register(t, m, "o", toolgroups.Group{ID: "my", Tools: stubs("mine")})
			register(t, m, "p", toolgroups.Group{ID: "their", Tools: stubs("theirs")})
			register(t, m, toolgroups.Config, toolgroups.Group{ID: "own", Tools: stubs("configured")})
			register(t, m, tt.owner, toolgroups.Group{ID: "set", Refs: tt.refs})
			s := m.CurrentSnapshot()
			if diff := cmp.Diff(names(s.ToolDefinitions("set")), tt.want); diff != "" {
				t.Errorf("definitions, got before want:\n%s", diff)
			}
			b := s.PinOwners(toolgroups.SetOf("set"))
			if diff := cmp.Diff(names(s.Compile(b).ForState("").ToolDefinitions()), tt.want); diff != "" {
				t.Errorf("view, got before want:\n%s", diff)
			}
			for _, h := range s.ListTools() {
				if got, want := s.ReachesTool(b, h), slices.Contains(tt.want, h.Definition.Name); got != want {
					t.Errorf("reaches %s: got %v, want %v", h.Definition.Name, got, want)
				}
			}
		})
	}
}

func TestWatch_ReportsGroupsAndReferencingToolsets(t *testing.T) {
	m := toolgroups.NewManager()
	var reported []ids
	m.WatchGroups(func(changed []toolgroups.GroupID) {
		if _, ok := m.CurrentSnapshot().LookupGroup(changed[0]); !ok && len(reported) < 4 {
			t.Errorf("%v was reported before it was published", changed)
		}
		reported = append(reported, changed)
	})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set", Refs: []string{"a"}})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set2", Refs: []string{"b", "a"}})
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	register(t, m, "o", toolgroups.Group{ID: "h", Tools: stubs("c")})
	if err := grouptest.UnregisterGroup(m, toolgroups.Config, "set"); err != nil {
		t.Fatal(err)
	}
	if err := grouptest.UnregisterGroup(m, "o", "g"); err != nil {
		t.Fatal(err)
	}
	_, _ = grouptest.RegisterGroup(m, "p", toolgroups.Group{ID: "h"}) // rejected, so not reported
	if diff := cmp.Diff(reported, []ids{{"set"}, {"set2"}, {"g", "set", "set2"}, {"h"}, {"set"}, {"g", "set2"}}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

func TestSnapshot_Immutable(t *testing.T) {
	m := toolgroups.NewManager()
	input, states, refs := json.RawMessage(anyObject), []string{"s"}, []string{"a"}
	own := []tool.Tool{&stub{tool.Definition{Name: "a", Input: input}}, &stub{tool.Definition{Name: "b", Input: json.RawMessage(anyObject), States: states}}}
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: own})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set", Refs: refs})
	s, want := m.CurrentSnapshot(), render(m.CurrentSnapshot())

	t.Run("registry changes", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			id := toolgroups.GroupID(fmt.Sprintf("g%d", r.IntN(20)))
			if _, ok := m.CurrentSnapshot().LookupGroup(id); ok && r.IntN(2) == 0 {
				_ = grouptest.UnregisterGroup(m, "o", id)
			} else {
				register(t, m, "o", toolgroups.Group{ID: id, Tools: stubs(string(id)+"x", string(id)+"y")})
			}
		}
		_ = grouptest.UnregisterGroup(m, "o", "g")
	})
	t.Run("owner changes its slices", func(t *testing.T) {
		copy(input, `["type":"OBJECT"]`)
		states[0], refs[0], own[0] = "other", "b", own[1]
	})
	t.Run("reader changes returned slices", func(t *testing.T) {
		s.GroupIDs()[0], s.ListGroups()[0].Tools[0] = "changed", "changed"
		info, _ := s.LookupGroup("g")
		info.Tools[0] = "changed"
		s.ToolDefinitions("g")[0].Name = "changed"
	})
	if diff := cmp.Diff(render(s), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

// A tool that is registered again with the same schema keeps the compiled schema. A
// different schema is compiled.
func TestRegister_ReusesCompiledSchema(t *testing.T) {
	m := toolgroups.NewManager()
	schemaOf := func(input string) *argschema.Schema {
		t.Helper()
		register(t, m, "o", toolgroups.Group{ID: "g", Tools: []tool.Tool{&stub{tool.Definition{Name: "a", Input: json.RawMessage(input)}}}})
		h, _ := m.CurrentSnapshot().LookupTool("a")
		return h.Schema
	}
	first := schemaOf(`{"type":"object"}`)
	if schemaOf(`{"type":"object"}`) != first {
		t.Error("the same schema was compiled again")
	}
	other := schemaOf(`{"type":"object","required":["x"]}`)
	if other == first || other.Validate(json.RawMessage(`{}`)) == nil {
		t.Error("another schema was not compiled")
	}
}
