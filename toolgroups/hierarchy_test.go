package toolgroups_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/toolgroups"
)

type groupIDs = []toolgroups.GroupID

// viewOf returns the tools of a role that uses groups, within a limit.
func viewOf(m *toolgroups.Manager, use toolgroups.PinnedSet, limits ...toolgroups.PinnedSet) []string {
	return m.CurrentSnapshot().Compile(use, limits...).ToolNames()
}

func pin(m *toolgroups.Manager, ids ...toolgroups.GroupID) toolgroups.PinnedSet {
	return m.CurrentSnapshot().PinOwners(toolgroups.SetOf(ids...))
}

func checkTools(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestChildren_ParentHoldsThem(t *testing.T) {
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	register(t, m, "ann", toolgroups.Group{ID: "docs", Tools: stubs("top"), Children: groupIDs{"docs/read", "deep"}})
	use := pin(m, "docs")
	checkTools(t, "before the children are registered", viewOf(m, use), "top")

	register(t, m, "ann", toolgroups.Group{ID: "docs/read", Tools: stubs("read"), Prompts: []toolgroups.Prompt{stubPrompt("p")}})
	register(t, m, "ann", toolgroups.Group{ID: "deep", Tools: stubs("deep"), Children: groupIDs{"deeper"}})
	register(t, m, "ann", toolgroups.Group{ID: "deeper", Tools: stubs("deeper")})
	register(t, m, "ann", toolgroups.Group{ID: "docs/write", Tools: stubs("write")})
	checkTools(t, "of the parent", viewOf(m, use), "top", "read", "deep", "deeper")
	checkTools(t, "of groups above each other", viewOf(m, pin(m, "deeper", "deep", "docs")), "deeper", "deep", "top", "read")
	checkTools(t, "of a child", viewOf(m, pin(m, "deep")), "deep", "deeper")
	checkTools(t, "of a child within the parent", viewOf(m, pin(m, "deeper", "docs/write"), use), "deeper")

	s := m.CurrentSnapshot()
	info, _ := s.LookupGroup("docs")
	checkTools(t, "listed", info.Tools, "top", "read", "deep", "deeper")
	checkTools(t, "of the group itself", s.DirectTools("docs"), "top")
	checkTools(t, "of no group", s.DirectTools("none"))
	if !s.InGroups("deeper", "docs") || s.InGroups("write", "docs") {
		t.Error("InGroups differs from the tools of the parent")
	}
	for id, want := range map[toolgroups.GroupID]bool{"docs": true, "docs/read": true, "deeper": true, "docs/write": false, "docs/none": false} {
		if got := s.CoversGroup(use, id); got != want {
			t.Errorf("docs covers %s: %v", id, got)
		}
	}
	view := s.Compile(use)
	checkTools(t, "prompts", promptNames(view.ListPrompts("")), "p")
	h, _ := s.LookupTool("deeper")
	if got := view.GrantingGroup(h); got != "deeper" {
		t.Errorf("granted through %s", got)
	}

	unregister(t, m, "ann", "deep")
	checkTools(t, "after deep was unregistered", viewOf(m, use), "top", "read")
	unregister(t, m, "ann", "docs")
	checkTools(t, "after the parent was unregistered", viewOf(m, use))
	checkTools(t, "the child stays a group", viewOf(m, pin(m, "docs/read")), "read")
}

func unregister(t *testing.T, m *toolgroups.Manager, owner toolgroups.GroupOwner, id toolgroups.GroupID) {
	t.Helper()
	if err := grouptest.UnregisterGroup(m, owner, id); err != nil {
		t.Fatal(err)
	}
}

// A role is pinned to the owner of its groups. If another owner has the parent later, the role
// has neither the parent nor its children.
func TestChildren_OfAnotherOwner(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "ann", toolgroups.Group{ID: "docs", Tools: stubs("top"), Children: groupIDs{"read"}})
	register(t, m, "ann", toolgroups.Group{ID: "read", Tools: stubs("read")})
	use := pin(m, "docs")
	unregister(t, m, "ann", "docs")
	unregister(t, m, "ann", "read")
	register(t, m, "bob", toolgroups.Group{ID: "docs", Tools: stubs("other"), Children: groupIDs{"read"}})
	register(t, m, "bob", toolgroups.Group{ID: "read", Tools: stubs("read")})
	checkTools(t, "of the role of ann's groups", viewOf(m, use))
	if s := m.CurrentSnapshot(); s.CoversGroup(use, "read") || len(s.MissingFrom(use, toolgroups.SetOf("read"))) == 0 {
		t.Error("ann's docs covers bob's read")
	}
}

func TestChildren_ReferencesAndServers(t *testing.T) {
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	register(t, m, toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Command, Tools: stubs("run_command")})
	register(t, m, "module:db", toolgroups.Group{ID: "db", Tools: stubs("query", "update")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "knowledge", Children: groupIDs{"knowledge/read"}})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "knowledge/read", Refs: []string{"query", "run_command"}})
	use := pin(m, "knowledge")
	checkTools(t, "references of a child", viewOf(m, use), "query")
	h, _ := m.CurrentSnapshot().LookupTool("query")
	if got := m.CurrentSnapshot().Compile(use).GrantingGroup(h); got != "knowledge/read" {
		t.Errorf("granted through %q", got)
	}
	use.Only = "module:other"
	checkTools(t, "of another server", viewOf(m, use))
}

func TestRegister_InvalidHierarchies(t *testing.T) {
	many := make(groupIDs, toolgroups.MaxChildren+1)
	for i := range many {
		many[i] = toolgroups.GroupID(fmt.Sprint("c", i))
	}
	for name, c := range map[string]struct {
		owner toolgroups.GroupOwner
		group toolgroups.Group
		code  errcode.Code
		want  string
	}{
		"itself":        {"ann", toolgroups.Group{ID: "x", Children: groupIDs{"x"}}, errcode.InvalidGroupDef, `it names itself as its child`},
		"twice":         {"ann", toolgroups.Group{ID: "x", Children: groupIDs{"y", "y"}}, errcode.InvalidGroupDef, `it names "y" as its child twice`},
		"no id":         {"ann", toolgroups.Group{ID: "x", Children: groupIDs{"a b"}}, errcode.InvalidGroupDef, `child: group id`},
		"too many":      {"ann", toolgroups.Group{ID: "x", Children: many}, errcode.InvalidGroupDef, `names 65 groups as its child; at most 64`},
		"reserved":      {"ann", toolgroups.Group{ID: "x", Children: groupIDs{"command"}}, errcode.ReservedGroupID, `built-in groups are no children`},
		"below one":     {"ann", toolgroups.Group{ID: "x", Children: groupIDs{"command/x"}}, errcode.ReservedGroupID, `built-in groups are no children`},
		"of built-in":   {toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Command, Children: groupIDs{"y"}}, errcode.InvalidGroupDef, `built-in groups have no children`},
		"cycle":         {"ann", toolgroups.Group{ID: "l3", Children: groupIDs{"l1"}}, errcode.InvalidGroupDef, `l1 > l2 > l3 > l1`},
		"too deep":      {"ann", toolgroups.Group{ID: "l8", Children: groupIDs{"l9"}}, errcode.InvalidGroupDef, `more than 8 levels: l1 > l2 > l3 > l4 > l5 > l6 > l7 > l8 > l9`},
		"above":         {"ann", toolgroups.Group{ID: "l0", Children: groupIDs{"l1"}}, errcode.InvalidGroupDef, `more than 8 levels: l0 > l1`},
		"taken child":   {"bob", toolgroups.Group{ID: "x", Children: groupIDs{"l1"}}, errcode.DuplicateGroupID, `its child "l1" belongs to ann`},
		"another's":     {"bob", toolgroups.Group{ID: "l8"}, errcode.DuplicateGroupID, `ann has declared the id as a child of its group "l7"; choose another id`},
		"fallback":      {"ann", toolgroups.Group{ID: "x", Fallback: groupIDs{"x"}}, errcode.InvalidGroupDef, `it names itself as its fallback`},
		"many fallback": {"ann", toolgroups.Group{ID: "x", Fallback: many}, errcode.InvalidGroupDef, `as its fallback; at most 16`},
	} {
		t.Run(name, func(t *testing.T) {
			m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
			for i := 1; i <= 7; i++ {
				register(t, m, "ann", toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprint("l", i)), Children: groupIDs{toolgroups.GroupID(fmt.Sprint("l", i+1))}})
			}
			before := m.CurrentSnapshot()
			_, err := grouptest.RegisterGroup(m, c.owner, c.group)
			if errcode.CodeOf(err) != c.code || !strings.Contains(errcode.Message(err), c.want) {
				t.Errorf("got %v, want %s %s", err, c.code, c.want)
			}
			if m.CurrentSnapshot() != before {
				t.Error("a rejected registration changed the registry")
			}
		})
	}
}

// The views of groups above a changed group are compiled again, through toolsets too.
func TestWatchGroups_ReportsAncestors(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "ann", toolgroups.Group{ID: "top", Children: groupIDs{"middle"}})
	register(t, m, "ann", toolgroups.Group{ID: "middle", Children: groupIDs{"low"}})
	register(t, m, "ann", toolgroups.Group{ID: "low", Refs: []string{"tool"}})
	register(t, m, "ann", toolgroups.Group{ID: "apart"})
	var changed groupIDs
	m.WatchGroups(func(ids []toolgroups.GroupID) { changed = ids })
	check := func(when string, want ...toolgroups.GroupID) {
		t.Helper()
		if !slices.Equal(changed, want) {
			t.Errorf("%s: %v, want %v", when, changed, want)
		}
	}
	register(t, m, "ann", toolgroups.Group{ID: "home", Tools: stubs("tool")})
	check("a referenced tool", "home", "low", "middle", "top")
	unregister(t, m, "ann", "low")
	check("a child is gone", "low", "middle", "top")
	register(t, m, "ann", toolgroups.Group{ID: "low", Tools: stubs("low")})
	check("a child is there", "low", "middle", "top")
	register(t, m, "ann", toolgroups.Group{ID: "middle"})
	check("a child is no child any more", "middle", "top")
	register(t, m, "ann", toolgroups.Group{ID: "low"})
	check("the child alone", "low")
}

func TestReplaceTools_KeepsChildren(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "ann", toolgroups.Group{ID: "docs", Tools: stubs("top"), Children: groupIDs{"read"}, Fallback: groupIDs{"read"}})
	register(t, m, "ann", toolgroups.Group{ID: "read", Tools: stubs("read")})
	if err := grouptest.ReplaceTools(m, "ann", "docs", stubs("new")); err != nil {
		t.Fatal(err)
	}
	checkTools(t, "after the tools were replaced", viewOf(m, pin(m, "docs")), "new", "read")
	if info, _ := m.CurrentSnapshot().LookupGroup("docs"); !slices.Equal(info.Fallback, groupIDs{"read"}) {
		t.Errorf("the fallback is %v", info.Fallback)
	}
}

func TestIntersectSets(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "ann", toolgroups.Group{ID: "docs", Children: groupIDs{"read", "write"}})
	for _, id := range []toolgroups.GroupID{"read", "write", "docs/other"} {
		register(t, m, "ann", toolgroups.Group{ID: id})
	}
	s := m.CurrentSnapshot()
	for _, c := range []struct{ a, b, want string }{
		{"docs", "read", "read"}, {"read", "docs", "read"}, {"docs", "docs", "docs"}, {"read", "write", "-"},
		{"docs", "docs/other", "-"}, {"*", "read", "read"}, {"docs", "*", "docs"}, {"write,unknown", "docs,unknown", "write,unknown"},
		{"docs,read", "read,write", "read,write"},
	} {
		set := func(text string) toolgroups.PinnedSet {
			return s.PinOwners(toolgroups.SetOfNames(strings.Split(text, ",")...))
		}
		if got := s.IntersectSets(set(c.a), set(c.b)).String(); got != c.want {
			t.Errorf("%s and %s: %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

func TestFallbackTools(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "module:docs", toolgroups.Group{ID: "docs", Tools: stubs("search", "fetch"), Children: groupIDs{"docs/read"}, Fallback: groupIDs{"files", "none", "docs/read"}})
	register(t, m, "module:docs", toolgroups.Group{ID: "docs/read", Tools: stubs("read")})
	register(t, m, "ann", toolgroups.Group{ID: "files", Tools: append(stubs("grep", "cat"), toolInStates("edit", "draft"))})
	s := m.CurrentSnapshot()
	fallback := func(use toolgroups.PinnedSet, state, name string, limits ...toolgroups.PinnedSet) []string {
		h, _ := s.LookupTool(name)
		return s.Compile(use, limits...).ForState(state).FallbackTools(s, h)
	}
	checkTools(t, "of the role", fallback(pin(m, "docs", "files"), "", "search"), "grep", "cat", "read")
	checkTools(t, "in the state draft", fallback(pin(m, "docs", "files"), "draft", "search"), "grep", "cat", "edit", "read")
	checkTools(t, "of a tool of a child", fallback(pin(m, "docs", "files"), "", "read"), "grep", "cat")
	checkTools(t, "of a role without files", fallback(pin(m, "docs"), "", "search"), "read")
	checkTools(t, "of a role without docs", fallback(pin(m, "docs/read", "files"), "", "read"))
	checkTools(t, "within a limit", fallback(pin(m, "docs", "files"), "", "search", pin(m, "docs")), "read")
	checkTools(t, "of another tool", fallback(pin(m, "docs", "files"), "", "grep"))
	var zero toolgroups.StateView
	checkTools(t, "of a zero view", zero.FallbackTools(s, nil))
}

func TestFallbackTools_AreBounded(t *testing.T) {
	m := toolgroups.NewManager()
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("t", i))
	}
	register(t, m, "ann", toolgroups.Group{ID: "many", Tools: stubs(names...)})
	register(t, m, "ann", toolgroups.Group{ID: "one", Tools: stubs("one"), Fallback: groupIDs{"many"}})
	s := m.CurrentSnapshot()
	h, _ := s.LookupTool("one")
	if got := s.Compile(pin(m, "one", "many")).ForState("").FallbackTools(s, h); len(got) != toolgroups.MaxFallbackTools {
		t.Errorf("got %v", got)
	}
}

func TestCheckChildren(t *testing.T) {
	children := map[toolgroups.GroupID]groupIDs{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "x": {"y"}, "y": {"x"}}
	of := func(id toolgroups.GroupID) []toolgroups.GroupID { return children[id] }
	if err := toolgroups.CheckChildren(groupIDs{"a", "d"}, of); err != nil {
		t.Error(err)
	}
	if err := toolgroups.CheckChildren(groupIDs{"a", "y"}, of); errcode.CodeOf(err) != errcode.InvalidGroupDef || !strings.Contains(err.Error(), "y > x > y") {
		t.Errorf("got %v", err)
	}
}

func TestIsBuiltinID(t *testing.T) {
	for id, want := range map[toolgroups.GroupID]bool{"command": true, "command/x": true, "commands": false, "x/command": false} {
		if got := toolgroups.IsBuiltinID(id); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// A tool that a group and its child both have is listed once.
func TestChildren_SharedToolIsListedOnce(t *testing.T) {
	f := newHourFixture(t)
	f.must(f.config.RegisterGroup(toolgroups.Group{ID: "desk", Refs: []string{"read", "write"}, Children: []toolgroups.GroupID{"reading"}}))
	info, _ := f.CurrentSnapshot().LookupGroup("desk")
	checkTools(t, "desk", info.Tools, "read", "write")
}

// A set contains a group at all hours if it lists the group, or one above it and no group
// between them has hours.
func TestCoversAlways(t *testing.T) {
	f := newHourFixture(t)
	f.must(f.config.RegisterGroup(toolgroups.Group{ID: "desk", Children: groupIDs{"reading"}, Hours: changeAt, Open: true}))
	f.must(f.config.RegisterGroup(toolgroups.Group{ID: "house", Children: groupIDs{"desk", "shelf"}}))
	f.must(f.config.RegisterGroup(toolgroups.Group{ID: "shelf", Refs: []string{"write"}}))
	s := f.CurrentSnapshot()
	for _, c := range []struct {
		set  string
		id   toolgroups.GroupID
		want bool
	}{
		{"reading", "reading", true}, {"desk", "reading", false}, {"house", "reading", false}, {"house", "shelf", true},
		{"house", "desk", true}, {"shelf", "house", false}, {"desk", "shelf", false}, {"house", "none", false},
	} {
		if got := s.CoversAlways(s.PinOwners(toolgroups.SetOfNames(c.set)), c.id); got != c.want {
			t.Errorf("%s and %s: %t", c.set, c.id, got)
		}
	}
}
