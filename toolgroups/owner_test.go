package toolgroups_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// An owner's name has no rights: only the value that was claimed does.
func TestOwner_CannotBeMadeFromName(t *testing.T) {
	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	builtin, err := m.ClaimOwner(toolgroups.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := builtin.RegisterGroup(toolgroups.Group{ID: toolgroups.Console, Tools: stubs("console_print")}); err != nil {
		t.Fatal(err)
	}
	_, err = m.ClaimOwner(toolgroups.Builtin)
	wantCode(t, err, errcode.Conflict, "claimed already")
	before := m.CurrentSnapshot()
	others, err := toolgroups.NewManager().ClaimOwner(toolgroups.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*toolgroups.Owner{"nil": nil, "zero": {}, "of another registry": others} {
		err := m.Update(func(tx *toolgroups.Tx) error {
			_, err := tx.RegisterGroup(o, toolgroups.Group{ID: toolgroups.Console, Tools: stubs("evil")})
			return err
		})
		wantCode(t, err, errcode.InvalidGroupDef, "was not claimed")
		wantCode(t, m.Update(func(tx *toolgroups.Tx) error { return tx.UnregisterGroup(o, "g") }), errcode.InvalidGroupDef)
		if m.CurrentSnapshot() != before {
			t.Errorf("an owner that is %s changed the registry", name)
		}
	}
	_, err = (&toolgroups.Owner{}).RegisterGroup(toolgroups.Group{ID: "g"})
	wantCode(t, err, errcode.InvalidGroupDef)
}

// Of any number of claims of one name at once, exactly one succeeds.
func TestClaimOwner_OnceFromManyGoroutines(t *testing.T) {
	m := toolgroups.NewManager()
	var claimed atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := m.ClaimOwner("docs"); err == nil {
				claimed.Add(1)
			}
		})
	}
	all.Wait()
	if claimed.Load() != 1 {
		t.Errorf("%d of 16 claims succeeded, want 1", claimed.Load())
	}
}

func TestOwner_ReleasedChangesNothing(t *testing.T) {
	m := toolgroups.NewManager()
	first, err := m.ClaimOwner("docs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.RegisterGroup(toolgroups.Group{ID: "docs", Tools: stubs("a")}); err != nil {
		t.Fatal(err)
	}
	first.Release()
	_, err = first.RegisterGroup(toolgroups.Group{ID: "docs", Tools: stubs("b")})
	wantCode(t, err, errcode.InvalidGroupDef, "was released")
	next, err := m.ClaimOwner("docs")
	if err != nil {
		t.Fatal(err)
	}
	first.Release() // the claim is not its own any more
	if warning, err := next.RegisterGroup(toolgroups.Group{ID: "docs", Tools: stubs("b")}); err != nil || warning != errcode.DuplicateGroupID {
		t.Errorf("the next owner of the name: warning %q, %v", warning, err)
	}
}

// All registrations of one Update become visible together, in whatever order they are
// made: tools move between groups, and groups between owners.
func TestUpdate_MovesToolsAndGroupsAtOnce(t *testing.T) {
	m := toolgroups.NewManager()
	a, b := claim(t, m, "a"), claim(t, m, "b")
	for o, g := range map[*toolgroups.Owner]toolgroups.Group{a: {ID: "one", Tools: stubs("x", "y")}, b: {ID: "two", Tools: stubs("z")}} {
		if _, err := o.RegisterGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	changes := 0
	m.WatchGroups(func([]toolgroups.GroupID) { changes++ })
	err := m.Update(func(tx *toolgroups.Tx) error {
		_, err1 := tx.RegisterGroup(b, toolgroups.Group{ID: "one", Tools: stubs("x")})
		_, err2 := tx.RegisterGroup(a, toolgroups.Group{ID: "three", Tools: stubs("y", "z"), Refs: []string{"x"}})
		return errors.Join(err1, err2, tx.UnregisterGroup(a, "one"), tx.UnregisterGroup(b, "two"))
	})
	if err != nil {
		t.Fatal(err)
	}
	s := m.CurrentSnapshot()
	if got := render(s); changes != 1 || s.GroupOwner("one") != "b" || s.GroupOwner("two") != "" || len(s.ListTools()) != 3 {
		t.Errorf("after %d changes:\n%s", changes, got)
	}
}

// An Update that fails in any of its parts changes nothing, and the indexes that it took
// are used again.
func TestUpdate_FailureChangesNothing(t *testing.T) {
	broken := errors.New("broken")
	for name, fn := range map[string]func(tx *toolgroups.Tx, a, b *toolgroups.Owner) error{
		"the function fails": func(tx *toolgroups.Tx, a, _ *toolgroups.Owner) error {
			_, err := tx.RegisterGroup(a, toolgroups.Group{ID: "one"})
			return errors.Join(err, broken)
		},
		"a tool name is in two groups": func(tx *toolgroups.Tx, a, b *toolgroups.Owner) error {
			_, err1 := tx.RegisterGroup(a, toolgroups.Group{ID: "new", Tools: stubs("n")})
			_, err2 := tx.RegisterGroup(b, toolgroups.Group{ID: "newer", Tools: stubs("n")})
			return errors.Join(err1, err2)
		},
		"a tool name belongs to another group": func(tx *toolgroups.Tx, _, b *toolgroups.Owner) error {
			_, err := tx.RegisterGroup(b, toolgroups.Group{ID: "new", Tools: stubs("x")})
			return err
		},
		"the id belongs to another owner": func(tx *toolgroups.Tx, _, b *toolgroups.Owner) error {
			_, err := tx.RegisterGroup(b, toolgroups.Group{ID: "one"})
			return err
		},
		"two owners take one id": func(tx *toolgroups.Tx, a, b *toolgroups.Owner) error {
			_, err1 := tx.RegisterGroup(a, toolgroups.Group{ID: "new"})
			_, err2 := tx.RegisterGroup(b, toolgroups.Group{ID: "new"})
			return errors.Join(err1, err2)
		},
		"the commit fails": func(tx *toolgroups.Tx, a, _ *toolgroups.Owner) error {
			_, err := tx.RegisterGroup(a, toolgroups.Group{ID: "one", Tools: stubs("v", "w")})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := toolgroups.NewManager()
			a, b := claim(t, m, "a"), claim(t, m, "b")
			if _, err := a.RegisterGroup(toolgroups.Group{ID: "one", Tools: stubs("x", "y")}); err != nil {
				t.Fatal(err)
			}
			before := m.CurrentSnapshot()
			if name == "the commit fails" {
				m.SetCommit(func(toolgroups.Change) error { return broken })
			}
			if err := m.Update(func(tx *toolgroups.Tx) error { return fn(tx, a, b) }); err == nil || m.CurrentSnapshot() != before {
				t.Errorf("%v; the registry is the same: %t", err, m.CurrentSnapshot() == before)
			}
		})
	}
}

func claim(t *testing.T, m *toolgroups.Manager, name toolgroups.GroupOwner) *toolgroups.Owner {
	t.Helper()
	o, err := m.ClaimOwner(name)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The last call for a group of an Update counts.
func TestTx_LastChangeOfGroupCounts(t *testing.T) {
	m := toolgroups.NewManager()
	o := claim(t, m, "o")
	if o.Name() != "o" {
		t.Errorf("the owner is named %s", o.Name())
	}
	err := m.Update(func(tx *toolgroups.Tx) error {
		_, err1 := tx.RegisterGroup(o, toolgroups.Group{ID: "a", Tools: stubs("x", "y")})
		_, err2 := tx.RegisterGroup(o, toolgroups.Group{ID: "b", Tools: stubs("z")})
		warning, err3 := tx.RegisterGroup(o, toolgroups.Group{ID: "a", Tools: stubs("x")})
		_, hasX := tx.LookupTool("x")
		_, hasY := tx.LookupTool("y")
		if warning != errcode.DuplicateGroupID || !hasX || hasY {
			t.Errorf("warning %q, x %t, y %t", warning, hasX, hasY)
		}
		return errors.Join(err1, err2, err3, tx.UnregisterGroup(o, "b"))
	})
	if got := m.CurrentSnapshot().ListTools(); err != nil || len(got) != 1 || got[0].Definition.Name != "x" {
		t.Errorf("tools %v, %v", got, err)
	}
}

// An Update without changes publishes nothing. UpdateWith calls the commit function all
// the same.
func TestUpdate_WithoutChanges(t *testing.T) {
	m := toolgroups.NewManager()
	before, nothing := m.CurrentSnapshot(), func(*toolgroups.Tx) error { return nil }
	m.WatchGroups(func([]toolgroups.GroupID) { t.Error("a watcher was called") })
	if err := m.Update(nothing); err != nil || m.CurrentSnapshot() != before {
		t.Errorf("the registry changed, %v", err)
	}
	called := false
	err := m.UpdateWith(func(c toolgroups.Change) error { called = true; return nil }, nothing)
	if err != nil || !called {
		t.Errorf("the commit function was called: %t, %v", called, err)
	}
}

// A change that another one overtakes is checked against the registry as it is then.
func TestUpdate_ChecksRegistryThatChangedMeanwhile(t *testing.T) {
	m := toolgroups.NewManager()
	o, other := claim(t, m, "o"), claim(t, m, "other")
	if _, err := o.RegisterGroup(toolgroups.Group{ID: "g", Tools: stubs("a")}); err != nil {
		t.Fatal(err)
	}
	err := m.Update(func(tx *toolgroups.Tx) error {
		return errors.Join(tx.UnregisterGroup(o, "g"), o.UnregisterGroup("g"))
	})
	wantCode(t, err, errcode.GroupNotFound, "o has no group")
	err = m.Update(func(tx *toolgroups.Tx) error {
		_, err := tx.RegisterGroup(o, toolgroups.Group{ID: "new", Tools: stubs("b")})
		_, taken := other.RegisterGroup(toolgroups.Group{ID: "new"})
		return errors.Join(err, taken)
	})
	wantCode(t, err, errcode.DuplicateGroupID, "belongs to other")
	wantCode(t, o.ReplaceTools("new", nil), errcode.GroupNotFound)
}

// A reference to a tool that the same change removes is bound to the owner that the tool
// had: the owner may register it again.
func TestTx_BindsReferenceToRemovedTool(t *testing.T) {
	m := toolgroups.NewManager()
	o := claim(t, m, "o")
	for _, g := range []toolgroups.Group{{ID: "set", Tools: stubs("x")}, {ID: "set", Refs: []string{"x"}}, {ID: "g", Tools: stubs("x")}} {
		if _, err := o.RegisterGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	if !m.CurrentSnapshot().InGroups("x", "set") {
		t.Error("the reference has no effect")
	}
}
