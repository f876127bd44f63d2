package org_test

import (
	"reflect"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// remove deletes a role as the operator.
func (f *fixture) remove(id identity.RoleID) {
	f.t.Helper()
	_, changes, err := f.DeleteRole(operator, id, false)
	if err != nil {
		f.t.Fatal(err)
	}
	f.store.put(changes)
}

// configured applies a configuration of roles and returns the role with a name, the zero
// Role if there is none.
func (f *fixture) configured(name string, specs ...org.RoleSpec) org.Role {
	f.t.Helper()
	f.configure(org.RoleConfig{Roles: specs, Default: toolgroups.AllGroups(), Root: toolgroups.AllGroups()})
	role, _ := f.ConfiguredRole(name)
	return role
}

// An agent cannot use a name for a role that a role of the operator or of the configuration
// has or had. Commands, files and tokens that say the name mean the operator's role.
func TestCreateRole_NamesOfDeclaredRolesAreKept(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	manager := f.spawn(root, f.role(operator, org.RoleSpec{Name: "manager"}).ID)
	f.remove(f.role(operator, org.RoleSpec{Name: "deleted"}).ID)
	f.update(f.role(operator, org.RoleSpec{Name: "renamed"}).ID, org.RoleSpec{Name: "renamed since"})
	f.configured("", org.RoleSpec{Name: "configured"})
	f.configured("")
	for range 2 { // in memory, then from the store
		for _, name := range []string{"deleted", "renamed", "configured"} {
			for _, by := range []identity.AgentID{root, manager} {
				_, err := f.create(identity.ByAgent(by), org.RoleSpec{Name: name, Use: of("*")})
				wantCode(t, err, errcode.InvalidRole, name, "choose another name")
				_, err = f.PlanRole(identity.ByAgent(by), org.RoleSpec{Name: name})
				wantCode(t, err, errcode.InvalidRole)
			}
			_, err := f.FindRole(name)
			wantCode(t, err, errcode.RoleNotFound)
		}
		f.reopen()
	}
	t.Run("the operator may use them again", func(t *testing.T) {
		f.role(operator, org.RoleSpec{Name: "deleted"})
		f.role(operator, org.RoleSpec{Name: "configured"})
		if f.configured("renamed", org.RoleSpec{Name: "renamed"}).ID == "" {
			t.Error("the configuration did not get the name")
		}
	})
	t.Run("names of agents are free again", func(t *testing.T) {
		f.remove(f.role(identity.ByAgent(root), org.RoleSpec{Name: "helper"}).ID)
		f.role(identity.ByAgent(manager), org.RoleSpec{Name: "helper"})
	})
}

// The id of a role never becomes the name of another one.
func TestFindRole_IDIsNoName(t *testing.T) {
	f := newFixture(t)
	root := identity.ByAgent(f.task(org.TaskSpec{}))
	gone := f.role(operator, org.RoleSpec{Name: "gone"})
	f.remove(gone.ID)
	f.role(root, org.RoleSpec{Name: string(gone.ID)}) // the ids of this fixture do not look like ids
	for range 2 {
		_, err := f.FindRole(string(gone.ID))
		wantCode(t, err, errcode.RoleNotFound)
		_, _, _, err = f.StartTask("t", org.TaskSpec{Caller: operator, Role: string(gone.ID)})
		wantCode(t, err, errcode.RoleNotFound)
		f.reopen()
	}
	_, err := f.create(root, org.RoleSpec{Name: identity.NewID()})
	wantCode(t, err, errcode.InvalidRole, "form of an id")
}

// ConfiguredRole never returns a role that another principal created.
func TestConfiguredRole_OnlyOfConfiguration(t *testing.T) {
	f := newFixture(t)
	f.role(operator, org.RoleSpec{Name: "by hand"})
	f.role(identity.ByAgent(f.task(org.TaskSpec{})), org.RoleSpec{Name: "by root"})
	want := f.configured("dba", org.RoleSpec{Name: "dba"})
	for _, name := range []string{"by hand", "by root", string(want.ID), "", "nowhere"} {
		if role, ok := f.ConfiguredRole(name); ok || role.ID != "" {
			t.Errorf("%q is role %q", name, role.Name)
		}
	}
	if role, ok := f.ConfiguredRole("dba"); !ok || role.ID != want.ID || want.ID == "" {
		t.Errorf("got %q, want %q", role.ID, want.ID)
	}
}

// leadSpec is a role of a configuration whose agents create roles.
var leadSpec = org.RoleSpec{Name: "lead", Use: of("org_management", "workspace")}

// A role of the configuration that was deleted and is made again is another role. Its
// agents, the roles that they created, their tasks and the states of its callers stay
// without permission.
func TestApplyRoles_RoleMadeAgainRevivesNothing(t *testing.T) {
	f := newFixture(t)
	lead := f.configured("lead", leadSpec)
	chief := f.spawn(f.task(org.TaskSpec{}), lead.ID)
	below := f.role(identity.ByAgent(chief), org.RoleSpec{Name: "below", Use: of("workspace")})
	worker := f.spawn(f.task(org.TaskSpec{}), below.ID)
	ann := identity.ByCaller("ann", lead.ID)
	top := f.task(org.TaskSpec{Caller: ann, Role: string(lead.ID)})
	f.store.put(f.SetCallerState(ann, "trusted"))
	f.wantTools(chief, "create_role", "read_file", "spawn_agent", "write_file")
	f.wantTools(worker, "read_file", "write_file")

	f.configured("lead")
	again := f.configured("lead", leadSpec)
	if again.ID == "" || again.ID == lead.ID || again.Revision != 1 {
		t.Errorf("the role made again is %q with revision %d, want another one than %q", again.ID, again.Revision, lead.ID)
	}
	for range 2 {
		for _, agent := range []identity.AgentID{chief, worker, top} {
			f.wantTools(agent)
		}
		if view, _ := f.ResolveView(ann); len(view.CurrentView().ToolNames()) != 0 {
			t.Error("a caller in the deleted role has tools")
		}
		_, err := f.trySpawn(chief, again.ID)
		wantCode(t, err, errcode.InsufficientPermissions)
		if _, state := f.ResolveView(identity.ByCaller("ann", again.ID)); state == "trusted" {
			t.Error("the caller has the state of the deleted role")
		}
		f.reopen()
	}
}

// A record with the id of a configured role is not needed to create it, so a damaged
// record of a deleted role does not revive its agents.
func TestApplyRoles_DamagedRecordRevivesNothing(t *testing.T) {
	f := newFixture(t)
	lead := f.configured("lead", leadSpec)
	chief := f.spawn(f.task(org.TaskSpec{}), lead.ID)
	f.configured("lead")
	f.store.damaged = append(f.store.damaged, string(lead.ID))
	f.reopen()
	f.configured("lead", leadSpec)
	f.wantTools(chief)
}

// A recorded configuration leaves deleted roles deleted. With Revive they come back as
// they were at the end, not as the record has them.
func TestApplyRoles_KeepAndRevive(t *testing.T) {
	f := newFixture(t)
	lead := f.configured("lead", leadSpec)
	chief := f.spawn(f.task(org.TaskSpec{}), lead.ID)
	narrow := leadSpec
	narrow.Use, narrow.Grant = of("workspace"), of()
	f.configured("lead", narrow)
	f.configured("lead")
	f.remove(f.role(operator, org.RoleSpec{Name: "by hand"}).ID)
	recorded := org.RoleConfig{Roles: []org.RoleSpec{leadSpec, {Name: "by hand"}}, Keep: true}

	if edits := f.configure(recorded); len(edits) != 0 {
		t.Errorf("the record changed %+v", edits)
	}
	f.wantTools(chief)
	recorded.Revive = true
	edits := f.configure(recorded)
	if len(edits) != 1 || edits[0].Change != "revived" || edits[0].Role.ID != lead.ID || edits[0].Diff.Counts.Agents != 1 {
		t.Fatalf("got %+v, want lead revived with the tools that its agent gains", edits)
	}
	f.wantTools(chief, "read_file", "write_file")
	if _, err := f.FindRole("by hand"); errcode.CodeOf(err) != errcode.RoleNotFound {
		t.Errorf("the operator's role: %v", err)
	}
	f.reopen()
	f.wantTools(chief, "read_file", "write_file")
	if edits := f.configure(recorded); len(edits) != 0 {
		t.Errorf("the same again changed %+v", edits)
	}
}

// A recorded configuration does not take a role that an agent created for its own.
func TestApplyRoles_KeepRejectsRoleOfAgent(t *testing.T) {
	f := newFixture(t)
	f.role(identity.ByAgent(f.task(org.TaskSpec{})), org.RoleSpec{Name: "dba"})
	err := f.groups.UpdateWith(func(change toolgroups.Change) error {
		_, err := f.ApplyRoles(org.RoleConfig{Roles: []org.RoleSpec{{Name: "dba"}}, Keep: true}, change)
		return err
	}, func(*toolgroups.Tx) error { return nil })
	wantCode(t, err, errcode.RoleExists, "root created it")
}

// A deleted role stays deleted, also if the operator repeats the call that created it.
func TestCreateRole_IDOfDeletedRole(t *testing.T) {
	f := newFixture(t)
	for _, by := range []identity.Principal{operator, {Kind: identity.Configuration}} {
		spec := org.RoleSpec{Name: "role of " + by.String(), Use: of("workspace")}
		role := f.role(by, spec)
		agent := f.spawn(f.task(org.TaskSpec{}), role.ID)
		if _, _, err := f.DeleteRole(by, role.ID, false); err != nil {
			t.Fatal(err)
		}
		got, changes, err := f.CreateRole(by, role.ID, spec)
		if err != nil || got.Status != org.Deleted || changes != nil {
			t.Errorf("%s: got %s, %d changes, %v", by, got.Status, len(changes), err)
		}
		f.wantTools(agent)
	}
}

// The operator sees what a change of a role of the configuration would do, and cannot make it. Others
// see nothing.
func TestPreviewUpdate_ChangesNothing(t *testing.T) {
	f := newFixture(t)
	lead := f.configured("lead", leadSpec)
	chief := f.spawn(f.task(org.TaskSpec{}), lead.ID)
	before, _ := f.RoleByID(lead.ID)
	none := org.RoleSpec{Use: of()}
	next, diff, refusal, err := f.PreviewUpdate(operator, lead.ID, none)
	if err != nil || len(next.Use.GroupIDs()) != 0 || diff.Counts.Agents != 1 || diff.Counts.Roles != 1 {
		t.Errorf("got %+v, %+v, %v", next, diff.Counts, err)
	}
	wantCode(t, refusal, errcode.Conflict)
	if after, _ := f.RoleByID(lead.ID); !reflect.DeepEqual(after, before) {
		t.Errorf("the role is now %+v", after)
	}
	f.wantTools(chief, "create_role", "read_file", "spawn_agent", "write_file")
	_, _, _, err = f.UpdateRole(operator, lead.ID, none, org.DryRun)
	wantCode(t, err, errcode.Conflict)
	for _, by := range []identity.Principal{{}, identity.ByAgent(chief), identity.ByCaller("ann", lead.ID), identity.ByMonitor("m")} {
		if _, diff, _, err := f.PreviewUpdate(by, lead.ID, none); err == nil || !diff.IsEmpty() {
			t.Errorf("%v: got %+v, %v", by, diff.Counts, err)
		}
	}
}
