package org_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/org"
)

// The diff of a change names the role, the roles that it bounds, their agents and the
// callers in them.
func TestDiff_NamesRolesAgentsAndCallers(t *testing.T) {
	f := newFixture(t)
	lead := f.role(operator, org.RoleSpec{Name: "lead", Use: of("org_management", "docs"), Grant: of("docs", "workspace")})
	chief := f.spawn(f.task(org.TaskSpec{}), lead.ID)
	clerk := f.role(identity.ByAgent(chief), org.RoleSpec{Name: "clerk", Use: of("docs")})
	agent := f.spawn(chief, clerk.ID)
	f.role(operator, org.RoleSpec{Name: "other"})
	f.ResolveView(identity.ByCaller("ann", lead.ID))
	f.store.put(f.SetCallerState(identity.ByCaller("bob", clerk.ID), "open"))
	f.ResolveView(identity.ByCaller("eve", "nowhere"))

	loses := func(names ...string) org.AccessChange { return org.AccessChange{Gains: []string{}, Loses: names} }
	want := org.PermissionDiff{
		Agents:  []org.AgentDiff{{Agent: agent, Role: "clerk", AccessChange: loses("search")}},
		Roles:   []org.RoleDiff{{ID: clerk.ID, Name: "clerk", AccessChange: loses("search")}},
		Tasks:   []org.TasksDiff{},
		Callers: []org.CallerDiff{{User: "bob", Role: "clerk", AccessChange: loses("search")}},
		Counts:  org.DiffCounts{Agents: 1, Roles: 1, Callers: 1},
	}
	_, got, _, err := f.UpdateRole(operator, lead.ID, org.RoleSpec{Grant: of("workspace")}, true)
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("%v, got before want:\n%s", err, diff)
	}
	_, got, _, err = f.UpdateRole(operator, lead.ID, org.RoleSpec{Use: of("org_management")}, true)
	want = org.PermissionDiff{
		Agents:  []org.AgentDiff{{Agent: chief, Role: "lead", AccessChange: loses("search")}},
		Roles:   []org.RoleDiff{{ID: lead.ID, Name: "lead", AccessChange: loses("search")}},
		Tasks:   []org.TasksDiff{},
		Callers: []org.CallerDiff{{User: "ann", Role: "lead", AccessChange: loses("search")}},
		Counts:  org.DiffCounts{Agents: 1, Roles: 1, Callers: 1},
	}
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("%v, got before want:\n%s", err, diff)
	}
	got, _, err = f.DeleteRole(operator, lead.ID, true)
	if want := (org.DiffCounts{Agents: 2, Roles: 2, Callers: 2}); err != nil || got.Counts != want {
		t.Errorf("%v, deleting it affects %+v, want %+v", err, got.Counts, want)
	}

	f.reopen() // the caller without a record is forgotten
	got, _, err = f.DeleteRole(operator, lead.ID, true)
	if want := (org.DiffCounts{Agents: 2, Roles: 2, Callers: 1}); err != nil || got.Counts != want {
		t.Errorf("%v, after a restart: %+v, want %+v", err, got.Counts, want)
	}
}

// A role without agents and callers is affected itself: the text does not say that none is.
func TestDiff_NamesRoleWithoutAgents(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "clerk", Use: of("docs")})
	for _, step := range []struct {
		spec  org.RoleSpec
		empty bool
	}{{org.RoleSpec{Prompt: "new"}, true}, {org.RoleSpec{Use: of("docs", "workspace")}, false}, {org.RoleSpec{Use: of("workspace", "docs")}, true}, {org.RoleSpec{Server: new("docs")}, false}} {
		if diff := f.update(role.ID, step.spec); diff.IsEmpty() != step.empty {
			t.Errorf("%+v: got %+v", step.spec, diff)
		}
	}
}

// Agents of ended tasks, and terminated ones, are left out. So they are after a restart.
func TestDiff_LeavesOutEndedTasks(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of("docs")})
	var tops []identity.AgentID
	for range 3 {
		top := f.task(org.TaskSpec{})
		for range 3 {
			f.spawn(top, role.ID)
		}
		tops = append(tops, top)
	}
	stays := f.spawn(tops[2], role.ID)
	affected := func(want int) {
		t.Helper()
		_, diff, _, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Use: of()}, true)
		if err != nil || diff.Counts.Agents != want || len(diff.Agents) != want {
			t.Fatalf("%v, got %+v, want %d agents", err, diff.Counts, want)
		}
	}
	affected(10)
	f.endTask(tops[0])
	affected(7)
	f.endTask(tops[1])
	affected(4)
	for _, a := range f.AgentTree(tops[2]) {
		if a == tops[2] || a == stays {
			continue
		}
		_, changes, err := f.TerminateAgent(operator, a, "c", "", f.stored)
		if err != nil {
			t.Fatal(err)
		}
		f.store.put(changes)
	}
	affected(1)
	f.reopen()
	affected(1)
	f.endTask(tops[2])
	affected(0)
}

// endTask ends the task of an agent.
func (f *fixture) endTask(top identity.AgentID) {
	f.t.Helper()
	agent, _ := f.AgentByID(top)
	task, _ := f.TaskByID(agent.Task)
	f.store.put(f.EndTask(&task, org.TaskEnd{Status: org.Done}, 0))
}

// A diff names at most a hundred agents and counts all. Neither its size nor its allocations
// grow with their number.
func TestDiff_IsBounded(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of("docs")})
	agents, s := short.Count(2_000, 100_000), org.SpawnSpec{Role: role.ID, Brief: brief()}
	top := f.task(org.TaskSpec{})
	for i := range agents {
		if _, _, err := f.SpawnAgent(top, identity.AgentID(fmt.Sprintf("a%07d", i)), s); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 500 {
		f.ResolveView(identity.ByCaller(identity.UserName(fmt.Sprint("user", i)), role.ID))
	}
	_, diff, _, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Use: of()}, true)
	if err != nil {
		t.Fatal(err)
	}
	if want := (org.DiffCounts{Agents: agents, Roles: 1, Callers: 500}); diff.Counts != want {
		t.Errorf("got %+v, want %+v", diff.Counts, want)
	}
	if n := len(diff.Agents); n != org.MaxDiffNames || diff.Agents[0].Agent != "a0000000" || diff.Agents[n-1].Agent != "a0000099" || len(diff.Callers) != org.MaxDiffNames {
		t.Errorf("it names %d agents and %d callers", n, len(diff.Callers))
	}
	if text, err := json.Marshal(diff); err != nil || len(text) > 32<<10 {
		t.Errorf("%v, it has %d bytes", err, len(text))
	}
	allocations := testing.AllocsPerRun(3, func() { _, _, _, _ = f.UpdateRole(operator, role.ID, org.RoleSpec{Use: of()}, true) })
	if allocations > 1_000 {
		t.Errorf("it takes %v allocations", allocations)
	}
}
