package toolgroups_test

import (
	"testing"

	"github.com/rolecall/rolecall/toolgroups"
)

// declare replaces the declared groups.
func declare(t *testing.T, m *toolgroups.Manager, owners map[toolgroups.GroupID]toolgroups.GroupOwner) {
	t.Helper()
	err := m.UpdateWith(func(c toolgroups.Change) error { c.Publish(); return nil }, func(tx *toolgroups.Tx) error {
		tx.DeclareGroups(owners)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A declared group is known and pinned to its owner; it has no tools. A registration by
// another owner counts more, and the next declaration replaces the last.
func TestDeclareGroups(t *testing.T) {
	m := toolgroups.NewManager()
	declare(t, m, map[toolgroups.GroupID]toolgroups.GroupOwner{"web": "module:web"})
	register(t, m, "o", toolgroups.Group{ID: "other", Tools: stubs("a")}) // keeps the declaration
	s := m.CurrentSnapshot()
	pinned := s.PinOwners(toolgroups.SetOf("web", "nowhere"))
	if len(pinned.Owners) != 1 || pinned.Owners["web"] != "module:web" || s.KnownOwner("web") != "module:web" || s.GroupOwner("web") != "" {
		t.Errorf("pinned to %v", pinned.Owners)
	}
	for id, want := range map[toolgroups.GroupID]toolgroups.GroupOwner{"web/page": "module:web", "web/": "", "other/page": "", "web/a/b": ""} {
		if got := s.KnownOwner(id); got != want {
			t.Errorf("%s is known as one of %q, want %q", id, got, want)
		}
	}
	if !s.KnowsServer("web") || s.KnowsServer("o") || len(s.ListGroups()) != 1 || len(s.Compile(pinned).ToolNames()) != 0 {
		t.Errorf("groups %+v", s.ListGroups())
	}
	register(t, m, "module:thief", toolgroups.Group{ID: "web", Tools: stubs("b")})
	s = m.CurrentSnapshot()
	if s.KnownOwner("web") != "module:thief" || !s.KnowsServer("thief") || len(s.Compile(pinned).ToolNames()) != 0 {
		t.Errorf("the owner is %q", s.KnownOwner("web"))
	}
	declare(t, m, nil)
	if s := m.CurrentSnapshot(); s.KnowsServer("web") || s.KnownOwner("web") != "module:thief" {
		t.Error("the declaration stays")
	}
}

func TestSnapshot_ReachesGroup(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "module:web", toolgroups.Group{ID: "web", Tools: stubs("a")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "empty"})
	s := m.CurrentSnapshot()
	all := toolgroups.PinnedSet{Set: toolgroups.AllGroups()}
	web, other := all, all
	web.Only, other.Only = "module:web", "module:other"
	for _, tt := range []struct {
		set  toolgroups.PinnedSet
		id   toolgroups.GroupID
		want bool
	}{{all, "web", true}, {all, "empty", true}, {all, "nowhere", false}, {web, "web", true}, {web, "empty", false}, {other, "web", false}, {s.PinOwners(toolgroups.SetOf("empty")), "web", false}} {
		if got := s.ReachesGroup(tt.set, tt.id); got != tt.want {
			t.Errorf("%+v reaches %s: %v", tt.set, tt.id, got)
		}
	}
}
