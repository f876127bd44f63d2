package org_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// spawnUntilLimited spawns agents until one is rejected and returns how many were made.
func (f *fixture) spawnUntilLimited(spawn func() error) int {
	f.t.Helper()
	for n := range 1000 {
		if err := spawn(); err != nil {
			if errcode.CodeOf(err) != errcode.LimitExceeded {
				f.t.Fatal(err)
			}
			return n
		}
	}
	f.t.Fatal("no limit")
	return 0
}

func (f *fixture) spawnOne(parent identity.AgentID, role identity.RoleID) error {
	_, err := f.trySpawn(parent, role)
	return err
}

func TestTaskLimits_Agents(t *testing.T) {
	f := newFixture(t)
	f.SetLimits(org.TaskLimits{Agents: 4})
	worker := f.role(operator, org.RoleSpec{Use: of(toolgroups.Command)})
	first, second := f.task(org.TaskSpec{}), f.task(org.TaskSpec{})
	if n := f.spawnUntilLimited(func() error { return f.spawnOne(first, worker.ID) }); n != 3 {
		t.Errorf("root has spawned %d agents, want 3 beside itself", n)
	}
	if err := f.spawnOne(second, worker.ID); err != nil {
		t.Errorf("another task is limited too: %v", err)
	}
	child := f.AgentTree(first)[0]
	_, changes, err := f.TerminateAgent(operator, child, "", "", f.stored)
	f.store.put(changes)
	if err != nil {
		t.Fatal(err)
	}
	if n := f.spawnUntilLimited(func() error { return f.spawnOne(first, worker.ID) }); n != 1 {
		t.Errorf("after one agent has ended %d more were spawned, want 1", n)
	}
	f.reopen()
	f.SetLimits(org.TaskLimits{Agents: 4})
	if n := f.spawnUntilLimited(func() error { return f.spawnOne(first, worker.ID) }); n != 0 {
		t.Errorf("after a restart %d more were spawned, want 0", n)
	}
	f.SetLimits(org.TaskLimits{Agents: 2}) // below what is in use: what there is stays
	if n := f.spawnUntilLimited(func() error { return f.spawnOne(first, worker.ID) }); n != 0 || len(f.ListAgents("")) != 6 {
		t.Errorf("%d more were spawned, %d agents are left", n, len(f.ListAgents("")))
	}
}

// The names of the agents of a task that is refused are not counted.
func TestTaskLimits_RefusedTaskLeavesNothing(t *testing.T) {
	f := newFixture(t)
	f.SetLimits(org.TaskLimits{Agents: 1})
	f.role(operator, org.RoleSpec{Name: "worker", Use: of(toolgroups.Command)})
	refused := f.spawnUntilLimited(func() error {
		_, _, changes, err := f.StartTask(identity.TaskID(f.id("task")), org.TaskSpec{Caller: operator, Role: "worker"})
		f.store.put(changes)
		return err
	})
	if n := f.NamedTasks(); n != refused {
		t.Errorf("the names of %d tasks are counted, want %d", n, refused)
	}
}

// All tasks together have ten times the limit of one; the agents of an ended task do not
// count.
func TestTaskLimits_AgentsOfOrganization(t *testing.T) {
	f := newFixture(t)
	f.SetLimits(org.TaskLimits{Agents: 1})
	start := func() error {
		_, _, changes, err := f.StartTask(identity.TaskID(f.id("task")), org.TaskSpec{Caller: operator})
		f.store.put(changes)
		return err
	}
	if n := f.spawnUntilLimited(start); n != 10 {
		t.Errorf("%d tasks were started, want 10", n)
	}
	ended := f.ListTasks()[0]
	f.EndTask(&ended, org.TaskEnd{Status: org.Done}, 0)
	if n := f.spawnUntilLimited(start); n != 1 {
		t.Errorf("after one task has ended %d more were started, want 1", n)
	}
}

func TestTaskLimits_Depth(t *testing.T) {
	f := newFixture(t)
	f.SetLimits(org.TaskLimits{Depth: 3})
	boss := f.role(operator, org.RoleSpec{Use: of(toolgroups.OrgManagement)})
	at := f.task(org.TaskSpec{})
	n := f.spawnUntilLimited(func() error {
		child, err := f.trySpawn(at, boss.ID)
		if err == nil {
			at = child
		}
		return err
	})
	if n != 3 {
		t.Errorf("the agents are %d deep below root, want 3", n)
	}
}

func TestTaskLimits_Roles(t *testing.T) {
	f := newFixture(t)
	f.SetLimits(org.TaskLimits{Roles: 2})
	first, second := identity.ByAgent(f.task(org.TaskSpec{})), identity.ByAgent(f.task(org.TaskSpec{}))
	create := func(by identity.Principal) func() error {
		return func() error {
			_, err := f.create(by, org.RoleSpec{Name: f.id("role"), Use: of(toolgroups.Command)})
			return err
		}
	}
	if n := f.spawnUntilLimited(create(first)); n != 2 {
		t.Errorf("a task has created %d roles, want 2", n)
	}
	if err := create(second)(); err != nil {
		t.Errorf("another task is limited too: %v", err)
	}
	for range 5 {
		if err := create(operator)(); err != nil {
			t.Errorf("the operator is limited: %v", err)
		}
	}
	f.reopen()
	f.SetLimits(org.TaskLimits{Roles: 2})
	err := create(first)()
	if errcode.CodeOf(err) != errcode.LimitExceeded || !strings.Contains(err.Error(), "2 roles") {
		t.Errorf("after a restart: %v", err)
	}
}

// startTasks starts tasks of by until one is rejected and returns how many there are.
func (f *fixture) startTasks(by identity.Principal) int {
	return f.spawnUntilLimited(func() error {
		_, _, changes, err := f.StartTask(identity.TaskID(f.id("task")), org.TaskSpec{Caller: by})
		f.store.put(changes)
		return err
	})
}

// A caller has at most half of the agents that others leave, in all of its tasks. The last
// tenth is for the operator.
func TestCallerShare_Agents(t *testing.T) {
	f := newFixture(t)
	f.SetLimits(org.TaskLimits{Agents: 4})
	role := f.role(operator, org.RoleSpec{Name: "caller", Use: of(toolgroups.OrgManagement, toolgroups.Command)})
	worker := f.role(operator, org.RoleSpec{Name: "worker", Use: of(toolgroups.Command)})
	bob := identity.ByCaller("bob", role.ID)
	first := f.task(org.TaskSpec{Caller: ann(role)})
	if n := f.startTasks(ann(role)); n != 17 {
		t.Errorf("ann has started %d tasks more, want 17", n)
	}
	if err := f.spawnOne(first, worker.ID); errcode.CodeOf(err) != errcode.LimitExceeded {
		t.Errorf("ann spawns one more: %v", err)
	}
	f.reopen()
	f.SetLimits(org.TaskLimits{Agents: 4})
	if n := f.startTasks(ann(role)); n != 0 {
		t.Errorf("after a restart ann has started %d tasks, want 0", n)
	}
	if n := f.startTasks(bob); n != 9 {
		t.Errorf("bob has started %d tasks, want 9", n)
	}
	for n := range 10 {
		f.startTasks(identity.ByCaller(identity.UserName(f.id("user")), role.ID))
		if n == 9 && f.startTasks(identity.ByCaller("late", role.ID)) != 0 {
			t.Error("callers take what is left for the operator")
		}
	}
	if n := f.startTasks(operator); n != 4 {
		t.Errorf("the operator has started %d tasks, want 4", n)
	}
	ended, _ := f.TaskByID(f.agent(first).Task)
	f.EndTask(&ended, org.TaskEnd{Status: org.Done}, 0)
	if n := f.startTasks(operator); n != 1 {
		t.Errorf("after a task has ended the operator has started %d tasks, want 1", n)
	}
}

// The roles that the agents of a caller's tasks create count to the caller, also after the
// tasks have ended, until the operator deletes them.
func TestCallerShare_Roles(t *testing.T) {
	f := newFixture(t)
	f.SetLimits(org.TaskLimits{Roles: 2})
	role := f.role(operator, org.RoleSpec{Name: "caller", Use: of(toolgroups.OrgManagement, toolgroups.Command)})
	createAll := func(by identity.Principal) int {
		n := 0
		for range 20 {
			root := f.task(org.TaskSpec{Caller: by})
			n += f.spawnUntilLimited(func() error {
				_, err := f.create(identity.ByAgent(root), org.RoleSpec{Name: f.id("role"), Use: of(toolgroups.Command)})
				return err
			})
			task, _ := f.TaskByID(f.agent(root).Task)
			f.store.put(f.EndTask(&task, org.TaskEnd{Status: org.Done}, 0))
		}
		return n
	}
	bob := identity.ByCaller("bob", role.ID)
	if n := createAll(ann(role)); n != 9 {
		t.Errorf("ann's tasks have created %d roles, want 9", n)
	}
	f.reopen()
	f.SetLimits(org.TaskLimits{Roles: 2})
	if n := createAll(ann(role)); n != 0 {
		t.Errorf("after a restart ann's tasks have created %d roles, want 0", n)
	}
	if n := createAll(bob); n != 5 {
		t.Errorf("bob's tasks have created %d roles, want 5", n)
	}
	if n := createAll(operator); n != 6 {
		t.Errorf("the operator's tasks have created %d roles, want 6", n)
	}
	for _, r := range f.ListRoles() {
		if r.CreatedBy == org.CreatorRoot {
			f.remove(r.ID)
		}
	}
	if n := createAll(ann(role)); n != 9 {
		t.Errorf("after the operator deleted them ann's tasks have created %d roles, want 9", n)
	}
}
