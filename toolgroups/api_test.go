package toolgroups_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// magpie returns the owner of a server, and its group with the tools magpie__tvl and
// magpie__pool-list, and one that is not an API.
func magpie() (toolgroups.GroupOwner, toolgroups.Group) {
	return toolgroups.ServerOwner("magpie"), toolgroups.Group{
		ID: "magpie", Tools: stubs("magpie__tvl", "magpie__pool-list", "magpie__own"),
		APIs: map[string]string{"magpie__tvl": "tvl", "magpie__pool-list": "pool-list", "magpie__none": "none"}, OpenAPIs: true,
	}
}

// A role that lists a tool as server/api has it alone, under the name of the rule. A role
// that holds the group has the tools under their own names.
func TestCompile_ServerAPIs(t *testing.T) {
	m := toolgroups.NewManager()
	owner, group := magpie()
	register(t, m, owner, group)
	register(t, m, "o", toolgroups.Group{ID: "other", Tools: stubs("a")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set", Refs: []string{"magpie__tvl"}})
	s := m.CurrentSnapshot()
	of := func(ids ...toolgroups.GroupID) toolgroups.PinnedSet { return s.PinOwners(toolgroups.SetOf(ids...)) }
	all := s.PinOwners(toolgroups.AllGroups())
	restricted := all
	restricted.Only = owner
	for _, tt := range []struct {
		name   string
		use    toolgroups.PinnedSet
		limits []toolgroups.PinnedSet
		want   string
	}{
		{"one", of("magpie/tvl"), nil, "call_magpie_tvl"},
		{"two", of("magpie/pool-list", "magpie/tvl"), nil, "call_magpie_pool--list call_magpie_tvl"},
		{"the group", of("magpie"), nil, "magpie__tvl magpie__pool-list magpie__own"},
		{"everything", all, nil, "magpie__tvl magpie__pool-list magpie__own a"},
		{"both", of("magpie/tvl", "magpie"), nil, "magpie__tvl magpie__pool-list magpie__own"},
		{"one, and the other by a toolset", of("magpie/tvl", "set", "magpie/pool-list"), nil, "magpie__tvl call_magpie_pool--list"},
		{"an API that the server does not offer", of("magpie/none"), nil, ""},
		{"an API of no server", of("other/a"), nil, ""},
		{"within the group", of("magpie/tvl", "other"), []toolgroups.PinnedSet{of("magpie")}, "call_magpie_tvl"},
		{"within another group", of("magpie/tvl"), []toolgroups.PinnedSet{of("other")}, ""},
		{"the group within one", of("magpie"), []toolgroups.PinnedSet{of("magpie/tvl")}, "magpie__tvl"},
		{"within the server", of("magpie/tvl", "other"), []toolgroups.PinnedSet{restricted}, "call_magpie_tvl"},
		{"one within another", of("magpie/tvl"), []toolgroups.PinnedSet{of("magpie/pool-list")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			view := s.Compile(tt.use, tt.limits...)
			got := strings.Join(view.ToolNames(), " ")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			for _, name := range strings.Fields("magpie__tvl magpie__pool-list magpie__own call_magpie_tvl call_magpie_pool--list a") {
				if allowed := view.ForState("").EvaluateTool(lookup(t, s, name)).Rule == toolgroups.Granted; allowed != strings.Contains(" "+got+" ", " "+name+" ") {
					t.Errorf("%s is allowed: %v, unlike the list", name, allowed)
				}
			}
		})
	}
	if !s.ReachesTool(of("magpie"), lookup(t, s, "call_magpie_tvl")) || !s.ReachesTool(of("magpie/tvl"), lookup(t, s, "magpie__tvl")) || s.ReachesTool(of("magpie/tvl"), lookup(t, s, "magpie__own")) {
		t.Error("a tool is not reached under its other name, or another is")
	}
}

// Groups server/api are found by their ids and are in no list.
func TestSnapshot_ServerAPIs(t *testing.T) {
	m := toolgroups.NewManager()
	owner, group := magpie()
	register(t, m, owner, group)
	s := m.CurrentSnapshot()
	if got := fmt.Sprint(s.GroupIDs(), len(s.ListGroups()), len(s.ListTools())); got != "[magpie] 1 3" {
		t.Errorf("got %s", got)
	}
	info, ok := s.LookupGroup("magpie/tvl")
	if diff := cmp.Diff(info.Tools, []string{"call_magpie_tvl"}); !ok || info.Owner != owner || diff != "" {
		t.Errorf("got %+v", info)
	}
	if info, ok := s.LookupGroup("magpie/none"); !ok || info.Owner != owner || info.Count != 0 {
		t.Errorf("an id of the server: %+v", info)
	}
	for _, id := range []toolgroups.GroupID{"magpie/a/b", "magpie/", "/tvl", "crow/tvl", "magpie/a b"} {
		if s.GroupOwner(id) != "" {
			t.Errorf("the id %q has an owner", id)
		}
	}
	if got := s.ToolDefinitions("magpie/tvl", "nowhere"); len(got) != 1 || got[0].Name != "call_magpie_tvl" || !s.InGroups("call_magpie_tvl", "nowhere", "magpie/tvl") || s.InGroups("call_magpie_tvl", "magpie") {
		t.Errorf("got %+v", got)
	}
	for name, want := range map[string]string{"call_magpie_tvl": "magpie__tvl", "magpie__tvl": "call_magpie_tvl", "magpie__own": ""} {
		if got := lookup(t, s, name).OtherName(); got != want {
			t.Errorf("%s has the other name %q, want %q", name, got, want)
		}
	}
}

// A group server/api comes and goes with the tool. A view that was compiled before does not
// allow its successor.
func TestManager_ServerAPIsFollowTheirTools(t *testing.T) {
	m := toolgroups.NewManager()
	var changes [][]toolgroups.GroupID
	m.WatchGroups(func(ids []toolgroups.GroupID) { changes = append(changes, ids) })
	name, group := magpie()
	owner, err := m.ClaimOwner(name)
	if err != nil {
		t.Fatal(err)
	}
	step := func(fn func() error) *toolgroups.Snapshot {
		t.Helper()
		if err := fn(); err != nil {
			t.Fatal(err)
		}
		return m.CurrentSnapshot()
	}
	s := step(func() error { _, err := owner.RegisterGroup(group); return err })
	pinned := s.PinOwners(toolgroups.SetOf("magpie/tvl"))
	view := s.Compile(pinned)
	s = step(func() error { return owner.ReplaceTools("magpie", stubs("magpie__tvl")) })
	if view.HasTool(lookup(t, s, "call_magpie_tvl")) || strings.Join(s.Compile(pinned).ToolNames(), " ") != "call_magpie_tvl" {
		t.Error("the tool was replaced: the old view has it, or a new one does not")
	}
	s = step(func() error { return owner.ReplaceTools("magpie", stubs("magpie__own")) })
	if _, ok := s.LookupTool("call_magpie_tvl"); ok || len(s.Compile(pinned).ToolNames()) > 0 || s.GroupOwner("magpie/tvl") != name {
		t.Error("the tool was removed: it is found, or its id has no owner")
	}
	s = step(func() error { return owner.UnregisterGroup("magpie") })
	if s.GroupOwner("magpie/tvl") != "" {
		t.Error("the group was removed and the id has an owner")
	}
	want := []toolgroups.GroupID{"magpie", "magpie/pool-list", "magpie/tvl"}
	if diff := cmp.Diff(changes[0], want); diff != "" || len(changes) != 4 {
		t.Errorf("reported changes, got before want:\n%s", diff)
	}
}

// Only modules are servers, and an id or a name that is taken is not given to a second tool.
func TestManager_ServerAPIsTakeNothing(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "early", Tools: stubs("call_magpie_tvl")})
	owner, group := magpie()
	register(t, m, owner, group)
	register(t, m, "plain", toolgroups.Group{ID: "plain", Tools: stubs("b"), APIs: map[string]string{"b": "b"}, OpenAPIs: true})
	register(t, m, owner, toolgroups.Group{ID: "twice", Tools: stubs("again"), APIs: map[string]string{"again": "pool-list"}})
	s := m.CurrentSnapshot()
	if h := lookup(t, s, "call_magpie_tvl"); h.Group != "early" || lookup(t, s, "magpie__tvl").OtherName() != "" || lookup(t, s, "again").OtherName() != "" || s.GroupOwner("plain/b") != "" {
		t.Errorf("a name, an id or a server was given away: %s", h.Group)
	}
	if got := s.Compile(s.PinOwners(toolgroups.SetOf("magpie/tvl"))).ToolNames(); len(got) > 0 {
		t.Errorf("a role has %v by an id that was left out", got)
	}
	o, err := m.ClaimOwner("late")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.RegisterGroup(toolgroups.Group{ID: "late", Tools: []tool.Tool{stubs("call_magpie_pool--list")[0]}}); errcode.CodeOf(err) != errcode.DuplicateToolName {
		t.Errorf("another owner takes the name of an API: %v", err)
	}
	if _, err := o.RegisterGroup(toolgroups.Group{ID: "magpie/pool-list", Tools: stubs("c")}); err != nil {
		t.Fatal(err)
	}
	if s := m.CurrentSnapshot(); len(s.Compile(s.PinOwners(toolgroups.AllGroups()), toolgroups.PinnedSet{Set: toolgroups.SetOf("magpie/pool-list"), Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{"magpie/pool-list": owner}}).ToolNames()) > 0 {
		t.Error("a group of another owner has the id: what was pinned to the server is not inert")
	}
}
