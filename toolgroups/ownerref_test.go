package toolgroups_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/toolgroups"
)

// groupTools lists the tools of a group.
func groupTools(m *toolgroups.Manager, id toolgroups.GroupID) string {
	info, _ := m.CurrentSnapshot().LookupGroup(id)
	return strings.Join(info.Tools, " ")
}

// A reference that is bound to an owner means the tool whenever this owner has it, and never
// the tool of another owner.
func TestRefOwners_OutliveTheTool(t *testing.T) {
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	set := toolgroups.Group{ID: "set", Refs: []string{"late"}, RefOwners: map[string]toolgroups.GroupOwner{"late": "server"}}
	register(t, m, toolgroups.Config, set)
	var changed []toolgroups.GroupID
	m.WatchGroups(func(ids []toolgroups.GroupID) { changed = ids })
	register(t, m, "other", toolgroups.Group{ID: "other", Tools: stubs("late")})
	if got := groupTools(m, "set"); got != "" {
		t.Errorf("the tool of another owner: %s", got)
	}
	if err := grouptest.UnregisterGroup(m, "other", "other"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		register(t, m, "server", toolgroups.Group{ID: "server", Tools: stubs("late")})
		if got := groupTools(m, "set"); got != "late" || !slices.Contains(changed, "set") {
			t.Errorf("the set has %q; changed %v", got, changed)
		}
		if err := grouptest.UnregisterGroup(m, "server", "server"); err != nil {
			t.Fatal(err)
		}
		if got := groupTools(m, "set"); got != "" {
			t.Errorf("after the end of the tool the set has %q", got)
		}
	}
}

// A reference to an owner means all of its tools, also later ones, except those named.
func TestOwnerRefs_FollowTheOwner(t *testing.T) {
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	register(t, m, "server", toolgroups.Group{ID: "z", Tools: stubs("b", "hidden", "a")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set", Tools: stubs("own"), OwnerRefs: []toolgroups.OwnerRef{{Owner: "server", Except: []string{"hidden"}}}})
	var changed []toolgroups.GroupID
	m.WatchGroups(func(ids []toolgroups.GroupID) { changed = ids })
	register(t, m, "server", toolgroups.Group{ID: "a", Tools: stubs("c")})
	if got := groupTools(m, "set"); got != "own b a c" || !slices.Equal(changed, []toolgroups.GroupID{"a", "set"}) {
		t.Errorf("the set has %q; changed %v", got, changed)
	}
	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("set")))
	hidden, _ := s.LookupTool("hidden")
	late, _ := s.LookupTool("c")
	if state := view.ForState(""); state.EvaluateTool(hidden).Rule == toolgroups.Granted || state.EvaluateTool(late).Rule != toolgroups.Granted {
		t.Error("the view differs from the group")
	}
	if err := grouptest.ReplaceTools(m, toolgroups.Config, "set", stubs("new")); err != nil {
		t.Fatal(err)
	}
	if got := groupTools(m, "set"); got != "new b a c" {
		t.Errorf("after a change of its own tools the set has %q", got)
	}
}

// Only the configuration refers to tools of other owners, and never to built-in ones.
func TestOwnerRefs_AreBounded(t *testing.T) {
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	register(t, m, toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Workspace, Tools: stubs("read_file")})
	register(t, m, "server", toolgroups.Group{ID: "server", Tools: stubs("a")})
	refs := []toolgroups.OwnerRef{{Owner: toolgroups.Builtin}, {Owner: "server"}}
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set", OwnerRefs: refs})
	register(t, m, "thief", toolgroups.Group{ID: "stolen", OwnerRefs: refs})
	if set, stolen := groupTools(m, "set"), groupTools(m, "stolen"); set != "a" || stolen != "" {
		t.Errorf("the configuration has %q, a module %q", set, stolen)
	}
}

// BenchmarkCompile_OwnerRefs compiles a view of a group that references all tools of one of
// 10,000 owners.
func BenchmarkCompile_OwnerRefs(b *testing.B) {
	m := toolgroups.NewManager()
	err := m.Update(func(tx *toolgroups.Tx) error {
		for i := range 10_000 {
			owner, err := m.ClaimOwner(toolgroups.GroupOwner(fmt.Sprint("server", i)))
			if err != nil {
				return err
			}
			if _, err := tx.RegisterGroup(owner, toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprint("g", i)), Tools: stubs(fmt.Sprint("t", i))}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := grouptest.RegisterGroup(m, toolgroups.Config, toolgroups.Group{ID: "set", OwnerRefs: []toolgroups.OwnerRef{{Owner: "server7"}}}); err != nil {
		b.Fatal(err)
	}
	s := m.CurrentSnapshot()
	set := s.PinOwners(toolgroups.SetOf("set"))
	for b.Loop() {
		if names := s.Compile(set).ToolNames(); len(names) != 1 {
			b.Fatal(names)
		}
	}
}

func TestOwnerRef_Equal(t *testing.T) {
	a := toolgroups.OwnerRef{Owner: "module:m", Except: []string{"x"}}
	for _, other := range []toolgroups.OwnerRef{{Owner: "module:n", Except: []string{"x"}}, {Owner: "module:m"}, {Owner: "module:m", Except: []string{"y"}}} {
		if a.Equal(other) {
			t.Errorf("%+v equals %+v", a, other)
		}
	}
	if !a.Equal(toolgroups.OwnerRef{Owner: "module:m", Except: []string{"x"}}) {
		t.Error("a reference does not equal itself")
	}
}
