package org_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// wantSpawnable checks the names of the roles that an agent may spawn agents of.
func (f *callersFixture) wantSpawnable(agent identity.AgentID, query string, want ...string) {
	f.t.Helper()
	list, total := f.SpawnableRoles(agent, query, 100)
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
		if _, err := f.trySpawn(agent, r.ID); err != nil {
			f.t.Errorf("agent %s may spawn %q: %v", agent, r.Name, err)
		}
	}
	if diff := cmp.Diff(names, want); diff != "" || total != len(want) {
		f.t.Errorf("agent %s finds %d roles for %q, got before want:\n%s", agent, total, query, diff)
	}
}

// An agent is told of declared roles and of those that its own task made, as far as it may
// spawn agents of them. It is told of no role of another task, also not of the same caller.
func TestSpawnableRoles_AreDeclaredOrOfSameTask(t *testing.T) {
	f := newCallersFixture(t)
	f.role(operator, org.RoleSpec{Name: "reader", Use: of(toolgroups.Workspace)})
	f.configured("", org.RoleSpec{Name: "clerk", Use: of()})
	f.role(operator, org.RoleSpec{Name: "runner", Use: of(toolgroups.Command)})
	f.role(operator, org.RoleSpec{Name: "anything"})
	f.helper(f.annRoot, "anns")
	f.helper(f.annRoot, "reader of ann")
	f.helper(f.bobRoot, "bobs")
	second, operators := f.task(org.TaskSpec{Caller: f.ann}), f.task(org.TaskSpec{})
	f.remove(f.helper(second, "gone").ID)
	narrow := f.task(org.TaskSpec{Groups: of(toolgroups.Command)})
	lead := f.spawn(f.annRoot, f.role(identity.ByAgent(f.annRoot), org.RoleSpec{Name: "lead", Use: of(toolgroups.OrgManagement), Grant: of(toolgroups.OrgManagement)}).ID)
	for range 2 {
		f.wantSpawnable(f.annRoot, "", "anns", "clerk", "guest", "lead", "reader", "reader of ann")
		f.wantSpawnable(lead, "", "clerk", "lead")
		f.wantSpawnable(second, "", "clerk", "guest", "reader")
		f.wantSpawnable(f.bobRoot, "", "bobs", "clerk", "guest", "reader")
		f.wantSpawnable(operators, "", "anything", "clerk", "guest", "reader", "runner")
		f.wantSpawnable(narrow, "", "clerk", "runner")
		f.reopen()
	}
	if list, total := f.SpawnableRoles("nobody", "", 100); list != nil || total != 0 {
		t.Errorf("an unknown agent finds %v", list)
	}
	f.role(operator, org.RoleSpec{Name: "anns", Use: of(toolgroups.Command)}) // takes the name, and is too strong for ann
	f.wantSpawnable(f.annRoot, "ann anns", "reader of ann")
}

// The best matches come first: whole words before parts, names before descriptions before
// groups.
func TestSpawnableRoles_BestMatchesFirst(t *testing.T) {
	f := newCallersFixture(t)
	for _, s := range []org.RoleSpec{
		{Name: "files", Use: of()}, {Name: "profiles", Use: of()}, {Name: "reader", Description: "Reads Files, and text.", Use: of()},
		{Name: "zip", Description: "Packs profiles.", Use: of()}, {Name: "worker", Use: of(toolgroups.Workspace)}, {Name: "idle", Use: of()},
	} {
		f.role(operator, s)
	}
	f.wantSpawnable(f.annRoot, "FILES", "files", "profiles", "reader", "zip")
	f.wantSpawnable(f.annRoot, "read text files", "reader", "files", "profiles", "zip")
	f.wantSpawnable(f.annRoot, "workspace", "guest", "worker")
	f.wantSpawnable(f.annRoot, "nothing of the kind")
	f.wantSpawnable(f.annRoot, " -- ", "files", "guest", "idle", "profiles", "reader", "worker", "zip")
}

func TestSpawnableRoles_ReturnsLimit(t *testing.T) {
	f := newCallersFixture(t)
	for i := range 30 {
		f.role(operator, org.RoleSpec{Name: fmt.Sprint("clerk ", i), Use: of()})
	}
	if list, total := f.SpawnableRoles(f.annRoot, "clerk", 7); len(list) != 7 || total != 30 {
		t.Errorf("got %d of %d roles, want 7 of 30", len(list), total)
	}
}

// The tools that a spawned agent would have are those that it has.
func TestToolsOfSpawned_AreThoseOfAgent(t *testing.T) {
	f := newCallersFixture(t)
	everything := f.role(operator, org.RoleSpec{Name: "everything"})
	reader := f.role(operator, org.RoleSpec{Name: "reader", Use: of(toolgroups.Workspace, toolgroups.Command)})
	for _, parent := range []identity.AgentID{f.task(org.TaskSpec{}), f.task(org.TaskSpec{Groups: of(toolgroups.Command, toolgroups.Workspace)})} {
		for _, role := range []org.Role{everything, reader} {
			got := f.SpawnedAgentTools(parent, role.ID)
			if id, err := f.trySpawn(parent, role.ID); err == nil {
				f.wantTools(id, got...)
			}
		}
	}
	if got := f.SpawnedAgentTools("nobody", reader.ID); got != nil {
		t.Errorf("below an unknown agent: %q", got)
	}
}

// A name in place of the id means what it means for the agent, and the agent has the id.
func TestSpawnAgent_ByName(t *testing.T) {
	f := newCallersFixture(t)
	anns, bobs := f.helper(f.annRoot, "helper"), f.helper(f.bobRoot, "helper")
	for parent, want := range map[identity.AgentID]identity.RoleID{f.annRoot: anns.ID, f.bobRoot: bobs.ID} {
		for range 2 {
			if got := f.agent(f.spawn(parent, "helper")).Role; got != want {
				t.Errorf("%s spawns an agent of role %q, want %q", parent, got, want)
			}
			f.reopen()
		}
	}
	_, err := f.trySpawn(f.task(org.TaskSpec{}), "helper")
	wantCode(t, err, "role_not_found", "no role with this id or name")
}
