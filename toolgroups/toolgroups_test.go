package toolgroups_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func Example() {
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	register := func(owner toolgroups.GroupOwner, g toolgroups.Group) {
		switch warning, err := grouptest.RegisterGroup(m, owner, g); {
		case err != nil:
			fmt.Println("refused:", errcode.CodeOf(err))
		case warning != "":
			fmt.Println("replaced:", warning)
		}
	}
	register(toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Command, Tools: stubs("run_command")})
	register("mcp:docs", toolgroups.Group{ID: "docs", Tools: stubs("search", "fetch")})
	register("mcp:docs", toolgroups.Group{ID: toolgroups.Command})
	register("mcp:docs", toolgroups.Group{ID: "docs", Tools: stubs("search")})
	register(toolgroups.Config, toolgroups.Group{ID: "reading", Refs: []string{"search", "run_command"}})

	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("reading")))
	for _, name := range []string{"search", "run_command"} {
		h, _ := s.LookupTool(name)
		fmt.Println(name, h.Group, view.ForState("").HasTool(h))
	}
	// Output:
	// refused: reserved_group_id
	// replaced: duplicate_group_id
	// search docs true
	// run_command command false
}

// stub is a tool that is never called.
type stub struct{ d tool.Definition }

func (s *stub) Definition() tool.Definition { return s.d }

func (s *stub) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errors.New("stub called")
}

const anyObject = `{"type":"object"}`

// stubs returns a stub for each name.
func stubs(names ...string) []tool.Tool {
	list := make([]tool.Tool, len(names))
	for i, name := range names {
		list[i] = &stub{tool.Definition{Name: name, Input: json.RawMessage(anyObject)}}
	}
	return list
}

// toolWithEffect returns a stub with an effect.
func toolWithEffect(name string, effect tool.Effect) tool.Tool {
	return &stub{tool.Definition{Name: name, Input: json.RawMessage(anyObject), Effect: effect}}
}

// toolInStates returns a stub that is visible in the given states.
func toolInStates(name string, states ...string) tool.Tool {
	if states == nil {
		states = []string{}
	}
	return &stub{tool.Definition{Name: name, Input: json.RawMessage(anyObject), States: states}}
}

func register(t testing.TB, m *toolgroups.Manager, owner toolgroups.GroupOwner, g toolgroups.Group) {
	t.Helper()
	if _, err := grouptest.RegisterGroup(m, owner, g); err != nil {
		t.Fatal(err)
	}
}

func lookup(t testing.TB, s *toolgroups.Snapshot, name string) *toolgroups.ToolHandle {
	t.Helper()
	h, ok := s.LookupTool(name)
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	return h
}

func names(list []tool.Definition) []string {
	names := []string{}
	for _, d := range list {
		names = append(names, d.Name)
	}
	return names
}

// wantCode checks the code of an error and that its message contains all texts.
func wantCode(t testing.TB, err error, code errcode.Code, texts ...string) {
	t.Helper()
	if got := errcode.CodeOf(err); got != code {
		t.Fatalf("got code %q (%v), want %q", got, err, code)
	}
	for _, text := range texts {
		if !strings.Contains(errcode.Message(err), text) {
			t.Errorf("got %q, want a message with %q", errcode.Message(err), text)
		}
	}
}

func TestRegister_ChecksNames(t *testing.T) {
	long := func(n int) string { return strings.Repeat("n", n) }
	tests := []struct{ name, id, tool, group string }{ // texts in the error for a tool and for a group; "" if it is accepted
		{"all kinds of characters", "azAZ09_.-", "", ""},
		{"one letter", "a", "", ""},
		{"128 bytes", long(128), "", ""},
		{"129 bytes", long(129), "129 bytes", "129 bytes"},
		{"a hierarchy", "a/b", "U+002F at byte 1", ""},
		{"a hierarchy of 129 bytes", long(64) + "/" + long(64), "129 bytes", "129 bytes"},
		{"empty", "", "empty", "group id is empty"},
		{"empty part", "a//b", "U+002F", "part 2: name is empty"},
		{"leading slash", "/a", "U+002F at byte 0", "part 1: name is empty"},
		{"trailing slash", "a/", "U+002F", "part 2: name is empty"},
		{"trailing space", "read_file ", "U+0020 at byte 9", `group id "read_file " has U+0020 at byte 9`},
		{"leading space", " read_file", "U+0020 at byte 0", "U+0020 at byte 0"},
		{"a new line", "read_file\n", "U+000A", "U+000A"},
		{"a zero byte", "read\x00file", "U+0000", "U+0000"},
		{"a Cyrillic look-alike", "re\u0430d_file", "U+0430 at byte 2", "U+0430 at byte 2"},
		{"a full-width look-alike", "read\uff3ffile", "U+FF3F", "U+FF3F"},
		{"a zero-width joiner", "read\u200dfile", "U+200D", "U+200D"},
		{"a combining accent", "reade\u0301", "U+0301", "U+0301"},
		{"invalid UTF-8", "read\xff", "0xFF", "0xFF"},
		{"the wildcard", "*", "U+002A", "U+002A"},
		{"a colon", "a:b", "U+003A", "U+003A"},
	}
	for _, tt := range tests {
		t.Run("tool/"+tt.name, func(t *testing.T) {
			m := toolgroups.NewManager()
			_, err := grouptest.RegisterGroup(m, "o", toolgroups.Group{ID: "g", Tools: stubs(tt.id)})
			wantRefusal(t, m, err, tt.tool, `"g"`)
		})
		t.Run("group/"+tt.name, func(t *testing.T) {
			m := toolgroups.NewManager()
			_, err := grouptest.RegisterGroup(m, "o", toolgroups.Group{ID: toolgroups.GroupID(tt.id), Tools: stubs("t")})
			wantRefusal(t, m, err, tt.group)
			if check := toolgroups.CheckID(toolgroups.GroupID(tt.id)); (check == nil) != (err == nil) {
				t.Errorf("CheckID returns %v, Register %v", check, err)
			}
		})
	}
}

func wantRefusal(t *testing.T, m *toolgroups.Manager, err error, why string, texts ...string) {
	t.Helper()
	if why == "" {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	wantCode(t, err, errcode.InvalidGroupDef, append(texts, why)...)
	if got := len(m.CurrentSnapshot().ListGroups()) + len(m.CurrentSnapshot().ListTools()); got != 0 {
		t.Errorf("got %d groups and tools after an error, want none", got)
	}
}

func TestReserved_SortedAndBuiltinOnly(t *testing.T) {
	want := []toolgroups.GroupID{"artifact", "command", "console", "context", "network", "org_management", "workspace"}
	if diff := cmp.Diff(toolgroups.ReservedIDs(), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	for _, id := range want {
		for _, owner := range []toolgroups.GroupOwner{"mcp:x", toolgroups.Config} {
			_, err := grouptest.RegisterGroup(m, owner, toolgroups.Group{ID: id, Tools: stubs("t")})
			wantCode(t, err, errcode.ReservedGroupID, string(id))
			_, err = grouptest.RegisterGroup(m, owner, toolgroups.Group{ID: id + "/extra", Tools: stubs("t")})
			wantCode(t, err, errcode.ReservedGroupID, string(id))
			wantCode(t, grouptest.UnregisterGroup(m, owner, id), errcode.CannotUnregisterReserved, string(id))
		}
		register(t, m, toolgroups.Builtin, toolgroups.Group{ID: id})
		wantCode(t, grouptest.UnregisterGroup(m, toolgroups.Builtin, id), errcode.CannotUnregisterReserved, string(id))
		if info, ok := m.CurrentSnapshot().LookupGroup(id); !ok || !info.Reserved {
			t.Errorf("got %+v, %v, want a reserved group", info, ok)
		}
	}
}
