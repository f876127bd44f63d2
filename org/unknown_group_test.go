package org_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// A role that names a group that does not exist is rejected with the most similar group
// that its creator has. Only the operator may write it nevertheless.
func TestRole_RejectsUnknownGroup(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	manager := f.spawn(root, f.role(operator, org.RoleSpec{Use: of("org_management", "workspace"), Grant: of("workspace", "docs")}).ID)
	clerk := f.role(operator, org.RoleSpec{Name: "clerk", Use: of("docs")})
	update := func(by identity.Principal, spec org.RoleSpec) error {
		_, _, _, err := f.UpdateRole(by, clerk.ID, spec, true)
		return err
	}
	create := func(by identity.Principal, spec org.RoleSpec) error { _, err := f.create(by, spec); return err }
	tests := map[string]struct {
		err  error
		code errcode.Code
		text string
	}{
		"operator":                     {create(operator, org.RoleSpec{Use: of("docs", "worksapce")}), errcode.GroupNotFound, `there is no tool group "worksapce" (did you mean "workspace"?); name groups that exist, or allow unknown`},
		"operator, by the case":        {create(operator, org.RoleSpec{Use: of("Workspace")}), errcode.GroupNotFound, `"Workspace" (did you mean "workspace"?)`},
		"operator, in grant":           {create(operator, org.RoleSpec{Use: of(), Grant: of("dosc")}), errcode.GroupNotFound, `"dosc" (did you mean "docs"?)`},
		"operator, two of them":        {create(operator, org.RoleSpec{Use: of("x", "dosc"), Grant: of("x")}), errcode.GroupNotFound, `"x", "dosc" (did you mean "docs"?)`},
		"operator, the name of a tool": {create(operator, org.RoleSpec{Use: of("read_file")}), errcode.GroupNotFound, `"read_file" (it is a tool of the group "workspace")`},
		"root":                         {create(identity.ByAgent(root), org.RoleSpec{Use: of("comand")}), errcode.GroupNotFound, `"comand" (did you mean "command"?); name groups that exist`},
		"root insists":                 {create(identity.ByAgent(root), org.RoleSpec{Use: of("comand"), AllowUnknown: true}), errcode.GroupNotFound, ""},
		"manager, beside its groups":   {create(identity.ByAgent(manager), org.RoleSpec{Use: of("dosc")}), errcode.InsufficientPermissions, `dosc" (did you mean "docs"?)`},
		"configuration":                {configureError(f, org.RoleSpec{Name: "declared", Use: of("dosc"), AllowUnknown: true}), errcode.GroupNotFound, `"dosc" (did you mean "docs"?)`},
		"update":                       {update(operator, org.RoleSpec{Use: of("docs", "dosc")}), errcode.GroupNotFound, `role "clerk": there is no tool group "dosc"`},
		"update, in grant":             {update(operator, org.RoleSpec{Grant: of("dosc")}), errcode.GroupNotFound, `"dosc"`},
		"operator insists":             {create(operator, org.RoleSpec{Use: of("dosc"), AllowUnknown: true}), "", ""},
		"operator insists in update":   {update(operator, org.RoleSpec{Use: of("dosc"), AllowUnknown: true}), "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { wantCode(t, tt.err, tt.code, tt.text) })
	}
}

// configureError returns the error of a configuration with one role.
func configureError(f *fixture, spec org.RoleSpec) error {
	c := org.RoleConfig{Roles: []org.RoleSpec{spec}, Default: toolgroups.AllGroups(), Root: toolgroups.AllGroups(), Keep: true}
	return f.groups.UpdateWith(func(change toolgroups.Change) error {
		_, err := f.ApplyRoles(c, change)
		return err
	}, func(*toolgroups.Tx) error { return nil })
}

// A suggestion names no group that the caller does not have, and a group of others is
// answered like one that does not exist.
func TestUnknownGroup_SuggestsOnlyOwnGroups(t *testing.T) {
	f := newFixture(t)
	f.register("mcp:secret", "docks", "dig")
	guest := f.role(operator, org.RoleSpec{Use: of("workspace")})
	every := f.role(operator, org.RoleSpec{Server: new("nowhere")})
	root := f.task(org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID)})
	answer := func(err error, id string) string {
		t.Helper()
		if errcode.CodeOf(err) == "" {
			t.Fatalf("%s is accepted", id)
		}
		return strings.ReplaceAll(err.Error(), id, "ID")
	}
	for _, id := range []string{"docks", "dockz", "dig"} {
		_, err := f.create(identity.ByAgent(root), org.RoleSpec{Name: "n", Use: of(toolgroups.GroupID(id))})
		first := answer(err, id)
		_, _, _, err = f.StartTask("new", org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Groups: of(toolgroups.GroupID(id))})
		second := answer(err, id)
		_, _, _, err = f.StartTask("new", org.TaskSpec{Caller: identity.ByCaller("ann", every.ID), Groups: of(toolgroups.GroupID(id))})
		third := answer(err, id)
		for i, got := range []string{first, second, third} {
			if strings.Contains(got, "docks") || strings.Contains(got, "did you") || strings.Contains(got, "tool of") {
				t.Errorf("%d: %s is answered with %s", i, id, got)
			}
		}
		wantCode(t, err, errcode.GroupNotFound)
	}
}

// A task cannot be restricted to a group that does not exist.
func TestTask_RejectsUnknownGroup(t *testing.T) {
	f := newFixture(t)
	guest := f.role(operator, org.RoleSpec{Use: of("workspace", "gone"), AllowUnknown: true})
	for _, by := range []identity.Principal{operator, identity.ByCaller("ann", guest.ID)} {
		_, _, changes, err := f.StartTask("t", org.TaskSpec{Caller: by, Groups: of("workspace", "gone")})
		wantCode(t, err, errcode.GroupNotFound, `start a task: there is no tool group "gone"`)
		if changes != nil {
			t.Error("the task was started")
		}
	}
	_, _, _, err := f.StartTask("t", org.TaskSpec{Caller: operator, Groups: of("worksapce")})
	wantCode(t, err, errcode.GroupNotFound, `"worksapce" (did you mean "workspace"?)`)
}

// A stored role with an unknown group stays usable: it can be changed, and what it names
// has no effect.
func TestRole_StoredUnknownGroupStaysUsable(t *testing.T) {
	f := newFixture(t)
	f.store.set("role", "old", `{"id":"old","name":"old","createdBy":"operator","createdByRole":"operator","status":"active","toolGroups":["docs","gone"],"grant":[],"groupOwners":{"docs":"mcp:docs"},"revision":1}`)
	f.reopen()
	agent := f.spawn(f.task(org.TaskSpec{}), "old")
	f.wantTools(agent, "search")
	f.update("old", org.RoleSpec{Prompt: "new"})
	f.register("mcp:thief", "gone", "steal")
	f.wantTools(agent, "search")
}

// A group that a role has and whose owner is away is known when the role is written again.
// It stays with its owner.
func TestUpdateRole_KeepsOwnerOfGroupThatIsAway(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of("docs")})
	agent := f.spawn(f.task(org.TaskSpec{}), role.ID)
	if err := grouptest.UnregisterGroup(f.groups, "mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	f.update(role.ID, org.RoleSpec{Use: of("docs", "command")})
	f.wantTools(agent, "run_command")
	f.register("mcp:thief", "docs", "steal")
	f.wantTools(agent, "run_command")
	if err := grouptest.UnregisterGroup(f.groups, "mcp:thief", "docs"); err != nil {
		t.Fatal(err)
	}
	f.register("mcp:docs", "docs", "search")
	f.wantTools(agent, "run_command", "search")
}

// A declared group is known before its owner registers it. Another owner does not get it.
func TestRole_AcceptsDeclaredGroup(t *testing.T) {
	f := newFixture(t)
	err := f.groups.UpdateWith(func(c toolgroups.Change) error { c.Publish(); return nil }, func(tx *toolgroups.Tx) error {
		tx.DeclareGroups(map[toolgroups.GroupID]toolgroups.GroupOwner{"web": "module:web"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	root := f.task(org.TaskSpec{Groups: of("web", "org_management")})
	agent := f.spawn(root, f.role(identity.ByAgent(root), org.RoleSpec{Use: of("web")}).ID)
	f.wantTools(agent)
	f.register("module:thief", "web", "steal")
	f.wantTools(agent)
	if err := grouptest.UnregisterGroup(f.groups, "module:thief", "web"); err != nil {
		t.Fatal(err)
	}
	f.register("module:web", "web", "open_page")
	f.wantTools(agent, "open_page")
}
