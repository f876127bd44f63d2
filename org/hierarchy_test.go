package org_test

import (
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// newHierarchyFixture returns a fixture with a group kb of the operator and its children read
// and write, each with one tool. kb/other is not declared as a child.
func newHierarchyFixture(t *testing.T) *fixture {
	f := newFixture(t)
	f.registerChildren("kb", "read", "write")
	f.register(toolgroups.Config, "read", "kb_read")
	f.register(toolgroups.Config, "write", "kb_write")
	f.register(toolgroups.Config, "kb/other", "kb_other")
	return f
}

// registerChildren registers a group of the operator without tools of its own.
func (f *fixture) registerChildren(id toolgroups.GroupID, children ...toolgroups.GroupID) {
	f.t.Helper()
	if _, err := grouptest.RegisterGroup(f.groups, toolgroups.Config, toolgroups.Group{ID: id, Children: children}); err != nil {
		f.t.Fatal(err)
	}
}

// A role that may grant a group may grant its children, and nothing else.
func TestHierarchy_GrantCoversChildren(t *testing.T) {
	f := newHierarchyFixture(t)
	boss := f.role(operator, org.RoleSpec{Use: of(toolgroups.OrgManagement), Grant: of(toolgroups.OrgManagement, "kb")})
	agent := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	wantSet(t, f.GrantableGroups(agent), "org_management,kb")

	reader := f.role(identity.ByAgent(agent), org.RoleSpec{Name: "reader", Use: of("read")})
	worker := f.spawn(agent, reader.ID)
	f.wantTools(worker, "kb_read")
	helper := f.role(operator, org.RoleSpec{Name: "helper", Use: of("write")})
	f.wantTools(f.spawn(agent, helper.ID), "kb_write")
	f.wantTools(f.spawn(agent, f.role(identity.ByAgent(agent), org.RoleSpec{Use: of("kb")}).ID), "kb_read", "kb_write")
	seen := f.VisibleRole(agent, helper)
	wantSet(t, seen.Use, "write")

	for _, id := range []toolgroups.GroupID{"kb/other", "kb/none", "workspace"} {
		if _, err := f.create(identity.ByAgent(agent), org.RoleSpec{Name: "more", Use: of(id)}); errcode.CodeOf(err) != errcode.InsufficientPermissions {
			t.Errorf("a role with %s: %v", id, err)
		}
	}
	narrow := f.role(identity.ByAgent(agent), org.RoleSpec{Name: "narrow", Use: of(toolgroups.OrgManagement, "read")})
	below := f.spawn(agent, narrow.ID)
	if _, err := f.create(identity.ByAgent(below), org.RoleSpec{Name: "wide", Use: of("kb")}); errcode.CodeOf(err) != errcode.InsufficientPermissions {
		t.Errorf("a child grants its parent: %v", err)
	}
}

// A change of the hierarchy takes effect at once, and advances the epoch.
func TestHierarchy_ChangesAtOnce(t *testing.T) {
	f := newHierarchyFixture(t)
	boss := f.role(operator, org.RoleSpec{Use: of(toolgroups.OrgManagement), Grant: of("kb")})
	user := f.role(operator, org.RoleSpec{Name: "keeper", Use: of("kb")})
	root := f.task(org.TaskSpec{})
	lead, all := f.spawn(root, boss.ID), f.spawn(root, user.ID)
	made := f.spawn(lead, f.role(identity.ByAgent(lead), org.RoleSpec{Name: "made", Use: of("read")}).ID)
	f.wantTools(made, "kb_read")

	before := f.CurrentEpoch()
	f.registerChildren("kb", "write")
	if f.CurrentEpoch() <= before {
		t.Error("the epoch did not advance")
	}
	f.wantTools(all, "kb_write")
	f.wantTools(made) // its creator may not grant read any more

	f.registerChildren("kb", "write", "read", "later")
	f.wantTools(made, "kb_read")
	f.register(toolgroups.Config, "later", "kb_later")
	f.wantTools(all, "kb_later", "kb_read", "kb_write")
	if err := grouptest.UnregisterGroup(f.groups, toolgroups.Config, "kb"); err != nil {
		t.Fatal(err)
	}
	f.wantTools(all)
	f.wantTools(made)
}

// A narrowing of a grant to a child takes the other children away from roles below.
func TestHierarchy_NarrowedGrant(t *testing.T) {
	f := newHierarchyFixture(t)
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of(toolgroups.OrgManagement), Grant: of("kb")})
	lead := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	made := f.spawn(lead, f.role(identity.ByAgent(lead), org.RoleSpec{Name: "made", Use: of("kb")}).ID)
	f.wantTools(made, "kb_read", "kb_write")
	f.update(boss.ID, org.RoleSpec{Grant: of("write")})
	f.wantTools(made, "kb_write")
	wantSet(t, f.role(identity.ByAgent(lead), org.RoleSpec{Name: "default"}).Use, "write")
}

// The groups of a task are within those of its caller: a child of them is, another group not.
func TestHierarchy_TaskGroups(t *testing.T) {
	f := newHierarchyFixture(t)
	clerk := f.role(operator, org.RoleSpec{Name: "clerk", Use: of("kb")})
	caller := identity.ByCaller("bob", clerk.ID)
	worker := f.role(operator, org.RoleSpec{Name: "worker", Use: of("read")})
	root := f.task(org.TaskSpec{Caller: caller, Groups: of("read")})
	f.wantTools(f.spawn(root, worker.ID), "kb_read")
	wantSet(t, f.GrantableGroups(root), "read")
	if _, _, _, err := f.StartTask("other", org.TaskSpec{Caller: caller, Groups: of("kb/other")}); errcode.CodeOf(err) != errcode.InsufficientPermissions {
		t.Errorf("a task with kb/other: %v", err)
	}
	f.reopen()
	f.registerChildren("kb", "write")
	f.wantTools(f.spawn(f.task(org.TaskSpec{}), worker.ID), "kb_read")
	if _, _, _, err := f.StartTask("late", org.TaskSpec{Caller: caller, Groups: of("read")}); errcode.CodeOf(err) != errcode.InsufficientPermissions {
		t.Errorf("a task with a group that is no child any more: %v", err)
	}
}
