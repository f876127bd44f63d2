package org_test

import (
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// newLibrary returns a fixture with the group lib, whose tool lib_get only reads, and its parent
// city, which has lib alone.
func newLibrary(t *testing.T) *fixture {
	f := newFixture(t)
	f.registerLibrary(tool.ReadOnly)
	f.registerChildren("city", "lib")
	return f
}

// registerLibrary registers lib with an effect of lib_get.
func (f *fixture) registerLibrary(effect tool.Effect) {
	f.t.Helper()
	var tools []tool.Tool
	for name, effect := range map[string]tool.Effect{"lib_get": effect, "lib_put": tool.Mutating} {
		one, err := tool.New(name, "", noop, &tool.Options{Effect: effect})
		if err != nil {
			f.t.Fatal(err)
		}
		tools = append(tools, one)
	}
	if _, err := grouptest.RegisterGroup(f.groups, toolgroups.Config, toolgroups.Group{ID: "lib", Tools: tools}); err != nil {
		f.t.Fatal(err)
	}
}

// A role that may grant a group may grant its read part. A role that may grant the read part may
// not grant the group.
func TestReadPart_GrantClosure(t *testing.T) {
	f := newLibrary(t)
	root := f.task(org.TaskSpec{})
	boss := f.spawn(root, f.role(operator, org.RoleSpec{Name: "boss", Use: of(toolgroups.OrgManagement), Grant: of(toolgroups.OrgManagement, "city")}).ID)
	for _, id := range []toolgroups.GroupID{"lib:read", "city:read"} {
		f.wantTools(f.spawn(boss, f.role(identity.ByAgent(boss), org.RoleSpec{Use: of(id)}).ID), "lib_get")
	}
	lead := f.spawn(boss, f.role(identity.ByAgent(boss), org.RoleSpec{Name: "lead", Use: of(toolgroups.OrgManagement), Grant: of(toolgroups.OrgManagement, "city:read")}).ID)
	wantSet(t, f.GrantableGroups(lead), "org_management,city:read")
	f.wantTools(f.spawn(lead, f.role(identity.ByAgent(lead), org.RoleSpec{Use: of("lib:read")}).ID), "lib_get")
	for _, id := range []toolgroups.GroupID{"lib", "city", "workspace:read", "*"} {
		_, err := f.create(identity.ByAgent(lead), org.RoleSpec{Name: "more", Use: of(id)})
		wantCode(t, err, errcode.InsufficientPermissions, "you may grant")
	}
	for _, id := range []toolgroups.GroupID{"lib:write", "lib:read:read", "nothing:read"} {
		if _, err := f.create(operator, org.RoleSpec{Name: "odd", Use: of(id)}); err == nil {
			t.Errorf("a role uses %s", id)
		}
	}
	whole := f.role(operator, org.RoleSpec{Name: "whole", Use: of("lib"), Grant: of()})
	if _, err := f.trySpawn(lead, whole.ID); errcode.CodeOf(err) != errcode.InsufficientPermissions {
		t.Errorf("an agent that may grant lib:read spawns one with lib: %v", err)
	}
	wantSet(t, f.VisibleRole(lead, whole).Use, "-")
	clerk := f.spawn(boss, f.role(identity.ByAgent(boss), org.RoleSpec{Name: "clerk", Use: of(toolgroups.OrgManagement), Grant: of(toolgroups.OrgManagement, "lib:read")}).ID)
	_, err := f.create(identity.ByAgent(clerk), org.RoleSpec{Name: "more", Use: of("lib")})
	wantCode(t, err, errcode.InsufficientPermissions, "you may grant lib:read, org_management")
}

// A tool that stops being ReadOnly leaves the read parts that roles hold, at once and after a
// restart. Roles that hold the group keep it.
func TestReadPart_FollowsTheEffect(t *testing.T) {
	f := newLibrary(t)
	root := f.task(org.TaskSpec{})
	reader := f.spawn(root, f.role(operator, org.RoleSpec{Name: "reader", Use: of("city:read")}).ID)
	writer := f.spawn(root, f.role(operator, org.RoleSpec{Name: "writer", Use: of("city")}).ID)
	f.wantTools(reader, "lib_get")
	f.wantTools(writer, "lib_get", "lib_put")
	f.registerLibrary(tool.Idempotent)
	f.wantTools(reader)
	f.wantTools(writer, "lib_get", "lib_put")
	f.reopen()
	f.wantTools(reader)
	f.registerLibrary(tool.ReadOnly)
	f.wantTools(reader, "lib_get")
}

// The difference of a change says what a read part in place of its group takes away.
func TestReadPart_Diff(t *testing.T) {
	f := newLibrary(t)
	role := f.role(operator, org.RoleSpec{Name: "clerk", Use: of("lib")})
	_, diff, _, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Use: of("lib:read")}, true)
	if err != nil || len(diff.Roles) != 1 || len(diff.Roles[0].Gains) > 0 || len(diff.Roles[0].Loses) != 1 || diff.Roles[0].Loses[0] != "lib_put" {
		t.Errorf("%+v, %v", diff, err)
	}
}

// A task may be restricted to the read part of a group that its caller has, and not to a group
// of which the caller has the read part alone.
func TestReadPart_OfTask(t *testing.T) {
	f := newLibrary(t)
	for _, tt := range []struct {
		has, asked toolgroups.GroupID
		code       errcode.Code
	}{
		{"lib", "lib:read", ""},
		{"city:read", "lib:read", ""},
		{"lib:read", "lib", errcode.InsufficientPermissions},
	} {
		role := f.role(operator, org.RoleSpec{Name: "caller of " + string(tt.has), Use: of(toolgroups.OrgManagement, tt.has)})
		_, _, _, err := f.StartTask(identity.TaskID(f.id("task")), org.TaskSpec{Caller: identity.ByCaller("ann", role.ID), Groups: of(tt.asked)})
		wantCode(t, err, tt.code, "")
	}
}
