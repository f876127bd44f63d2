package toolgroups_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// readableTools returns tools: those whose names begin with "get" are ReadOnly.
func readableTools(names ...string) (list []tool.Tool) {
	for i, name := range names {
		effect := []tool.Effect{tool.Mutating, tool.Idempotent}[i%2]
		if strings.HasPrefix(name, "get") {
			effect = tool.ReadOnly
		}
		list = append(list, toolWithEffect(name, effect))
	}
	return list
}

// newReadable returns a registry with groups of which some tools only read.
func newReadable(t *testing.T) *toolgroups.Manager {
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	register(t, m, toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Workspace, Tools: readableTools("get_file", "write_file")})
	register(t, m, toolgroups.ServerOwner("magpie"), toolgroups.Group{
		ID: "magpie", Tools: readableTools("magpie__swap", "get_pool"), APIs: map[string]string{"magpie__swap": "swap", "get_pool": "pool"}, OpenAPIs: true,
	})
	register(t, m, toolgroups.ServerOwner("untrusted"), toolgroups.Group{ID: "untrusted", Tools: stubs("get_it")})
	for _, g := range []toolgroups.Group{
		{ID: "docs", Tools: readableTools("get_doc", "put_doc"), Children: groupIDs{"archive", "tool_set"}, Prompts: []toolgroups.Prompt{stubPrompt("summary")}},
		{ID: "archive", Tools: readableTools("drop_box", "get_box", "move_box"), Fallback: groupIDs{"docs"}},
		{ID: "tool_set", Refs: []string{"get_pool", "magpie__swap"}},
		{ID: "night", Refs: []string{"get_pool", "put_doc"}, Hours: changeAt},
		{ID: "day", Refs: []string{"get_pool", "put_doc"}, Hours: changeAt, Open: true},
	} {
		register(t, m, toolgroups.Config, g)
	}
	return m
}

// The read part of a group has its ReadOnly tools, and those of its children. A tool without an
// effect is none of them.
func TestReadPart_HasReadOnlyToolsAlone(t *testing.T) {
	m := newReadable(t)
	s := m.CurrentSnapshot()
	for set, want := range map[toolgroups.GroupID][]string{
		"docs:read": {"get_doc", "get_box", "get_pool"}, "archive:read": {"get_box"}, "tool_set:read": {"get_pool"}, "workspace:read": {"get_file"},
		"magpie:read": {"get_pool"}, "magpie/pool:read": {"call_magpie_pool"}, "magpie/swap:read": {}, "untrusted:read": {},
		"night:read": {}, "day:read": {"get_pool"}, "unknown:read": {}, ":read": {}, "docs:write": {}, "docs:read:read": {}, "*:read": {},
	} {
		view := s.Compile(pin(m, set))
		if diff := cmp.Diff(names(view.ListableTools()), want); diff != "" {
			t.Errorf("%s, got before want:\n%s", set, diff)
		}
		if got := names(s.ToolDefinitions(set)); !slices.Equal(got, want) {
			t.Errorf("%s has the definitions %v, want %v", set, got, want)
		}
		if len(view.ListPrompts("")) > 0 {
			t.Errorf("%s has prompts", set)
		}
		for _, h := range s.ListTools() {
			callable := view.ForState("").EvaluateTool(h).Rule == toolgroups.Granted
			if visible := slices.Contains(view.ForState("").ToolNames(), h.Definition.Name); callable != visible || callable && h.Definition.Effect != tool.ReadOnly {
				t.Errorf("%s: %s is visible %t and callable %t", set, h.Definition.Name, visible, callable)
			}
		}
	}
}

// A read part is found by its id, and is in no list of groups.
func TestReadPart_IsFoundByItsID(t *testing.T) {
	m := newReadable(t)
	s := m.CurrentSnapshot()
	info, ok := s.LookupGroup("docs:read")
	if !ok || info.ID != "docs:read" || info.Owner != toolgroups.Config || info.Count != 3 || !slices.Equal(info.Children, groupIDs{"archive:read", "tool_set:read"}) {
		t.Errorf("the read part is %+v, %v", info, ok)
	}
	if slices.ContainsFunc(s.GroupIDs(), func(id toolgroups.GroupID) bool { return id == "docs:read" }) {
		t.Error("the read part is listed")
	}
	if whole, _ := s.LookupGroup("docs"); !slices.Equal(whole.Children, groupIDs{"archive", "tool_set"}) {
		t.Errorf("the group itself has the children %v", whole.Children)
	}
	view := s.Compile(pin(m, "docs:read"))
	if got := view.GrantingGroup(lookup(t, s, "get_doc")); got != "docs:read" {
		t.Errorf("get_doc is allowed through %q", got)
	}
	only := pin(m, "docs:read")
	only.Only = toolgroups.ServerOwner("magpie")
	if !s.ReachesGroup(only, "docs:read") || s.ReachesGroup(only, "docs") || s.ReachesGroup(only, "archive:read") {
		t.Error("ReachesGroup differs")
	}
	if got := s.AllTools("night:read"); len(got) != 1 || got[0].Definition.Name != "get_pool" {
		t.Errorf("while it is open, night:read has %v", got)
	}
	if closed, ok := s.FindClosed(pin(m, "night:read"), lookup(t, s, "get_pool")); !ok || closed.ID != "night:read" {
		t.Errorf("the closed group is %v, %v", closed.ID, ok)
	}
	if _, ok := s.FindClosed(pin(m, "night:read"), lookup(t, s, "put_doc")); ok {
		t.Error("a read part would have put_doc while it is open")
	}
}

// A tool that is registered again with another effect leaves the read part with that change. A
// View that was compiled before does not have the new tool.
func TestReadPart_FollowsTheEffect(t *testing.T) {
	m := newReadable(t)
	var changed []toolgroups.GroupID
	m.WatchGroups(func(ids []toolgroups.GroupID) { changed = ids })
	held := pin(m, "docs:read")
	before := m.CurrentSnapshot().Compile(held)
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "archive", Tools: []tool.Tool{toolWithEffect("get_box", tool.Mutating), toolWithEffect("drop_box", tool.ReadOnly)}})
	s := m.CurrentSnapshot()
	after := s.Compile(held)
	if got := after.ToolNames(); !slices.Equal(got, []string{"get_doc", "drop_box", "get_pool"}) {
		t.Errorf("after the change it has %v", got)
	}
	if h := lookup(t, s, "get_box"); before.HasTool(h) || after.HasTool(h) {
		t.Error("the read part has a tool that is not ReadOnly")
	}
	if !slices.Contains(changed, "docs") { // Views of docs:read are found by the id of the group
		t.Errorf("the change of a child is reported as one of %v", changed)
	}
}

// A limit of a read part leaves the tools that only read, and a role with a read part keeps them
// below a limit of the whole group.
func TestReadPart_AsLimit(t *testing.T) {
	m := newReadable(t)
	s := m.CurrentSnapshot()
	for _, tt := range []struct {
		use, limit toolgroups.PinnedSet
		want       []string
	}{
		{pin(m, "docs"), pin(m, "archive:read"), []string{"get_box"}},
		{pin(m, "archive:read"), pin(m, "docs"), []string{"get_box"}},
		{pin(m, "docs:read"), pin(m, "archive"), []string{"get_box"}},
		{s.PinOwners(toolgroups.AllGroups()), pin(m, "workspace:read"), []string{"get_file"}},
		{pin(m, "magpie"), pin(m, "magpie/pool:read"), []string{"get_pool"}},
	} {
		if got := s.Compile(tt.use, tt.limit).ToolNames(); !slices.Equal(got, tt.want) {
			t.Errorf("%v within %v: %v, want %v", tt.use.Set, tt.limit.Set, got, tt.want)
		}
	}
	fallback := func(limit toolgroups.GroupID) []string {
		return s.Compile(pin(m, "docs:read"), pin(m, limit)).ForState("").FallbackTools(s, lookup(t, s, "get_box"))
	}
	if got := fallback("docs"); !slices.Equal(got, []string{"get_doc", "get_pool"}) {
		t.Errorf("the fallback of a read part is %v", got)
	}
	if got := fallback("tool_set"); got != nil {
		t.Errorf("the fallback of a group that a limit excludes is %v", got)
	}
}

// A group covers its read part, and those of the groups below it. A read part covers no group.
func TestReadPart_IsCovered(t *testing.T) {
	m := newReadable(t)
	declare(t, m, map[toolgroups.GroupID]toolgroups.GroupOwner{"away": "server"})
	s := m.CurrentSnapshot()
	away := toolgroups.PinnedSet{Set: toolgroups.SetOf("away"), Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{"away": "server"}}
	for _, tt := range []struct {
		set     toolgroups.PinnedSet
		id      toolgroups.GroupID
		missing bool
		always  bool
		both    string // the intersection with the set of id
	}{
		{pin(m, "docs"), "docs:read", false, true, "docs:read"},
		{pin(m, "docs:read"), "docs", true, false, "docs:read"},
		{pin(m, "docs:read"), "docs:read", false, true, "docs:read"},
		{pin(m, "docs"), "archive:read", false, true, "archive:read"},
		{pin(m, "docs:read"), "archive:read", false, true, "archive:read"},
		{pin(m, "docs:read"), "archive", true, false, "archive:read"},
		{pin(m, "archive:read"), "docs", true, false, "archive:read"},
		{pin(m, "archive"), "docs:read", true, false, "archive:read"},
		{pin(m, "magpie/pool"), "magpie/pool:read", false, true, "magpie/pool:read"},
		{pin(m, "magpie/pool"), "magpie:read", true, false, "-"},
		{pin(m, "night"), "night:read", false, true, "night:read"},
		{away, "away:read", false, true, "away:read"},
	} {
		if got := len(s.MissingFrom(tt.set, toolgroups.SetOf(tt.id))) > 0; got != tt.missing {
			t.Errorf("%s is missing from %v: %t", tt.id, tt.set.Set, got)
		}
		if got := s.CoversGroup(tt.set, tt.id); tt.id != "away:read" && got == tt.missing {
			t.Errorf("%v covers %s: %t", tt.set.Set, tt.id, got)
		}
		if got := s.CoversAlways(tt.set, tt.id); got != tt.always {
			t.Errorf("%v covers %s at all hours: %t", tt.set.Set, tt.id, got)
		}
		if got := s.IntersectSets(tt.set, pin(m, tt.id)).String(); got != tt.both {
			t.Errorf("%v and %s have %s in common, want %s", tt.set.Set, tt.id, got, tt.both)
		}
	}
	if got := s.KnownOwner("away:read"); got != "server" {
		t.Errorf("the owner of a declared read part is %q", got)
	}
	other := toolgroups.PinnedSet{Set: toolgroups.SetOf("docs"), Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{"docs": "other"}}
	if s.CoversGroup(other, "docs:read") || len(s.Compile(pin(m, "docs:read"), other).ToolNames()) > 0 {
		t.Error("a group of another owner covers the read part")
	}
}

// The ids of sets are those of groups and of their read parts.
func TestCheckListedID(t *testing.T) {
	for id, ok := range map[toolgroups.GroupID]bool{
		"docs": true, "docs:read": true, "lab/one:read": true, "docs:write": false, "docs:read:read": false, ":read": false, "*:read": false, "docs:read/x": false, "docs:READ": false,
	} {
		if err := toolgroups.CheckListedID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
		if _, reads := id.WholeGroup(); reads && toolgroups.CheckID(id) == nil {
			t.Errorf("a group may have the id %q", id)
		}
	}
	for held, want := range map[toolgroups.GroupID]toolgroups.GroupID{"docs": "docs", "docs:read": "docs:read", "other": ""} {
		if got, ok := toolgroups.WholeOrRead("docs", func(id toolgroups.GroupID) bool { return id == held }); got != want || ok != (want != "") {
			t.Errorf("of %s the first part of docs is %q, %t", held, got, ok)
		}
	}
	if toolgroups.GroupID("docs:read").ReadPart() != "docs:read" {
		t.Error("the read part of a read part is not itself")
	}
	if err := toolgroups.CheckID("docs:read"); errcode.CodeOf(err) != errcode.InvalidGroupDef || !strings.Contains(err.Error(), `":read" is reserved`) {
		t.Errorf("%v", err)
	}
}
