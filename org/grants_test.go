package org_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// The tests of this file check the rules of the package comment, one rule each.

// A role that is created without Use gets All, also groups registered later.
func TestCreateRole_DefaultsToAll(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(identity.ByAgent(root), org.RoleSpec{})
	wantSet(t, role.Use, "*")
	wantSet(t, role.Grant, "*")
	agent := f.spawn(root, role.ID)
	f.wantTools(agent, allTools...)
	f.register("mcp:new", "later", "new_tool")
	f.wantTools(agent, "create_role", "new_tool", "put_artifact", "read_file", "run_command", "search", "spawn_agent", "write_file")
}

// The default Use is applied once, when the role is created, within the creator's Grant.
func TestCreateRole_DefaultAppliedOnce(t *testing.T) {
	f := newFixture(t)
	f.configure(org.RoleConfig{Default: toolgroups.SetOf(toolgroups.Workspace, toolgroups.Command), Root: toolgroups.AllGroups()})
	root := f.task(org.TaskSpec{})
	role := f.role(identity.ByAgent(root), org.RoleSpec{})
	wantSet(t, role.Use, "workspace,command")
	wantSet(t, role.Grant, "-")
	boss := f.role(operator, org.RoleSpec{Use: of(toolgroups.OrgManagement), Grant: of(toolgroups.Command, toolgroups.Artifact)})
	bounded := f.role(identity.ByAgent(f.spawn(root, boss.ID)), org.RoleSpec{})
	wantSet(t, bounded.Use, "command")

	f.configure(org.RoleConfig{Default: toolgroups.AllGroups(), Root: toolgroups.AllGroups()})
	f.reopen()
	again, _ := f.RoleByID(role.ID)
	wantSet(t, again.Use, "workspace,command")
}

func TestCreateRole_DefaultLimitedByCreator(t *testing.T) {
	f := newFixture(t)
	boss := f.role(operator, org.RoleSpec{Use: of(toolgroups.OrgManagement, toolgroups.Workspace)})
	agent := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	wantSet(t, f.role(identity.ByAgent(agent), org.RoleSpec{}).Use, "org_management,workspace")
}

// A stored record without toolGroups allows nothing.
func TestLoad_RoleWithoutToolGroupsDenies(t *testing.T) {
	for _, field := range []string{"", `,"toolGroups":null`, `,"toolGroups":["workspace"]`} {
		f := newFixture(t)
		f.store.set("role", "r", `{"id":"r","name":"old","createdBy":"operator","createdByRole":"operator","status":"active"`+field+`}`)
		f.reopen()
		agent := f.spawn(f.task(org.TaskSpec{}), "r")
		f.wantTools(agent) // also with toolGroups but without groupOwners
	}
}

// An empty Use allows no tools.
func TestCreateRole_EmptyToolGroups(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(identity.ByAgent(root), org.RoleSpec{Use: of()})
	wantSet(t, role.Use, "-")
	f.wantTools(f.spawn(root, role.ID))
}

// Root may use org_management only and may grant everything, even if there is a record of
// a role with its id.
func TestRoot_UsesOrgManagementGrantsAll(t *testing.T) {
	f := newFixture(t)
	f.store.set("role", org.RootRole, `{"id":"root","name":"root","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`)
	f.reopen()
	root := f.task(org.TaskSpec{})
	f.wantTools(root, "create_role", "spawn_agent")
	wantSet(t, f.GrantableGroups(root), "*")
	f.role(identity.ByAgent(root), org.RoleSpec{Use: of("*"), Grant: of("*")})
}

// The group org_management of root is the built-in one.
func TestRoot_UsesBuiltinOrgManagementOnly(t *testing.T) {
	f := newFixture(t)
	f.groups = toolgroups.NewManager() // nothing is reserved
	f.register("mcp:evil", toolgroups.OrgManagement, "create_role")
	f.reopen()
	f.wantTools(f.task(org.TaskSpec{}))
}

// The Use and the Grant of a new role must be within the Grant of its creator. Only All
// covers All.
func TestCreateRole_RejectsMoreThanGrant(t *testing.T) {
	tests := []struct {
		name       string
		use, grant *toolgroups.GroupSet
		missing    []toolgroups.GroupID // nil if the role is created
	}{
		{"within the creator's grant", of("workspace"), of("workspace", "command"), nil},
		{"empty", of(), of(), nil},
		{"use exceeds the grant", of("workspace", "artifact"), of(), []toolgroups.GroupID{"artifact"}},
		{"grant exceeds the grant", of(), of("command", "docs"), []toolgroups.GroupID{"docs"}},
		{"used but not grantable", of("artifact"), of(), []toolgroups.GroupID{"artifact"}},
		{"all groups by id", of("org_management", "workspace", "command", "artifact", "docs"), of(), []toolgroups.GroupID{"org_management", "artifact", "docs"}},
		{"All", of("*"), of(), []toolgroups.GroupID{"*"}},
		{"grant of All", of(), of("*"), []toolgroups.GroupID{"*"}},
		{"unknown group", of("later"), of(), []toolgroups.GroupID{"later"}},
	}
	f := newFixture(t)
	boss := f.role(operator, org.RoleSpec{Use: of("org_management", "artifact"), Grant: of("workspace", "command")})
	agent := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.create(identity.ByAgent(agent), org.RoleSpec{Name: tt.name, Use: tt.use, Grant: tt.grant})
			if tt.missing == nil {
				wantCode(t, err, "")
				return
			}
			wantCode(t, err, errcode.InsufficientPermissions, tt.name)
			if diff := cmp.Diff(err.(*errcode.Error).Details["missing"], any(tt.missing)); diff != "" {
				t.Errorf("missing, got before want:\n%s", diff)
			}
		})
	}
}

// The default Grant is Use if Use contains org_management, else it is empty.
func TestCreateRole_DefaultGrant(t *testing.T) {
	tests := []struct {
		name string
		use  *toolgroups.GroupSet
		want string
	}{
		{"use with org_management", of("workspace", "org_management"), "workspace,org_management"},
		{"All", of("*"), "*"},
		{"use without org_management", of("workspace"), "-"},
		{"empty use", of(), "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantSet(t, newFixture(t).role(operator, org.RoleSpec{Use: tt.use}).Grant, tt.want)
		})
	}
}

// Granting compares group ids. Permissions are intersections of tools.
func TestGrant_ComparesIDsIntersectsTools(t *testing.T) {
	f := newFixture(t)
	if _, err := grouptest.RegisterGroup(f.groups, toolgroups.Config, toolgroups.Group{ID: "reading", Refs: []string{"search"}}); err != nil {
		t.Fatal(err)
	}
	boss := f.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("docs", "reading")})
	agent := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	role := f.role(identity.ByAgent(agent), org.RoleSpec{Use: of("docs")})
	helper := f.spawn(agent, role.ID)
	f.update(boss.ID, org.RoleSpec{Grant: of("reading")})
	_, err := f.create(identity.ByAgent(agent), org.RoleSpec{Use: of("docs")})
	wantCode(t, err, errcode.InsufficientPermissions) // by id, reading does not cover docs
	f.wantTools(helper, "search")                     // by tool, both contain search
}

// An agent may spawn roles whose Use and Grant are within its own Grant, no matter who created
// the role.
func TestSpawn_Permission(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("workspace", "docs")})
	agent := f.spawn(root, boss.ID)
	tests := []struct {
		name string
		role org.Role
		code errcode.Code
	}{
		{"covered role of the operator", f.role(operator, org.RoleSpec{Use: of("workspace")}), ""},
		{"covered role of root", f.role(identity.ByAgent(root), org.RoleSpec{Use: of("docs"), Grant: of("workspace")}), ""},
		{"use not covered", f.role(operator, org.RoleSpec{Use: of("command")}), errcode.InsufficientPermissions},
		{"grant not covered", f.role(operator, org.RoleSpec{Use: of(), Grant: of("command")}), errcode.InsufficientPermissions},
		{"own role, not covered", boss, errcode.InsufficientPermissions},
		{"role with All", f.role(operator, org.RoleSpec{}), errcode.InsufficientPermissions},
		{"unknown role", org.Role{ID: "nowhere"}, errcode.RoleNotFound},
		{"role of root", org.Role{ID: org.RootRole}, errcode.RoleNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.trySpawn(agent, tt.role.ID)
			wantCode(t, err, tt.code, tt.role.Name)
		})
	}
	t.Run("deleted role", func(t *testing.T) {
		role := f.role(operator, org.RoleSpec{Use: of()})
		if _, _, err := f.DeleteRole(operator, role.ID, false); err != nil {
			t.Fatal(err)
		}
		_, err := f.trySpawn(root, role.ID)
		wantCode(t, err, errcode.RoleNotFound, string(role.ID))
	})
	t.Run("unknown parent", func(t *testing.T) {
		_, err := f.trySpawn("nobody", boss.ID)
		wantCode(t, err, errcode.AgentNotFound, "nobody")
	})
}

// The permissions of an agent are the Use of its role within the current Grants of the
// roles that created that role, recursively.
func TestCeiling_LiveAndRecursive(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	top := f.role(operator, org.RoleSpec{Name: "top", Use: of("org_management", "workspace", "command")})
	middle := f.role(identity.ByAgent(f.spawn(root, top.ID)), org.RoleSpec{Name: "middle"})
	low := f.role(identity.ByAgent(f.spawn(root, middle.ID)), org.RoleSpec{Name: "low", Use: of("workspace", "command")})
	agent := f.spawn(root, low.ID) // below root, so that only the creators of the roles limit it
	f.wantTools(agent, "read_file", "run_command", "write_file")

	diff := f.update(top.ID, org.RoleSpec{Grant: of("org_management", "command")})
	f.wantTools(agent, "run_command")
	if got, ok := findDiff(diff, agent); !ok || cmp.Diff(got, org.AgentDiff{Agent: agent, Role: "low", AccessChange: org.AccessChange{Gains: []string{}, Loses: []string{"read_file", "write_file"}}}) != "" {
		t.Errorf("got diff %+v", got)
	}
	f.update(middle.ID, org.RoleSpec{Grant: of("workspace")})
	f.wantTools(agent)
	f.update(top.ID, org.RoleSpec{Grant: of("workspace", "command")})
	f.wantTools(agent, "read_file", "write_file")
	f.update(middle.ID, org.RoleSpec{Grant: of("*")}) // changed by the operator, still limited by top
	f.wantTools(agent, "read_file", "run_command", "write_file")

	f.reopen()
	f.wantTools(agent, "read_file", "run_command", "write_file")
}

func findDiff(diff org.PermissionDiff, id identity.AgentID) (org.AgentDiff, bool) {
	for _, d := range diff.Agents {
		if d.Agent == id {
			return d, true
		}
	}
	return org.AgentDiff{}, false
}

func TestCeiling_ParentGrant(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	boss := f.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("workspace", "command", "org_management")})
	under := f.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("workspace")})
	worker := f.role(operator, org.RoleSpec{Use: of("workspace")})
	chief := f.spawn(root, boss.ID)
	manager := f.spawn(chief, under.ID)
	agent := f.spawn(manager, worker.ID)
	f.wantTools(agent, "read_file", "write_file")
	wantSet(t, f.GrantableGroups(manager), "workspace")
	wantSet(t, f.GrantableGroups(chief), "workspace,command,org_management")

	f.update(boss.ID, org.RoleSpec{Grant: of("command", "org_management")}) // two levels up
	f.wantTools(agent)
	wantSet(t, f.GrantableGroups(manager), "-")
	_, err := f.create(identity.ByAgent(manager), org.RoleSpec{Use: of("workspace"), Grant: of()})
	wantCode(t, err, errcode.InsufficientPermissions, "workspace")
	_, err = f.trySpawn(manager, worker.ID)
	wantCode(t, err, errcode.InsufficientPermissions, "more permissions than you may grant")
	f.update(boss.ID, org.RoleSpec{Grant: of("*")})
	f.wantTools(agent, "read_file", "write_file")
	f.update(under.ID, org.RoleSpec{Use: of()}) // what the parent uses is not what it grants
	f.wantTools(agent, "read_file", "write_file")
}

// Roles created by a deleted role allow nothing. Terminating the agent that created a role
// changes nothing.
func TestCeiling_CreatorDeletedOrTerminated(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	boss := f.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("workspace")})
	chief := f.spawn(root, boss.ID)
	role := f.role(identity.ByAgent(chief), org.RoleSpec{Use: of("workspace")})
	agent := f.spawn(root, role.ID)

	if _, _, err := f.TerminateAgent(operator, chief, "", "", f.stored); err != nil {
		t.Fatal(err)
	}
	f.wantTools(agent, "read_file", "write_file")

	diff, changes, err := f.DeleteRole(operator, boss.ID, false)
	if err != nil || diff.Counts.Agents != 1 || diff.Agents[0].Agent != agent || len(changes) != 5 { // the role, two of the epoch, the tools of two roles
		t.Errorf("got %v, %d changes, %v", diff, len(changes), err)
	}
	f.store.put(changes)
	f.wantTools(agent)
	f.reopen()
	f.wantTools(agent)
	_, _, err = f.DeleteRole(operator, boss.ID, false)
	wantCode(t, err, errcode.RoleNotFound)
}

func TestDeleteRole_RemovesPermissions(t *testing.T) {
	f := newFixture(t)
	boss := f.role(operator, org.RoleSpec{Use: of("*")})
	worker := f.role(operator, org.RoleSpec{Use: of("workspace")})
	chief := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	agent := f.spawn(chief, worker.ID)
	if _, _, err := f.DeleteRole(operator, boss.ID, false); err != nil {
		t.Fatal(err)
	}
	f.wantTools(chief)
	f.wantTools(agent)
	wantSet(t, f.GrantableGroups(chief), "-")
	_, err := f.trySpawn(chief, worker.ID)
	wantCode(t, err, errcode.InsufficientPermissions)
}

// Roles of the operator and of the configuration have no ceiling.
func TestCreateRole_OperatorAndConfigurationUnlimited(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	for _, by := range []identity.Principal{operator, {Kind: identity.Configuration}} {
		role := f.role(by, org.RoleSpec{Use: of("*")})
		f.wantTools(f.spawn(root, role.ID), allTools...)
		if role.CreatedBy != by.String() || role.CreatedByRole != by.String() {
			t.Errorf("got created by %q, %q, want %q", role.CreatedBy, role.CreatedByRole, by)
		}
	}
}

// A task is limited by the permissions of its caller: asking root for a more powerful
// agent does not help.
func TestTask_CallerCeiling(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "guest", Use: of("workspace", "docs")})
	strong := f.role(operator, org.RoleSpec{Use: of("command")})
	root := f.task(org.TaskSpec{Caller: identity.ByCaller("ann", role.ID)})
	f.wantTools(root, "create_role", "spawn_agent")
	wantSet(t, f.GrantableGroups(root), "workspace,docs")
	_, err := f.trySpawn(root, strong.ID)
	wantCode(t, err, errcode.InsufficientPermissions, "more permissions than you may grant")
	_, err = f.create(identity.ByAgent(root), org.RoleSpec{Use: of("*")})
	wantCode(t, err, errcode.InsufficientPermissions)
	made := f.role(identity.ByAgent(root), org.RoleSpec{})
	wantSet(t, made.Use, "workspace,docs")
	f.wantTools(f.spawn(root, made.ID), "read_file", "search", "write_file")
	task, _ := f.TaskByID(f.agent(root).Task)
	if task.Caller != "user:ann@"+string(role.ID) {
		t.Errorf("got caller %q", task.Caller)
	}
}

// The groups of a caller's role stay pinned to their owners in the task that it starts.
func TestTask_CeilingKeepsOwners(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of("docs", "workspace")})
	if err := grouptest.UnregisterGroup(f.groups, "mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	f.register("mcp:other", "docs", "wipe_docs")
	root := f.task(org.TaskSpec{Caller: identity.ByCaller("ann", role.ID)})
	made := f.role(identity.ByAgent(root), org.RoleSpec{Use: of("docs", "workspace")})
	f.wantTools(f.spawn(root, made.ID), "read_file", "write_file")
}

func (f *fixture) agent(id identity.AgentID) org.Agent {
	f.t.Helper()
	a, ok := f.AgentByID(id)
	if !ok {
		f.t.Fatalf("no agent %s", id)
	}
	return a
}

// The groups of a task limit what root grants and all agents below root, never the Use of
// root itself. Without groups there is no restriction.
func TestTask_Groups(t *testing.T) {
	tests := []struct {
		name      string
		groups    *toolgroups.GroupSet
		grantable string
		may       []string
		code      errcode.Code // for a caller with workspace and docs
	}{
		{"absent", nil, "*", allTools, ""},
		{"everything", of("*"), "*", allTools, ""},
		{"some", of("workspace"), "workspace", []string{"read_file", "write_file"}, ""},
		{"none", of(), "-", []string{}, ""},
		{"more than the caller has", of("workspace", "command"), "workspace,command", []string{"read_file", "run_command", "write_file"}, errcode.InsufficientPermissions},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			root := f.task(org.TaskSpec{Groups: tt.groups})
			f.wantTools(root, "create_role", "spawn_agent")
			wantSet(t, f.GrantableGroups(root), tt.grantable)
			made := f.role(identity.ByAgent(root), org.RoleSpec{})
			wantSet(t, made.Use, tt.grantable)
			f.wantTools(f.spawn(root, made.ID), tt.may...)

			guest := f.role(operator, org.RoleSpec{Use: of("workspace", "docs")})
			_, _, changes, err := f.StartTask("mine", org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Groups: tt.groups})
			wantCode(t, err, tt.code)
			if _, ok := f.TaskByID("mine"); ok != (tt.code == "") || (changes == nil) != (tt.code != "") {
				t.Errorf("task created: %v", ok)
			}
		})
	}
}

// Only the operator and callers start tasks. What an agent loses would not bound a task that it
// has started.
func TestTask_OnlyOperatorAndCallersStart(t *testing.T) {
	f := newFixture(t)
	agent := f.task(org.TaskSpec{})
	for _, by := range []identity.Principal{identity.ByAgent(agent), {Kind: identity.Configuration}, identity.ByMonitor("m"), {}} {
		_, _, _, err := f.StartTask("x", org.TaskSpec{Caller: by})
		wantCode(t, err, errcode.Unauthenticated)
	}
}

// The top agent of a task may have a role instead of being root.
func TestTask_Role(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs", "workspace")})
	guest := f.role(operator, org.RoleSpec{Use: of("docs")})
	t.Run("role by id and by name, with groups", func(t *testing.T) {
		for _, name := range []string{string(role.ID), "reader"} {
			top := f.task(org.TaskSpec{Role: name, Groups: of("docs"), State: "s"})
			f.wantTools(top, "search")
			if a := f.agent(top); a.Root || a.Role != role.ID || a.State != "s" || a.Parent != "" {
				t.Errorf("got %+v", a)
			}
			if ancestor, ok := f.TopAncestor(top); !ok || ancestor != top {
				t.Errorf("got top ancestor %q, %v", ancestor, ok)
			}
		}
	})
	t.Run("role exceeds the caller", func(t *testing.T) {
		_, _, _, err := f.StartTask("x", org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Role: "reader"})
		wantCode(t, err, errcode.RoleNotFound, "reader")
		_, _, _, err = f.StartTask("x", org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Role: string(guest.ID)})
		wantCode(t, err, "")
	})
	t.Run("unknown role", func(t *testing.T) {
		for _, name := range []string{"nobody", org.RootRole} {
			_, _, _, err := f.StartTask("y", org.TaskSpec{Caller: operator, Role: name})
			wantCode(t, err, errcode.RoleNotFound, name)
		}
	})
	t.Run("unknown caller", func(t *testing.T) {
		for _, tt := range []struct {
			by          identity.Principal
			start, code errcode.Code
		}{
			{identity.Principal{}, errcode.Unauthenticated, errcode.Unauthenticated},
			{identity.Principal{Kind: 99}, errcode.Unauthenticated, errcode.Unauthenticated},
			{identity.ByCaller("ann", "nowhere"), errcode.RoleNotFound, errcode.RoleNotFound},
			{identity.ByAgent("nobody"), errcode.Unauthenticated, errcode.AgentNotFound},
		} {
			_, _, _, err := f.StartTask("z", org.TaskSpec{Caller: tt.by})
			wantCode(t, err, tt.start)
			_, err = f.create(tt.by, org.RoleSpec{Name: "n"})
			wantCode(t, err, tt.code)
			_, _, _, err = f.UpdateRole(tt.by, role.ID, org.RoleSpec{}, false)
			wantCode(t, err, tt.code)
		}
	})
}

// The groups of a role are pinned to their owners when they are written. A group that was
// unknown then has no effect until the role is updated. When a module is unloaded, its
// groups have no effect, and another owner does not inherit them.
func TestRole_BindsGroupsToOwners(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(operator, org.RoleSpec{Use: of("docs", "later"), AllowUnknown: true})
	if diff := cmp.Diff(role.GroupOwners, map[toolgroups.GroupID]toolgroups.GroupOwner{"docs": "mcp:docs"}); diff != "" {
		t.Errorf("owners, got before want:\n%s", diff)
	}
	agent := f.spawn(root, role.ID)
	f.register("mcp:later", "later", "late_tool")
	f.wantTools(agent, "search")

	if err := grouptest.UnregisterGroup(f.groups, "mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	f.wantTools(agent)
	f.register("mcp:thief", "docs", "search")
	f.wantTools(agent)
	f.reopen()
	f.wantTools(agent)

	f.update(role.ID, org.RoleSpec{Use: of("docs", "later")}) // written again
	f.wantTools(agent, "late_tool", "search")
}

// An update pins the sets that it names. The others stay pinned to the owners that they
// had, so that a new prompt does not add groups of another owner to a role.
func TestUpdateRole_KeepsOwnersOfOtherSets(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of("docs"), Grant: of("docs")})
	agent := f.spawn(f.task(org.TaskSpec{}), role.ID)
	owner := f.groups.CurrentSnapshot().GroupOwner("docs")
	if err := grouptest.UnregisterGroup(f.groups, owner, "docs"); err != nil {
		t.Fatal(err)
	}
	f.register("mcp:other", "docs", "leak")
	f.update(role.ID, org.RoleSpec{Prompt: "another"})
	f.wantTools(agent)
	f.update(role.ID, org.RoleSpec{Grant: of()})
	f.wantTools(agent)
	f.update(role.ID, org.RoleSpec{Use: of("docs")})
	f.wantTools(agent, "leak")
}

func TestOrg_RegistryChangesApplyAtOnce(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	agent := f.spawn(root, f.role(operator, org.RoleSpec{Use: of("docs")}).ID)
	before := f.CurrentEpoch()
	f.register("mcp:docs", "docs", "search", "fetch")
	f.wantTools(agent, "fetch", "search")
	ref, _ := f.ResolveView(identity.ByAgent(agent))
	handle, _ := f.groups.CurrentSnapshot().LookupTool("fetch")
	if f.CurrentEpoch() != before+1 || !ref.CurrentView().HasTool(handle) {
		t.Errorf("got epoch %d after %d", f.CurrentEpoch(), before)
	}
}

func TestResolve_DeniesUnknown(t *testing.T) {
	f := newFixture(t)
	f.role(operator, org.RoleSpec{Name: "r"})
	for _, p := range []identity.Principal{{}, operator, identity.ByAgent("nobody"), identity.ByCaller("ann", "r"), {Kind: identity.Configuration}, {Kind: identity.Operator, Agent: f.task(org.TaskSpec{})}} {
		ref, state := f.ResolveView(p)
		if got := ref.CurrentView().ToolNames(); len(got) != 0 || state != "" {
			t.Errorf("%v sees %v in state %q", p, got, state)
		}
	}
	wantSet(t, f.GrantableGroups("nobody"), "-")
}

func TestWhyAgent_NamesRule(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{Groups: of("workspace", "docs", "org_management")})
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("docs", "workspace")})
	agent := f.spawn(root, boss.ID)
	role := f.role(identity.ByAgent(agent), org.RoleSpec{Name: "reader", Use: of("docs", "workspace")})
	reader := f.spawn(agent, role.ID)
	f.update(boss.ID, org.RoleSpec{Grant: of("docs")})
	tool := func(name string) *toolgroups.ToolHandle { return handle(f.groups, name) }
	tests := []struct {
		name, got, want string
	}{
		{"tool of the role", f.WhyAgent(reader, tool("search")), ""},
		{"tool of another group", f.WhyAgent(reader, tool("run_command")), "the toolGroups of role reader"},
		{"tool that its creator may not grant any more", f.WhyAgent(reader, tool("read_file")), "what role boss, its creator, may grant"},
		{"root", f.WhyAgent(root, tool("search")), "root uses org_management alone"},
		{"unknown agent", f.WhyAgent("nobody", tool("search")), "there is no such agent"},
		{"role limited by its creator", f.WhyRole(role.ID, toolgroups.AllGroups(), tool("read_file")), "what role boss, its creator, may grant"},
		{"role with other groups", f.WhyRole(role.ID, toolgroups.SetOf("command"), tool("search")), "the groups asked for"},
		{"unknown role", f.WhyRole("nowhere", toolgroups.AllGroups(), tool("search")), "the role does not exist"},
		{"role of root", f.WhyRole(org.RootRole, toolgroups.SetOf(), tool("create_role")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %q, want %q", tt.got, tt.want)
			}
		})
	}
	t.Run("RoleView agrees", func(t *testing.T) {
		if diff := cmp.Diff(f.RoleView(role.ID, toolgroups.AllGroups()).ToolNames(), []string{"search"}); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
		if got := f.RoleView("nowhere", toolgroups.AllGroups()).ToolNames(); len(got) != 0 {
			t.Errorf("got %v for an unknown role", got)
		}
		if diff := cmp.Diff(f.RoleView(org.RootRole, toolgroups.SetOf()).ToolNames(), []string{"create_role", "spawn_agent"}); diff != "" {
			t.Errorf("root, got before want:\n%s", diff)
		}
	})
}

// A task loses the permissions that the role of its caller loses.
func TestTask_LosesWhatCallerLoses(t *testing.T) {
	f := newFixture(t)
	caller := f.role(operator, org.RoleSpec{Name: "caller", Use: of("docs", "org_management")})
	root := f.task(org.TaskSpec{Caller: identity.ByCaller("u", caller.ID)})
	worker := f.role(operator, org.RoleSpec{Name: "worker", Use: of("docs")})
	agent := f.spawn(root, worker.ID)
	if len(f.tools(agent)) == 0 {
		t.Fatal("the agent has no tools at the start")
	}
	f.update(caller.ID, org.RoleSpec{Use: of("org_management")})
	f.wantTools(agent)
	f.update(caller.ID, org.RoleSpec{Use: of("org_management", "docs")})
	if len(f.tools(agent)) == 0 {
		t.Error("the agent has no tools although the caller has them again")
	}
}
