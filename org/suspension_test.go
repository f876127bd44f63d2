package org_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

func (f *fixture) suspend(id identity.RoleID) org.PermissionDiff {
	return f.suspension(func(by identity.Principal, id identity.RoleID) (org.Role, org.PermissionDiff, []org.RecordChange, error) {
		return f.PauseRole(by, id, "")
	}, id)
}
func (f *fixture) resume(id identity.RoleID) org.PermissionDiff {
	return f.suspension(f.ResumeRole, id)
}

func (f *fixture) suspension(set func(identity.Principal, identity.RoleID) (org.Role, org.PermissionDiff, []org.RecordChange, error), id identity.RoleID) org.PermissionDiff {
	f.t.Helper()
	_, diff, changes, err := set(operator, id)
	if err != nil {
		f.t.Fatal(err)
	}
	f.store.put(changes)
	return diff
}

// callerTools returns the tools of ann in a role.
func (f *fixture) callerTools(id identity.RoleID) []string {
	ref, _ := f.ResolveView(identity.ByCaller("ann", id))
	return ref.CurrentView().ToolNames()
}

// A suspended role takes everything from its agents and callers, and from what its agents
// created; resuming it restores what was there. Both survive a restart.
func TestSuspendRole_StopsAgentsAndCallers(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management", "docs", "workspace"), Grant: of("docs", "workspace")})
	chief := f.spawn(root, boss.ID)
	made := f.role(identity.ByAgent(chief), org.RoleSpec{Name: "made", Use: of("docs")})
	worker := f.spawn(chief, made.ID)
	bystander := f.spawn(root, f.role(operator, org.RoleSpec{Name: "by", Use: of("docs")}).ID)
	external := f.task(org.TaskSpec{Caller: identity.ByCaller("ann", boss.ID), Role: string(boss.ID)})
	running := map[identity.AgentID][]string{chief: f.tools(chief), worker: f.tools(worker), external: f.tools(external), bystander: f.tools(bystander)}
	caller := f.callerTools(boss.ID)
	if len(running[chief]) == 0 || len(running[worker]) == 0 || len(running[external]) == 0 || len(caller) == 0 {
		t.Fatalf("nothing to lose: %v, %v", running, caller)
	}
	epoch := f.CurrentEpoch()
	diff := f.suspend(boss.ID)
	if diff.Counts != (org.DiffCounts{Agents: 3, Roles: 2, Callers: 1}) || f.CurrentEpoch() != epoch+1 {
		t.Errorf("got %+v", diff)
	}
	for range 2 {
		f.wantTools(chief)
		f.wantTools(worker)
		f.wantTools(external)
		f.wantTools(bystander, running[bystander]...)
		if got := f.callerTools(boss.ID); len(got) != 0 {
			t.Errorf("the caller has %v", got)
		}
		if got := f.WhyAgent(chief, handle(f.groups, "search")); got != "role boss is paused" {
			t.Errorf("the agent is denied by %q", got)
		}
		if got := f.WhyAgent(worker, handle(f.groups, "search")); got != "role boss is paused" {
			t.Errorf("the agent of the created role is denied by %q", got)
		}
		f.reopen()
	}
	if diff := f.suspend(boss.ID); !diff.IsEmpty() || diff.Agents == nil {
		t.Errorf("again: %+v", diff)
	}
	f.resume(boss.ID)
	for range 2 {
		for agent, tools := range running {
			f.wantTools(agent, tools...)
		}
		if diff := cmp.Diff(f.callerTools(boss.ID), caller); diff != "" {
			t.Errorf("the caller's tools, got before want:\n%s", diff)
		}
		f.reopen()
	}
}

// The reason of denials names the suspended role to its own agents, and no other role.
func TestSuspendRole_Reason(t *testing.T) {
	f := newFixture(t)
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management", "docs"), Grant: of("docs"), ToolGated: ptr(toolgroups.Gated)})
	chief := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	worker := f.spawn(chief, f.role(identity.ByAgent(chief), org.RoleSpec{Name: "made", Use: of("docs")}).ID)
	f.suspend(boss.ID)
	for agent, want := range map[identity.AgentID]string{chief: "role boss is paused", worker: "a role that bounds this one is paused"} {
		ref, _ := f.ResolveView(identity.ByAgent(agent))
		for _, rule := range []toolgroups.DecisionRule{toolgroups.NotGranted, toolgroups.NoSuchTool} {
			if e := ref.CurrentView().RuleEvaluation(rule); e.Suspended != want || e.Gating != toolgroups.Gated {
				t.Errorf("%v: got %+v, want %q", rule, e, want)
			}
		}
	}
}

// Nothing begins with a suspended role: no agent, no task and no task of its callers.
func TestSuspendRole_NothingBegins(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	r := f.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
	f.suspend(r.ID)
	_, err := f.trySpawn(root, r.ID)
	wantCode(t, err, errcode.InsufficientPermissions, "the operator has paused it")
	if list, _ := f.SpawnableRoles(root, "", 10); len(list) != 0 {
		t.Errorf("offered for hire: %v", list)
	}
	ann := identity.ByCaller("ann", r.ID)
	for _, spec := range []org.TaskSpec{{Caller: operator, Role: "r"}, {Caller: ann}, {Caller: ann, Role: string(r.ID)}} {
		_, _, _, err := f.StartTask(identity.TaskID(f.id("t")), spec)
		wantCode(t, err, errcode.InsufficientPermissions, "the operator has paused it")
	}
	f.resume(r.ID)
	f.spawn(root, r.ID)
	f.task(org.TaskSpec{Caller: ann})
}

// Only the operator suspends and resumes, and never root or a role that does not exist.
func TestSuspendRole_Errors(t *testing.T) {
	f := newFixture(t)
	r := f.role(operator, org.RoleSpec{Name: "r", Use: of("org_management")})
	agent := f.spawn(f.task(org.TaskSpec{}), r.ID)
	f.suspend(r.ID)
	for _, by := range []identity.Principal{{}, identity.ByAgent(agent), identity.ByCaller("ann", r.ID), {Kind: identity.Configuration}} {
		_, _, _, err := f.PauseRole(by, r.ID, "")
		wantCode(t, err, errcode.InsufficientPermissions)
		_, _, changes, err := f.ResumeRole(by, r.ID)
		wantCode(t, err, errcode.InsufficientPermissions)
		if got, _ := f.RoleByID(r.ID); changes != nil || !got.Suspended() {
			t.Errorf("%v resumed the role", by)
		}
	}
	_, _, _, err := f.PauseRole(operator, org.RootRole, "")
	wantCode(t, err, errcode.Conflict, "root cannot be paused")
	_, _, _, err = f.PauseRole(operator, "nowhere", "")
	wantCode(t, err, errcode.RoleNotFound)
	if _, _, err := f.DeleteRole(operator, r.ID, false); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = f.ResumeRole(operator, r.ID)
	wantCode(t, err, errcode.RoleNotFound)
}

// No update, configuration, deletion or revival lifts a suspension.
func TestSuspendRole_IsNotLiftedByOthers(t *testing.T) {
	all := toolgroups.AllGroups()
	config := func(use *toolgroups.GroupSet) org.RoleConfig {
		return org.RoleConfig{Roles: []org.RoleSpec{{Name: "r", Use: use}}, Default: all, Root: all}
	}
	wantSuspended := func(f *fixture, what string, want bool) {
		t.Helper()
		r, ok := f.RoleByName("r")
		if !ok || r.Suspended() != want || (len(f.callerTools(r.ID)) == 0) != want {
			t.Errorf("%s: got suspended at %v with %v, want %v", what, r.SuspendedAt, f.callerTools(r.ID), want)
		}
	}
	t.Run("of the configuration", func(t *testing.T) {
		f := newFixture(t)
		f.configure(config(of("docs")))
		r, _ := f.RoleByName("r")
		f.suspend(r.ID)
		f.configure(config(of("docs")))
		wantSuspended(f, "the same file", true)
		f.configure(config(of("docs", "workspace")))
		wantSuspended(f, "another file", true)
		f.configure(org.RoleConfig{Default: all, Root: all})
		f.reopen()
		f.configure(config(of("docs")))
		again, _ := f.RoleByName("r")
		wantSuspended(f, "deleted and created again", true)
		if again.ID == r.ID {
			t.Error("the new role has the old id")
		}
		f.configure(org.RoleConfig{Default: all, Root: all})
		keep := config(of("docs"))
		keep.Keep, keep.Revive = true, true
		f.configure(keep)
		wantSuspended(f, "revived", true)
		f.resume(again.ID)
		wantSuspended(f, "resumed", false)
		f.configure(org.RoleConfig{Default: all, Root: all})
		f.configure(config(of("docs")))
		wantSuspended(f, "deleted and created again after it was resumed", false)
	})
	t.Run("of the operator", func(t *testing.T) {
		f := newFixture(t)
		r := f.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
		f.suspend(r.ID)
		f.update(r.ID, org.RoleSpec{Use: of("workspace")})
		wantSuspended(f, "updated", true)
		f.update(r.ID, org.RoleSpec{Name: "other"})
		f.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
		wantSuspended(f, "the name of a renamed role", true)
	})
}

// A role that is created while the record of a role is damaged may be the one of that record, which may
// have been paused. So it is paused until the operator resumes it.
func TestSuspendRole_DamagedRecord(t *testing.T) {
	all := toolgroups.AllGroups()
	config := org.RoleConfig{Roles: []org.RoleSpec{{Name: "r", Use: of("docs")}, {Name: "new", Use: of("docs")}}, Default: all, Root: all}
	for value, paused := range map[string]string{
		"damaged": "new r", "": "new r", `7`: "new r", `null`: "new r", `{"id":"ID","name":7,"createdBy":"config"}`: "new r",
		`{"id":"ID","name":"r","createdBy":"config","suspendedAt":7}`:                    "r",
		`{"id":"ID","name":"s","formerNames":["r"],"createdBy":"config","revision":"x"}`: "r",
		`{"id":"ID","name":"s","formerNames":7,"createdBy":"config","revision":"x"}`:     "new r",
		`{"id":"other","name":"r","createdBy":"config","status":"active"}`:               "r",
		`{"id":"ID","name":"r","createdBy":"agent","createdByRole":"x","revision":"x"}`:  "",
	} {
		f := newFixture(t)
		f.configure(org.RoleConfig{Roles: config.Roles[:1], Default: all, Root: all})
		r, _ := f.RoleByName("r")
		f.suspend(r.ID)
		if value == "damaged" {
			f.store.damaged = append(f.store.damaged, string(r.ID))
		} else {
			f.store.set("role", string(r.ID), strings.ReplaceAll(value, "ID", string(r.ID)))
		}
		f.reopen()
		f.configure(config)
		got := []string{}
		for _, role := range f.ListRoles() {
			if role.Suspended() {
				got = append(got, role.Name)
			}
		}
		if strings.Join(got, " ") != paused {
			t.Errorf("%s: got %v paused, want %s", value, got, paused)
		}
		again, _ := f.RoleByName("r")
		f.resume(again.ID)
		f.reopen()
		f.configure(config)
		if again, _ = f.RoleByName("r"); again.Suspended() {
			t.Errorf("%s: paused after it was resumed", value)
		}
	}
}
