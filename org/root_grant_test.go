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

// declared is a role of the configurations of these tests.
var declared = org.RoleSpec{Name: "declared", Use: of("command", "org_management"), Grant: of("command")}

// letRootGrant applies a configuration in which root may grant some groups.
func (f *fixture) letRootGrant(ids ...toolgroups.GroupID) []org.RoleEdit {
	f.t.Helper()
	return f.configure(org.RoleConfig{Roles: []org.RoleSpec{declared}, Default: toolgroups.AllGroups(), Root: toolgroups.SetOf(ids...)})
}

// What root may grant bounds the roles that it creates, in both sets. It also bounds what
// they get without toolGroups, and which roles of agents root spawns.
func TestRootGrant_BoundsCreatedRoles(t *testing.T) {
	f := newFixture(t)
	f.letRootGrant("workspace", "org_management")
	root := f.task(org.TaskSpec{})
	by := identity.ByAgent(root)
	wantSet(t, f.GrantableGroups(root), "workspace,org_management")
	for _, spec := range []org.RoleSpec{{Use: of("command")}, {Use: of("*")}, {Use: of(), Grant: of("command")}} {
		_, err := f.create(by, spec)
		wantCode(t, err, errcode.InsufficientPermissions)
	}
	made := f.role(by, org.RoleSpec{})
	wantSet(t, made.Use, "workspace,org_management")
	chief := f.spawn(root, made.ID)
	f.wantTools(chief, "create_role", "read_file", "spawn_agent", "write_file")
	_, err := f.create(identity.ByAgent(chief), org.RoleSpec{Use: of("command")})
	wantCode(t, err, errcode.InsufficientPermissions)

	hired, _ := f.ConfiguredRole("declared")
	lead := f.spawn(root, hired.ID)
	f.wantTools(lead, "create_role", "run_command", "spawn_agent")
	below := f.role(identity.ByAgent(lead), org.RoleSpec{Use: of("command")})
	f.wantTools(f.spawn(lead, below.ID), "run_command") // from lead's own grant
	_, err = f.trySpawn(root, below.ID)
	wantCode(t, err, errcode.InsufficientPermissions, "command")
	_, err = f.trySpawn(chief, hired.ID)
	wantCode(t, err, errcode.InsufficientPermissions, "command")
}

// What root may grant is a live ceiling: agents gain and lose tools with it, also over
// restarts. Declared roles are not affected.
func TestRootGrant_IsLive(t *testing.T) {
	f := newFixture(t)
	f.letRootGrant("*")
	root := f.task(org.TaskSpec{})
	hired, _ := f.ConfiguredRole("declared")
	lead := f.spawn(root, hired.ID)
	worker := f.spawn(root, f.role(identity.ByAgent(root), org.RoleSpec{Use: of("workspace", "docs")}).ID)
	ofLead := f.spawn(root, f.role(identity.ByAgent(lead), org.RoleSpec{Use: of("command")}).ID)
	top := f.task(org.TaskSpec{Role: string(f.agent(worker).Role)})
	want := func(worker1, ofLead1 []string) {
		t.Helper()
		for range 2 { // in memory, then from the store
			f.wantTools(root, "create_role", "spawn_agent")
			f.wantTools(lead, "create_role", "run_command", "spawn_agent")
			f.wantTools(worker, worker1...)
			f.wantTools(top, worker1...)
			f.wantTools(ofLead, ofLead1...)
			f.reopen()
		}
	}
	want([]string{"read_file", "search", "write_file"}, []string{"run_command"})
	before := f.CurrentEpoch()
	f.letRootGrant("docs")
	if f.CurrentEpoch() != before+1 {
		t.Errorf("got epoch %d after %d", f.CurrentEpoch(), before)
	}
	want([]string{"search"}, nil)
	if got := f.WhyAgent(worker, handle(f.groups, "read_file")); got != "what the organization lets root grant" {
		t.Errorf("got the reason %q", got)
	}
	f.letRootGrant()
	want(nil, nil)
	f.configure(org.RoleConfig{Roles: []org.RoleSpec{declared}, Root: toolgroups.AllGroups(), Keep: true})
	want(nil, nil) // a recorded configuration brings nothing back
	f.letRootGrant("*")
	want([]string{"read_file", "search", "write_file"}, []string{"run_command"})
	if _, ok := f.store.records["meta rootGrant"]; ok {
		t.Error("a root without limit has a record")
	}
}

// Without any groups root creates no role, not even one without tools, and spawns agents
// of declared roles only.
func TestRootGrant_EmptyCreatesNothing(t *testing.T) {
	f := newFixture(t)
	f.letRootGrant("*")
	root := f.task(org.TaskSpec{})
	made := f.role(identity.ByAgent(root), org.RoleSpec{Use: of()})
	byHand := f.role(operator, org.RoleSpec{Use: of("docs")})
	f.letRootGrant()
	wantSet(t, f.GrantableGroups(root), "-")
	for _, use := range []*toolgroups.GroupSet{nil, of(), of("docs")} {
		_, err := f.create(identity.ByAgent(root), org.RoleSpec{Name: "new", Use: use})
		wantCode(t, err, errcode.InsufficientPermissions, "root may grant no tool groups", "spawn agents of the roles")
	}
	_, err := f.trySpawn(root, made.ID)
	wantCode(t, err, errcode.InsufficientPermissions, "root may grant no tool groups")
	hired, _ := f.ConfiguredRole("declared")
	f.wantTools(f.spawn(root, hired.ID), "create_role", "run_command", "spawn_agent")
	f.wantTools(f.spawn(root, byHand.ID), "search")
	guest := f.role(operator, org.RoleSpec{Use: of("docs")})
	_, err = f.trySpawn(f.task(org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID)}), hired.ID) // the caller still limits root
	wantCode(t, err, errcode.InsufficientPermissions, "command")
}

// A group of the list keeps its owner. Another owner does not inherit it, also not with
// the same configuration again.
func TestRootGrant_KeepsOwners(t *testing.T) {
	f := newFixture(t)
	f.letRootGrant("docs")
	root := f.task(org.TaskSpec{})
	if err := grouptest.UnregisterGroup(f.groups, "mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	f.register("mcp:thief", "docs", "search")
	f.letRootGrant("docs")
	made := f.role(identity.ByAgent(root), org.RoleSpec{Use: of("docs")})
	f.wantTools(f.spawn(root, made.ID))
}

// A group that root may not grant any more because its owner changed is listed with those
// that roles have lost, until the list changes.
func TestLostGroups_NamesRoot(t *testing.T) {
	f := newFixture(t)
	f.letRootGrant("docs", "workspace")
	f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs")})
	f.role(operator, org.RoleSpec{Name: "zoe", Use: of("docs")})
	if err := grouptest.UnregisterGroup(f.groups, "mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	if lost := f.LostGroups(); len(lost) > 0 {
		t.Errorf("without an owner %v are lost", lost)
	}
	f.register("mcp:thief", "docs", "search")
	lostBy := func(role string) org.LostGroup {
		return org.LostGroup{Role: role, Group: "docs", Was: "mcp:docs", Is: "mcp:thief"}
	}
	for range 2 { // in memory, then from the store
		if diff := cmp.Diff([]org.LostGroup{lostBy("reader"), lostBy("root"), lostBy("zoe")}, f.LostGroups()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		f.reopen()
	}
	f.letRootGrant("docs")
	if diff := cmp.Diff([]org.LostGroup{lostBy("reader"), lostBy("zoe")}, f.LostGroups()); diff != "" {
		t.Errorf("after the list has changed (-want +got):\n%s", diff)
	}
}

// A record that cannot be read lets root grant nothing.
func TestRootGrant_DamagedRecordGrantsNothing(t *testing.T) {
	for name, damage := range map[string]func(*memoryStore){
		"unreadable": func(m *memoryStore) { m.damaged = append(m.damaged, "rootGrant") },
		"no JSON":    func(m *memoryStore) { m.set("meta", "rootGrant", `{`) },
		"null":       func(m *memoryStore) { m.set("meta", "rootGrant", `null`) },
		"no set":     func(m *memoryStore) { m.set("meta", "rootGrant", `{"Owners":{"docs":"mcp:docs"}}`) },
		"no key": func(m *memoryStore) {
			delete(m.records, "meta rootGrant")
			m.set("meta", "", `1`)
			m.damaged = append(m.damaged, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.letRootGrant("*")
			root := f.task(org.TaskSpec{})
			worker := f.spawn(root, f.role(identity.ByAgent(root), org.RoleSpec{Use: of("docs")}).ID)
			f.letRootGrant("docs")
			f.wantTools(worker, "search")
			damage(f.store)
			f.reopen()
			f.wantTools(worker)
			wantSet(t, f.GrantableGroups(root), "-")
		})
	}
}
