package org_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// The rules of design §4 "Use and grant", one test each.

// "All is stored as ["*"]. A role created without toolGroups gets All."
func TestARoleWithoutToolGroupsGetsAll(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(identity.ByAgent(root), org.RoleSpec{})
	wantSet(t, role.Use, "*")
	wantSet(t, role.Grant, "*")
	agent := h.spawn(root, role.ID)
	h.wantMay(agent, every...)
	h.register("mcp:new", "later", "newcomer")
	h.wantMay(agent, "create_role", "newcomer", "put_artifact", "read_file", "run_command", "search", "spawn_agent", "write_file")
}

// "or the organization's defaultToolGroups, bounded by its creator's grant;
// this happens once, at creation."
func TestTheDefaultIsAppliedOnceAndBounded(t *testing.T) {
	h := open(t)
	h.SetDefault(toolgroups.Of(toolgroups.Workspace, toolgroups.Command))
	root := h.task(org.TaskSpec{})
	role := h.role(identity.ByAgent(root), org.RoleSpec{})
	wantSet(t, role.Use, "workspace,command")
	wantSet(t, role.Grant, "-")
	boss := h.role(operator, org.RoleSpec{Use: of(toolgroups.OrgManagement), Grant: of(toolgroups.Command, toolgroups.Artifact)})
	bounded := h.role(identity.ByAgent(h.spawn(root, boss.ID)), org.RoleSpec{})
	wantSet(t, bounded.Use, "command")

	h.SetDefault(toolgroups.All())
	h.reopen()
	again, _ := h.Role(role.ID)
	wantSet(t, again.Use, "workspace,command")
}

func TestAllIsBoundedByTheCreatorsGrant(t *testing.T) {
	h := open(t)
	boss := h.role(operator, org.RoleSpec{Use: of(toolgroups.OrgManagement, toolgroups.Workspace)})
	agent := h.spawn(h.task(org.TaskSpec{}), boss.ID)
	wantSet(t, h.role(identity.ByAgent(agent), org.RoleSpec{}).Use, "org_management,workspace")
}

// "A stored record without the field denies."
func TestAStoredRecordWithoutToolGroupsDenies(t *testing.T) {
	for _, field := range []string{"", `,"toolGroups":null`, `,"toolGroups":["workspace"]`} {
		h := open(t)
		h.store.set("role", "r", `{"id":"r","name":"old","createdByRole":"operator","status":"active"`+field+`}`)
		h.reopen()
		agent := h.spawn(h.task(org.TaskSpec{}), "r")
		h.wantMay(agent) // also with toolGroups whose owners were never written
	}
}

// "toolGroups: [] means no tools."
func TestAnEmptyListIsNoTools(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(identity.ByAgent(root), org.RoleSpec{Use: of()})
	wantSet(t, role.Use, "-")
	h.wantMay(h.spawn(root, role.ID))
}

// "Root may use only org_management and may grant everything."
func TestRootUsesOrgManagementAloneAndGrantsEverything(t *testing.T) {
	h := open(t)
	h.store.set("role", org.RootRole, `{"id":"root","name":"root","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`)
	h.reopen()
	root := h.task(org.TaskSpec{})
	h.wantMay(root, "create_role", "spawn_agent")
	wantSet(t, h.Grantable(root), "*")
	h.role(identity.ByAgent(root), org.RoleSpec{Use: of("*"), Grant: of("*")})
}

// Root's org_management is the built-in one.
func TestRootNeverUsesAnotherOwnersOrgManagement(t *testing.T) {
	h := open(t)
	h.groups = toolgroups.NewManager() // nothing is reserved
	h.register("mcp:evil", toolgroups.OrgManagement, "create_role")
	h.reopen()
	h.wantMay(h.task(org.TaskSpec{}))
}

// "Nobody gives what they may not grant: use ⊆ creator's grant and grant ⊆
// creator's grant." "Only All covers All."
func TestNobodyGivesWhatTheyMayNotGrant(t *testing.T) {
	tests := []struct {
		name       string
		use, grant *toolgroups.Set
		missing    []toolgroups.GroupID // nil when it may be given
	}{
		{"what the creator may grant", of("workspace"), of("workspace", "command"), nil},
		{"nothing", of(), of(), nil},
		{"a use the creator may not grant", of("workspace", "artifact"), of(), []toolgroups.GroupID{"artifact"}},
		{"a grant the creator may not grant", of(), of("command", "docs"), []toolgroups.GroupID{"docs"}},
		{"what the creator uses but may not grant", of("artifact"), of(), []toolgroups.GroupID{"artifact"}},
		{"every group there is, by name", of("org_management", "workspace", "command", "artifact", "docs"), of(), []toolgroups.GroupID{"org_management", "artifact", "docs"}},
		{"All", of("*"), of(), []toolgroups.GroupID{"*"}},
		{"a grant of All", of(), of("*"), []toolgroups.GroupID{"*"}},
		{"a group that is not there yet", of("later"), of(), []toolgroups.GroupID{"later"}},
	}
	h := open(t)
	boss := h.role(operator, org.RoleSpec{Use: of("org_management", "artifact"), Grant: of("workspace", "command")})
	agent := h.spawn(h.task(org.TaskSpec{}), boss.ID)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.create(identity.ByAgent(agent), org.RoleSpec{Name: tt.name, Use: tt.use, Grant: tt.grant})
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

// "Left out, grant is the role's own use if that holds org_management, else
// empty."
func TestAGrantLeftOut(t *testing.T) {
	tests := []struct {
		name string
		use  *toolgroups.Set
		want string
	}{
		{"is the use with org_management", of("workspace", "org_management"), "workspace,org_management"},
		{"is All with All", of("*"), "*"},
		{"is nothing without org_management", of("workspace"), "-"},
		{"is nothing with nothing", of(), "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantSet(t, open(t).role(operator, org.RoleSpec{Use: tt.use}).Grant, tt.want)
		})
	}
}

// "Subset tests compare group ids; permission intersects tools."
func TestCoverComparesIdsAndPermissionIntersectsTools(t *testing.T) {
	h := open(t)
	if _, err := h.groups.Register(toolgroups.Config, toolgroups.Group{ID: "reading", Refs: []string{"search"}}); err != nil {
		t.Fatal(err)
	}
	boss := h.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("docs", "reading")})
	agent := h.spawn(h.task(org.TaskSpec{}), boss.ID)
	role := h.role(identity.ByAgent(agent), org.RoleSpec{Use: of("docs")})
	helper := h.spawn(agent, role.ID)
	h.update(boss.ID, org.RoleSpec{Grant: of("reading")})
	_, err := h.create(identity.ByAgent(agent), org.RoleSpec{Use: of("docs")})
	wantCode(t, err, errcode.InsufficientPermissions) // by id: reading does not cover docs
	h.wantMay(helper, "search")                       // by tool: both hold search
}

// "Who may be spawned: a role whose use and grant the spawner's grant covers,
// whoever created it."
func TestWhoMayBeSpawned(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	boss := h.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("workspace", "docs")})
	agent := h.spawn(root, boss.ID)
	tests := []struct {
		name string
		role org.Role
		code errcode.Code
	}{
		{"a role of the operator's that is covered", h.role(operator, org.RoleSpec{Use: of("workspace")}), ""},
		{"a role of root's that is covered", h.role(identity.ByAgent(root), org.RoleSpec{Use: of("docs"), Grant: of("workspace")}), ""},
		{"a role whose use is not covered", h.role(operator, org.RoleSpec{Use: of("command")}), errcode.InsufficientPermissions},
		{"a role whose grant is not covered", h.role(operator, org.RoleSpec{Use: of(), Grant: of("command")}), errcode.InsufficientPermissions},
		{"its own role, whose use it may not grant", boss, errcode.InsufficientPermissions},
		{"a role of All", h.role(operator, org.RoleSpec{}), errcode.InsufficientPermissions},
		{"a role that is not there", org.Role{ID: "nowhere"}, errcode.RoleNotFound},
		{"root's", org.Role{ID: org.RootRole}, errcode.RoleNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.trySpawn(agent, tt.role.ID)
			wantCode(t, err, tt.code, tt.role.Name)
		})
	}
	t.Run("a deleted role", func(t *testing.T) {
		role := h.role(operator, org.RoleSpec{Use: of()})
		if _, _, err := h.DeleteRole(operator, role.ID, false); err != nil {
			t.Fatal(err)
		}
		_, err := h.trySpawn(root, role.ID)
		wantCode(t, err, errcode.RoleNotFound, string(role.ID))
	})
	t.Run("by somebody who is not there", func(t *testing.T) {
		_, err := h.trySpawn("nobody", boss.ID)
		wantCode(t, err, errcode.AgentNotFound, "nobody")
	})
}

// "Ceilings are live and recursive: effective(agent) = use ∩ task ∩
// ceiling(the roles its role was created by) ∩ its parent's effective grant."
func TestCeilingsAreLiveAndRecursive(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	top := h.role(operator, org.RoleSpec{Name: "top", Use: of("org_management", "workspace", "command")})
	middle := h.role(identity.ByAgent(h.spawn(root, top.ID)), org.RoleSpec{Name: "middle"})
	low := h.role(identity.ByAgent(h.spawn(root, middle.ID)), org.RoleSpec{Name: "low", Use: of("workspace", "command")})
	agent := h.spawn(root, low.ID) // below root: only the roles' makers bound it
	h.wantMay(agent, "read_file", "run_command", "write_file")

	diff := h.update(top.ID, org.RoleSpec{Grant: of("org_management", "command")})
	h.wantMay(agent, "run_command")
	if got, ok := find(diff, agent); !ok || cmp.Diff(got, org.AgentDiff{Agent: agent, Role: "low", Gains: []string{}, Loses: []string{"read_file", "write_file"}}) != "" {
		t.Errorf("got diff %+v", got)
	}
	h.update(middle.ID, org.RoleSpec{Grant: of("workspace")})
	h.wantMay(agent)
	h.update(top.ID, org.RoleSpec{Grant: of("workspace", "command")})
	h.wantMay(agent, "read_file", "write_file")
	h.update(middle.ID, org.RoleSpec{Grant: of("*")}) // the operator's: still under top
	h.wantMay(agent, "read_file", "run_command", "write_file")

	h.reopen()
	h.wantMay(agent, "read_file", "run_command", "write_file")
}

func find(diff org.Diff, id identity.AgentID) (org.AgentDiff, bool) {
	for _, d := range diff {
		if d.Agent == id {
			return d, true
		}
	}
	return org.AgentDiff{}, false
}

func TestAnAgentIsBoundedByItsParentsEffectiveGrant(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	boss := h.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("workspace", "command", "org_management")})
	under := h.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("workspace")})
	worker := h.role(operator, org.RoleSpec{Use: of("workspace")})
	chief := h.spawn(root, boss.ID)
	agent := h.spawn(h.spawn(chief, under.ID), worker.ID)
	h.wantMay(agent, "read_file", "write_file")
	wantSet(t, h.Grantable(chief), "workspace,command,org_management")

	h.update(boss.ID, org.RoleSpec{Grant: of("command", "org_management")}) // two levels up
	h.wantMay(agent)
	h.update(boss.ID, org.RoleSpec{Grant: of("*")})
	h.wantMay(agent, "read_file", "write_file")
	h.update(under.ID, org.RoleSpec{Use: of()}) // what the parent uses is not what it grants
	h.wantMay(agent, "read_file", "write_file")
}

// "A deleted creator role is a ceiling of nothing; a terminated creator agent
// changes nothing."
func TestWhenACreatorGoes(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	boss := h.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("workspace")})
	chief := h.spawn(root, boss.ID)
	role := h.role(identity.ByAgent(chief), org.RoleSpec{Use: of("workspace")})
	agent := h.spawn(root, role.ID)

	if _, _, err := h.Terminate(operator, chief, "", "", h.stored); err != nil {
		t.Fatal(err)
	}
	h.wantMay(agent, "read_file", "write_file")

	diff, changes, err := h.DeleteRole(operator, boss.ID, false)
	if err != nil || len(diff) != 1 || diff[0].Agent != agent || len(changes) != 2 {
		t.Errorf("got %v, %d changes, %v", diff, len(changes), err)
	}
	h.store.put(changes)
	h.wantMay(agent)
	h.reopen()
	h.wantMay(agent)
	_, _, err = h.DeleteRole(operator, boss.ID, false)
	wantCode(t, err, errcode.RoleNotFound)
}

func TestADeletedRolesAgentsAndTheirChildrenLoseEverything(t *testing.T) {
	h := open(t)
	boss := h.role(operator, org.RoleSpec{Use: of("*")})
	worker := h.role(operator, org.RoleSpec{Use: of("workspace")})
	chief := h.spawn(h.task(org.TaskSpec{}), boss.ID)
	agent := h.spawn(chief, worker.ID)
	if _, _, err := h.DeleteRole(operator, boss.ID, false); err != nil {
		t.Fatal(err)
	}
	h.wantMay(chief)
	h.wantMay(agent)
	wantSet(t, h.Grantable(chief), "-")
	_, err := h.trySpawn(chief, worker.ID)
	wantCode(t, err, errcode.InsufficientPermissions)
}

// "Operator-made roles have root's ceiling", configuration's too.
func TestTheOperatorAndTheConfigurationGiveEverything(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	for _, by := range []identity.Principal{operator, {Kind: identity.Configuration}} {
		role := h.role(by, org.RoleSpec{Use: of("*")})
		h.wantMay(h.spawn(root, role.ID), every...)
		if role.CreatedBy != by.String() || role.CreatedByRole != by.String() {
			t.Errorf("got created by %q, %q, want %q", role.CreatedBy, role.CreatedByRole, by)
		}
	}
}

// "Every task carries its caller's ceiling (the operator: everything), so
// asking root for a stronger agent gains nothing."
func TestATaskCarriesItsCallersCeiling(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Name: "guest", Use: of("workspace", "docs")})
	strong := h.role(operator, org.RoleSpec{Use: of("command")})
	root := h.task(org.TaskSpec{Caller: identity.ByCaller("ann", role.ID)})
	h.wantMay(root, "create_role", "spawn_agent")
	wantSet(t, h.Grantable(root), "workspace,docs")
	_, err := h.trySpawn(root, strong.ID)
	wantCode(t, err, errcode.InsufficientPermissions, "command")
	_, err = h.create(identity.ByAgent(root), org.RoleSpec{Use: of("*")})
	wantCode(t, err, errcode.InsufficientPermissions)
	made := h.role(identity.ByAgent(root), org.RoleSpec{})
	wantSet(t, made.Use, "workspace,docs")
	h.wantMay(h.spawn(root, made.ID), "read_file", "search", "write_file")
	task, _ := h.Task(h.agent(root).Task)
	if task.Caller != "user:ann@"+string(role.ID) {
		t.Errorf("got caller %q", task.Caller)
	}
}

// A caller's role is bound to the owners its groups had when it was written;
// a task in its name reaches no further.
func TestATasksCeilingDoesNotRebindItsCallersGroups(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Use: of("docs", "workspace")})
	if err := h.groups.Unregister("mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	h.register("mcp:other", "docs", "wipe_docs")
	root := h.task(org.TaskSpec{Caller: identity.ByCaller("ann", role.ID)})
	made := h.role(identity.ByAgent(root), org.RoleSpec{Use: of("docs", "workspace")})
	h.wantMay(h.spawn(root, made.ID), "read_file", "write_file")
}

func (h *house) agent(id identity.AgentID) org.Agent {
	h.t.Helper()
	a, ok := h.Agent(id)
	if !ok {
		h.t.Fatalf("there is no agent %s", id)
	}
	return a
}

// "group on a task bounds root's grant and every agent below, never root's
// own use; absent means no narrowing."
func TestAGroupOnATask(t *testing.T) {
	tests := []struct {
		name      string
		groups    *toolgroups.Set
		grantable string
		may       []string
		code      errcode.Code // for a caller that has workspace and docs
	}{
		{"absent", nil, "*", every, ""},
		{"everything", of("*"), "*", every, ""},
		{"some", of("workspace"), "workspace", []string{"read_file", "write_file"}, ""},
		{"none", of(), "-", []string{}, ""},
		{"more than the caller has", of("workspace", "command"), "workspace,command", []string{"read_file", "run_command", "write_file"}, errcode.InsufficientPermissions},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t)
			root := h.task(org.TaskSpec{Groups: tt.groups})
			h.wantMay(root, "create_role", "spawn_agent")
			wantSet(t, h.Grantable(root), tt.grantable)
			made := h.role(identity.ByAgent(root), org.RoleSpec{})
			wantSet(t, made.Use, tt.grantable)
			h.wantMay(h.spawn(root, made.ID), tt.may...)

			guest := h.role(operator, org.RoleSpec{Use: of("workspace", "docs")})
			_, _, changes, err := h.StartTask("mine", org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Groups: tt.groups})
			wantCode(t, err, tt.code)
			if _, ok := h.Task("mine"); ok != (tt.code == "") || (changes == nil) != (tt.code != "") {
				t.Errorf("a refused task was made: %v", ok)
			}
		})
	}
}

// A task may be bound to a role instead of root.
func TestATaskOfARole(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Name: "reader", Use: of("docs", "workspace")})
	guest := h.role(operator, org.RoleSpec{Use: of("docs")})
	t.Run("is found by id and by name, and narrowed", func(t *testing.T) {
		for _, name := range []string{string(role.ID), "reader"} {
			top := h.task(org.TaskSpec{Role: name, Groups: of("docs"), State: "s"})
			h.wantMay(top, "search")
			if a := h.agent(top); a.Root || a.Role != role.ID || a.State != "s" || a.Parent != "" {
				t.Errorf("got %+v", a)
			}
			if entry, ok := h.TopAncestor(top); !ok || entry != top {
				t.Errorf("got entry %q, %v", entry, ok)
			}
		}
	})
	t.Run("must be covered by what the caller has", func(t *testing.T) {
		_, _, _, err := h.StartTask("x", org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Role: "reader"})
		wantCode(t, err, errcode.InsufficientPermissions, "reader", "workspace")
		_, _, _, err = h.StartTask("x", org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Role: string(guest.ID)})
		wantCode(t, err, "")
	})
	t.Run("must be there", func(t *testing.T) {
		for _, name := range []string{"nobody", org.RootRole} {
			_, _, _, err := h.StartTask("y", org.TaskSpec{Caller: operator, Role: name})
			wantCode(t, err, errcode.RoleNotFound, name)
		}
	})
	t.Run("needs a caller that is known", func(t *testing.T) {
		for _, tt := range []struct {
			by   identity.Principal
			code errcode.Code
		}{
			{identity.Principal{}, errcode.Unauthenticated},
			{identity.Principal{Kind: 99}, errcode.Unauthenticated},
			{identity.ByCaller("ann", "nowhere"), errcode.RoleNotFound},
			{identity.ByAgent("nobody"), errcode.AgentNotFound},
		} {
			_, _, _, err := h.StartTask("z", org.TaskSpec{Caller: tt.by})
			wantCode(t, err, tt.code)
			_, err = h.create(tt.by, org.RoleSpec{Name: "n"})
			wantCode(t, err, tt.code)
			_, _, _, err = h.UpdateRole(tt.by, role.ID, org.RoleSpec{}, false)
			wantCode(t, err, tt.code)
		}
	})
}

// "Ids bind to their owner when written (groupOwners). An id unknown then
// stays inert until an operator updates the role. A module that goes away
// leaves its grants inert; another owner never inherits them."
func TestIdsBindToTheirOwnerWhenWritten(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(identity.ByAgent(root), org.RoleSpec{Use: of("docs", "later")})
	if diff := cmp.Diff(role.GroupOwners, map[toolgroups.GroupID]toolgroups.Owner{"docs": "mcp:docs"}); diff != "" {
		t.Errorf("owners, got before want:\n%s", diff)
	}
	agent := h.spawn(root, role.ID)
	h.register("mcp:later", "later", "late_tool")
	h.wantMay(agent, "search")

	if err := h.groups.Unregister("mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	h.wantMay(agent)
	h.register("mcp:thief", "docs", "search")
	h.wantMay(agent)
	h.reopen()
	h.wantMay(agent)

	h.update(role.ID, org.RoleSpec{Use: of("docs", "later")}) // written anew
	h.wantMay(agent, "late_tool", "search")
}

func TestRegistryChangesAreInForceAtOnce(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	agent := h.spawn(root, h.role(operator, org.RoleSpec{Use: of("docs")}).ID)
	before := h.Epoch()
	h.register("mcp:docs", "docs", "search", "fetch")
	h.wantMay(agent, "fetch", "search")
	slot, _ := h.Resolve(identity.ByAgent(agent))
	handle, _ := h.groups.Snapshot().Lookup("fetch")
	if h.Epoch() != before+1 || !slot.View().Has(handle) {
		t.Errorf("got epoch %d after %d", h.Epoch(), before)
	}
}

func TestWhoeverIsUnknownHasADenyingSeat(t *testing.T) {
	h := open(t)
	h.role(operator, org.RoleSpec{Name: "r"})
	for _, p := range []identity.Principal{{}, operator, identity.ByAgent("nobody"), identity.ByCaller("ann", "r"), {Kind: identity.Configuration}, {Kind: identity.Operator, Agent: h.task(org.TaskSpec{})}} {
		slot, state := h.Resolve(p)
		if got := slot.View().Names(); len(got) != 0 || state != "" {
			t.Errorf("%v sees %v in state %q", p, got, state)
		}
	}
	wantSet(t, h.Grantable("nobody"), "-")
}

func TestRulesNameWhatKeepsAToolAway(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{Groups: of("workspace", "docs", "org_management")})
	boss := h.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("docs", "workspace")})
	agent := h.spawn(root, boss.ID)
	role := h.role(identity.ByAgent(agent), org.RoleSpec{Name: "reader", Use: of("docs", "workspace")})
	reader := h.spawn(agent, role.ID)
	h.update(boss.ID, org.RoleSpec{Grant: of("docs")})
	tool := func(name string) *toolgroups.Handle { return handle(h.groups, name) }
	tests := []struct {
		name, got, want string
	}{
		{"a tool of the role's", h.WhyAgent(reader, tool("search")), ""},
		{"a tool not of the role's", h.WhyAgent(reader, tool("run_command")), "the toolGroups of role reader"},
		{"a tool its maker may no more grant", h.WhyAgent(reader, tool("read_file")), "what role boss, its maker, may grant"},
		{"root", h.WhyAgent(root, tool("search")), "root uses org_management alone"},
		{"nobody", h.WhyAgent("nobody", tool("search")), "there is no such agent"},
		{"a role, by its maker", h.WhyRole(role.ID, toolgroups.All(), tool("read_file")), "what role boss, its maker, may grant"},
		{"a role, narrowed", h.WhyRole(role.ID, toolgroups.Of("command"), tool("search")), "the groups asked for"},
		{"a role that is not there", h.WhyRole("nowhere", toolgroups.All(), tool("search")), "the role is gone"},
		{"root's role", h.WhyRole(org.RootRole, toolgroups.Of(), tool("create_role")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %q, want %q", tt.got, tt.want)
			}
		})
	}
	t.Run("and the role's view says the same", func(t *testing.T) {
		if diff := cmp.Diff(h.RoleView(role.ID, toolgroups.All()).Names(), []string{"search"}); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
		if got := h.RoleView("nowhere", toolgroups.All()).Names(); len(got) != 0 {
			t.Errorf("got %v for a role that is not there", got)
		}
		if diff := cmp.Diff(h.RoleView(org.RootRole, toolgroups.Of()).Names(), []string{"create_role", "spawn_agent"}); diff != "" {
			t.Errorf("root, got before want:\n%s", diff)
		}
	})
}

// Ceilings are live: what the role of a task's caller loses, the task loses.
func TestATaskLosesWhatItsCallersRoleLoses(t *testing.T) {
	h := open(t)
	caller := h.role(operator, org.RoleSpec{Name: "caller", Use: of("docs", "org_management")})
	root := h.task(org.TaskSpec{Caller: identity.ByCaller("u", caller.ID)})
	worker := h.role(operator, org.RoleSpec{Name: "worker", Use: of("docs")})
	agent := h.spawn(root, worker.ID)
	if len(h.may(agent)) == 0 {
		t.Fatal("the agent may nothing to begin with")
	}
	h.update(caller.ID, org.RoleSpec{Use: of("org_management")})
	h.wantMay(agent)
	h.update(caller.ID, org.RoleSpec{Use: of("org_management", "docs")})
	if len(h.may(agent)) == 0 {
		t.Error("the agent may nothing when the caller has it again")
	}
}
