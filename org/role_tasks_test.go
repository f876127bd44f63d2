package org_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// newTasksFixture returns a fixture with a role ops, a role worker that uses everything, and
// a caller in a role clerk whose tasks ops bounds.
func newTasksFixture(t *testing.T) (f *fixture, ops, clerk, worker org.Role, caller identity.Principal) {
	f = newFixture(t)
	ops = f.role(operator, org.RoleSpec{Name: "ops", Use: of("command", "docs")})
	clerk = f.role(operator, org.RoleSpec{Name: "clerk", Use: of("workspace"), TasksAs: ptr("ops")})
	worker = f.role(operator, org.RoleSpec{Name: "worker", Use: of("workspace", "command", "docs", "artifact")})
	return f, ops, clerk, worker, identity.ByCaller("ann", clerk.ID)
}

// hire starts a task of a caller and returns an agent in it, of a new role of the operator
// that uses some groups.
func (f *fixture) hire(caller identity.Principal, use ...toolgroups.GroupID) identity.AgentID {
	f.t.Helper()
	role := f.role(operator, org.RoleSpec{Use: of(use...)})
	return f.spawn(f.task(org.TaskSpec{Caller: caller}), role.ID)
}

// The tasks of a caller are bounded by what the role in tasks.as may use, in place of what
// the caller's role may use. The caller's own calls stay what they were.
func TestTasksAs_BoundsTasks(t *testing.T) {
	f, ops, _, worker, caller := newTasksFixture(t)
	root := f.task(org.TaskSpec{Caller: caller})
	wantSet(t, f.GrantableGroups(root), "command,docs")
	_, err := f.trySpawn(root, worker.ID)
	wantCode(t, err, errcode.InsufficientPermissions)
	made := f.role(identity.ByAgent(root), org.RoleSpec{})
	for range 2 {
		f.wantTools(f.spawn(root, made.ID), "run_command", "search")
		ref, _ := f.ResolveView(caller)
		if diff := cmp.Diff(ref.CurrentView().ToolNames(), []string{"read_file", "write_file"}); diff != "" {
			t.Errorf("the caller's own tools, got before want:\n%s", diff)
		}
		f.reopen()
	}
	task, _ := f.TaskByID(f.agent(root).Task)
	if task.As != ops.ID || task.CallerRole == ops.ID || !task.StartedBy(caller) {
		t.Errorf("the task is recorded as %+v", task)
	}
}

// Role and groups of a task are held to the role in tasks.as. What the caller reads when it
// asks for more does not tell what else there is.
func TestTasksAs_BoundsRoleAndGroups(t *testing.T) {
	f, _, clerk, _, caller := newTasksFixture(t)
	start := func(s org.TaskSpec) error {
		s.Caller = caller
		_, _, _, err := f.StartTask("asked", s)
		return err
	}
	wantCode(t, start(org.TaskSpec{Role: "worker"}), errcode.RoleNotFound, `there is no role "worker"`)
	wantCode(t, start(org.TaskSpec{Role: "nobody"}), errcode.RoleNotFound, `there is no role "nobody"`)
	wantCode(t, start(org.TaskSpec{Role: string(clerk.ID)}), errcode.RoleNotFound)
	wantCode(t, start(org.TaskSpec{Groups: of("workspace")}), errcode.InsufficientPermissions)
	wantCode(t, start(org.TaskSpec{Groups: of("docs", "nothing")}), errcode.InsufficientPermissions)
	wantCode(t, start(org.TaskSpec{State: "draft"}), errcode.InsufficientPermissions, "lists no such state")
	f.wantTools(f.task(org.TaskSpec{Caller: caller, Role: "ops"}), "run_command", "search")
	f.wantTools(f.task(org.TaskSpec{Caller: caller, Role: "ops", Groups: of("docs")}), "search")
}

// A task has no more than the role in tasks.as had at its start, and than that role has now.
func TestTasksAs_FollowsRole(t *testing.T) {
	f, ops, clerk, _, caller := newTasksFixture(t)
	agent := f.hire(caller, "command", "docs")
	for _, step := range []struct {
		role org.Role
		spec org.RoleSpec
		want []string
	}{
		{ops, org.RoleSpec{Use: of("docs")}, []string{"search"}},
		{ops, org.RoleSpec{Use: of("*")}, []string{"run_command", "search"}},
		{ops, org.RoleSpec{Server: ptr("docs")}, nil},
		{ops, org.RoleSpec{Server: ptr("")}, []string{"run_command", "search"}},
		{clerk, org.RoleSpec{Use: of()}, []string{"run_command", "search"}},
		{clerk, org.RoleSpec{Server: ptr("docs")}, []string{"run_command", "search"}},
		{clerk, org.RoleSpec{TasksAs: ptr("")}, nil},
		{clerk, org.RoleSpec{Use: of("*"), Server: ptr("")}, []string{"run_command", "search"}},
		{clerk, org.RoleSpec{TasksAs: ptr("ops")}, []string{"run_command", "search"}},
	} {
		f.update(step.role.ID, step.spec)
		f.wantTools(agent, step.want...)
	}
	f.reopen()
	f.wantTools(agent, "run_command", "search")
	f.remove(clerk.ID)
	f.wantTools(agent)
}

// What the creators of the role in tasks.as may grant bounds the tasks too.
func TestTasksAs_BoundedByCreators(t *testing.T) {
	f := newFixture(t)
	lead := f.role(operator, org.RoleSpec{Name: "lead", Use: of("org_management"), Grant: of("command", "docs")})
	ops := f.role(identity.ByAgent(f.spawn(f.task(org.TaskSpec{}), lead.ID)), org.RoleSpec{Name: "ops", Use: of("command", "docs")})
	clerk := f.role(operator, org.RoleSpec{Use: of(), TasksAs: ptr(string(ops.ID))})
	agent := f.hire(identity.ByCaller("ann", clerk.ID), "command", "docs")
	f.wantTools(agent, "run_command", "search")
	f.update(lead.ID, org.RoleSpec{Grant: of("docs")})
	f.wantTools(agent, "search")
	f.remove(lead.ID)
	f.wantTools(agent)
}

// The requests of a task follow the hosts of the role in tasks.as, not of the caller's role.
func TestTasksAs_BoundsHosts(t *testing.T) {
	f := newFixture(t)
	ops := f.role(operator, org.RoleSpec{Name: "ops", Hosts: allow("a.x", "b.x")})
	clerk := f.role(operator, org.RoleSpec{Name: "clerk", Hosts: allow("c.x"), TasksAs: ptr("ops")})
	agent := f.hire(identity.ByCaller("ann", clerk.ID), "docs")
	for _, step := range []struct {
		rule *hosts.HostRule
		want string
	}{{allow("a.x", "b.x"), "ab"}, {allow("b.x", "c.x"), "b"}, {allow("*"), "ab"}} {
		f.update(ops.ID, org.RoleSpec{Hosts: step.rule})
		f.wantReach(agent, step.want)
	}
	if got := f.reachable(identity.ByCaller("ann", clerk.ID)); got != "c" {
		t.Errorf("the caller's own requests reach %q, want c", got)
	}
}

// A role that was deleted bounds tasks by nothing: they are denied everything, and none is
// started. A new role of its name does not change that, before the operator names it.
func TestTasksAs_DeletedRoleDeniesEverything(t *testing.T) {
	f, ops, clerk, _, caller := newTasksFixture(t)
	agent := f.hire(caller, "command", "docs")
	top := f.task(org.TaskSpec{Caller: caller, Role: "ops"})
	f.remove(ops.ID)
	again := f.role(operator, org.RoleSpec{Name: "ops", Use: of("*")})
	for range 2 {
		f.wantTools(agent)
		f.wantTools(top)
		_, _, _, err := f.StartTask("late", org.TaskSpec{Caller: caller})
		wantCode(t, err, errcode.InsufficientPermissions)
		if strings.Contains(err.Error(), "ops") || strings.Contains(err.Error(), string(ops.ID)) {
			t.Errorf("the error names the role: %v", err)
		}
		if f.MayStartTasks(clerk.ID) {
			t.Error("callers may start tasks")
		}
		f.update(clerk.ID, org.RoleSpec{Prompt: f.id("another ")}) // another change does not bind it again
		f.reopen()
	}
	f.update(clerk.ID, org.RoleSpec{TasksAs: ptr("ops")})
	if got, _ := f.RoleByID(clerk.ID); got.Tasks.As != again.ID || !f.MayStartTasks(clerk.ID) {
		t.Errorf("named again, tasks.as is %q, want %q", got.Tasks.As, again.ID)
	}
	f.wantTools(agent, "run_command", "search")
}

// Roles that bound the tasks of each other, or of themselves, grant nothing: the
// tasks.as of a role in tasks.as does not count.
func TestTasksAs_Circle(t *testing.T) {
	f, ops, clerk, _, caller := newTasksFixture(t)
	agent := f.hire(caller, "command", "docs")
	strong := f.role(operator, org.RoleSpec{Name: "strong", Use: of("*")})
	f.update(ops.ID, org.RoleSpec{Use: of("docs"), TasksAs: ptr("strong")})
	f.wantTools(agent, "search")
	f.update(ops.ID, org.RoleSpec{TasksAs: ptr("clerk")})
	f.wantTools(agent, "search")
	f.wantTools(f.hire(identity.ByCaller("bob", ops.ID), "workspace"), "read_file", "write_file")
	f.update(strong.ID, org.RoleSpec{Use: of("docs"), TasksAs: ptr("strong")})
	f.wantTools(f.hire(identity.ByCaller("eve", strong.ID), "docs"), "search")
	f.update(clerk.ID, org.RoleSpec{TasksAs: ptr("clerk")})
	f.wantTools(agent)
	f.reopen()
	f.wantTools(f.hire(caller, "workspace"), "read_file", "write_file")
}

// Callers may start tasks with tasks.as, or with a tool of org_management.
func TestMayStartTasks(t *testing.T) {
	f, _, clerk, worker, _ := newTasksFixture(t)
	lead := f.role(operator, org.RoleSpec{Use: of("org_management")})
	for id, want := range map[identity.RoleID]bool{clerk.ID: true, worker.ID: false, lead.ID: true, "nowhere": false, org.RootRole: false} {
		if got := f.MayStartTasks(id); got != want {
			t.Errorf("role %s: %v, want %v", id, got, want)
		}
	}
	f.update(worker.ID, org.RoleSpec{TasksAs: ptr("worker")})
	if !f.MayStartTasks(worker.ID) {
		t.Error("a role in its own tasks.as may start no tasks")
	}
	f.remove(clerk.ID)
	if f.MayStartTasks(clerk.ID) {
		t.Error("a deleted role may start tasks")
	}
}

// Only the operator and the configuration write tasks.as, and only on roles of their own.
func TestTasksAs_OnlyForRolesOfOperator(t *testing.T) {
	f, ops, clerk, _, _ := newTasksFixture(t)
	root := identity.ByAgent(f.task(org.TaskSpec{}))
	_, err := f.create(root, org.RoleSpec{Use: of("docs"), TasksAs: ptr("ops")})
	wantCode(t, err, errcode.InvalidRole, "tasks.as")
	made := f.role(root, org.RoleSpec{Name: "made", Use: of("docs")})
	_, _, _, err = f.UpdateRole(operator, made.ID, org.RoleSpec{TasksAs: ptr("ops")}, false)
	wantCode(t, err, errcode.InvalidRole, "tasks.as")
	_, err = f.create(operator, org.RoleSpec{TasksAs: ptr("nobody")})
	wantCode(t, err, errcode.InvalidRole, `there is no role "nobody"`)
	f.remove(ops.ID)
	_, _, _, err = f.UpdateRole(operator, clerk.ID, org.RoleSpec{TasksAs: ptr(string(ops.ID))}, false)
	wantCode(t, err, errcode.InvalidRole, "there is no role")
	f.update(clerk.ID, org.RoleSpec{Defaults: []org.RoleField{org.TasksField}})
	if got, _ := f.RoleByID(clerk.ID); got.Tasks != (org.RoleTasks{}) {
		t.Errorf("the default of tasks is %+v", got.Tasks)
	}
}

// The record of an agent's role that has tasks.as is rejected. An unknown role in tasks.as
// bounds by nothing.
func TestTasksAs_ForgedRecords(t *testing.T) {
	f, ops, clerk, _, caller := newTasksFixture(t)
	made := f.role(identity.ByAgent(f.task(org.TaskSpec{})), org.RoleSpec{Name: "made", Use: of("docs")})
	bob := identity.ByCaller("bob", made.ID)
	agent, other := f.hire(caller, "docs"), f.hire(bob, "docs")
	f.wantTools(other, "search")
	forge := func(r org.Role, from, to string) {
		t.Helper()
		record := string(f.store.records["role "+string(r.ID)])
		if !strings.Contains(record, from) {
			t.Fatalf("the record %s has no %s", record, from)
		}
		f.store.set("role", string(r.ID), strings.Replace(record, from, to, 1))
	}
	forge(made, `,"revision":`, `,"tasks":{"as":"`+string(ops.ID)+`"},"revision":`)
	forge(clerk, `"as":"`+string(ops.ID), `"as":"root`)
	f.reopen()
	f.wantTools(agent)
	f.wantTools(other)
	if _, err := f.FindRole("made"); errcode.CodeOf(err) != errcode.RoleNotFound || f.MayStartTasks(made.ID) {
		t.Errorf("the forged role: %v", err)
	}
	forge(clerk, `"as":"root`, `"as":"nowhere`)
	f.reopen()
	f.wantTools(agent)
}

// A configuration binds tasks.as to the roles that it has made active. A role that it takes
// away and makes again bounds tasks again, because the configuration names it again.
func TestApplyRoles_TasksAs(t *testing.T) {
	f := newFixture(t)
	ops := org.RoleSpec{Name: "ops", Use: of("command", "docs")}
	clerk := org.RoleSpec{Name: "clerk", Use: of("workspace"), TasksAs: ptr("ops")}
	self := org.RoleSpec{Name: "self", Use: of("docs"), TasksAs: ptr("self")}
	edits := f.configure(org.RoleConfig{Root: toolgroups.AllGroups(), Roles: []org.RoleSpec{clerk, self, ops}})
	if len(edits) != 3 || edits[0].Role.Tasks.As != edits[2].Role.ID || edits[1].Role.Tasks.As != edits[1].Role.ID || edits[0].Role.Revision != 1 {
		t.Fatalf("got %+v", edits)
	}
	caller := identity.ByCaller("ann", edits[0].Role.ID)
	agent := f.hire(caller, "command", "docs")
	f.wantTools(agent, "run_command", "search")
	f.reopen()
	if edits := f.configure(org.RoleConfig{Root: toolgroups.AllGroups(), Roles: []org.RoleSpec{clerk, self, ops}}); len(edits) != 0 {
		t.Errorf("the same again changed %+v", edits)
	}

	plain := clerk
	plain.TasksAs = nil
	edits = f.configure(org.RoleConfig{Root: toolgroups.AllGroups(), Roles: []org.RoleSpec{plain, self}})
	if len(edits) != 2 || edits[1].Change != "updated" || edits[1].Role.Revision != 2 || edits[1].Diff.Counts.Tasks != 1 {
		t.Errorf("got %+v, want ops deleted and clerk updated", edits)
	}
	f.wantTools(agent)
	f.configure(org.RoleConfig{Root: toolgroups.AllGroups(), Roles: []org.RoleSpec{clerk, self, ops}})
	f.wantTools(agent, "run_command", "search")
	f.reopen()
	f.wantTools(agent, "run_command", "search")

	err := f.groups.UpdateWith(func(change toolgroups.Change) error {
		_, err := f.ApplyRoles(org.RoleConfig{Root: toolgroups.AllGroups(), Roles: []org.RoleSpec{clerk, self}}, change)
		return err
	}, func(*toolgroups.Tx) error { return nil })
	wantCode(t, err, errcode.InvalidRole, `configure role "clerk": tasks.as: there is no role "ops"`)
	f.wantTools(agent, "run_command", "search")
}

// A recorded configuration leaves tasks.as of existing roles as it is.
func TestApplyRoles_KeepLeavesTasksAs(t *testing.T) {
	f := newFixture(t)
	specs := []org.RoleSpec{{Name: "ops", Use: of("docs")}, {Name: "clerk", Use: of(), TasksAs: ptr("ops")}}
	clerk := f.configure(org.RoleConfig{Root: toolgroups.AllGroups(), Roles: specs})[1].Role
	if edits := f.configure(org.RoleConfig{Root: toolgroups.AllGroups(), Roles: []org.RoleSpec{{Name: "ops", Use: of("*")}, {Name: "clerk", TasksAs: ptr("")}, {Name: "late", TasksAs: ptr("ops")}}, Keep: true}); len(edits) != 1 || edits[0].Role.Tasks.As != clerk.Tasks.As {
		t.Errorf("got %+v, want the role late alone", edits)
	}
	f.configure(org.RoleConfig{Root: toolgroups.AllGroups()})
	edits := f.configure(org.RoleConfig{Root: toolgroups.AllGroups(), Roles: []org.RoleSpec{{Name: "ops"}, {Name: "new", TasksAs: ptr("ops")}}, Keep: true})
	if len(edits) != 1 || edits[0].Role.Tasks.As != clerk.Tasks.As || f.MayStartTasks(edits[0].Role.ID) {
		t.Errorf("got %+v, want a role whose tasks the deleted role bounds", edits)
	}
}

// The diff of a change says what the tasks of callers gain and lose, if it concerns their
// role, the role in its tasks.as, or a role that limits that.
func TestDiff_NamesTasks(t *testing.T) {
	f, ops, clerk, _, _ := newTasksFixture(t)
	tasks := func(as string, gains, loses []string) []org.TasksDiff {
		return []org.TasksDiff{{ID: clerk.ID, Role: "clerk", As: as, AccessChange: org.AccessChange{Gains: gains, Loses: loses}}}
	}
	for _, tt := range []struct {
		name string
		role org.Role
		spec org.RoleSpec
		want []org.TasksDiff
	}{
		{"narrowed", ops, org.RoleSpec{Use: of("docs", "artifact")}, tasks("ops", []string{"put_artifact"}, []string{"run_command"})},
		{"prompt", ops, org.RoleSpec{Prompt: "new"}, []org.TasksDiff{}},
		{"the caller's own tools", clerk, org.RoleSpec{Use: of()}, []org.TasksDiff{}},
		{"another role", clerk, org.RoleSpec{TasksAs: ptr("clerk")}, tasks("clerk", []string{"read_file", "write_file"}, []string{"run_command", "search"})},
		{"none", clerk, org.RoleSpec{TasksAs: ptr("")}, tasks("", []string{}, []string{"run_command", "search"})},
		{"none, with org_management", clerk, org.RoleSpec{TasksAs: ptr(""), Use: of("org_management", "docs")}, tasks("", []string{"create_role", "spawn_agent"}, []string{"run_command"})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got, _, err := f.UpdateRole(operator, tt.role.ID, tt.spec, true)
			if diff := cmp.Diff(got.Tasks, tt.want); err != nil || diff != "" || got.Counts.Tasks != len(tt.want) {
				t.Errorf("%v, got before want:\n%s", err, diff)
			}
		})
	}
	for _, id := range []identity.RoleID{ops.ID, clerk.ID} {
		got, _, err := f.DeleteRole(operator, id, true)
		if diff := cmp.Diff(got.Tasks, tasks("ops", []string{}, []string{"run_command", "search"})); err != nil || diff != "" {
			t.Errorf("%v, deleting %s, got before want:\n%s", err, id, diff)
		}
	}
}
