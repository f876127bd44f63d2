package org_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// What a change makes reachable is told: roles that may be spawned, in both directions, and tools
// that may be granted.
func TestReach_NamesRolesAndTools(t *testing.T) {
	f := newFixture(t)
	lead := f.role(operator, org.RoleSpec{Name: "lead", Use: of("org_management"), Grant: of("docs")})
	reader := f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs"), Grant: of()})
	f.role(operator, org.RoleSpec{Name: "runner", Use: of("command"), Grant: of()})
	f.role(operator, org.RoleSpec{Name: "idle", Use: of("docs"), Grant: of("docs", "command")})
	reach := func(id identity.RoleID, spec org.RoleSpec) []org.ReachDiff {
		t.Helper()
		next, _, _, err := f.UpdateRole(operator, id, spec, true)
		if err != nil {
			t.Fatal(err)
		}
		return f.CompareReach(next)
	}
	change := func(gains, loses []string) org.ReachChange { return org.ReachChange{Gains: gains, Loses: loses} }
	none := change([]string{}, []string{})
	want := []org.ReachDiff{{ID: lead.ID, Name: "lead", Roles: change([]string{"idle", "runner"}, []string{}), Tools: change([]string{"run_command"}, []string{})}}
	if diff := cmp.Diff(want, reach(lead.ID, org.RoleSpec{Grant: of("docs", "command")})); diff != "" {
		t.Errorf("lead may grant command (-want +got):\n%s", diff)
	}
	want = []org.ReachDiff{{ID: lead.ID, Name: "lead", Roles: change([]string{}, []string{"reader"}), Tools: none}}
	if diff := cmp.Diff(want, reach(reader.ID, org.RoleSpec{Use: of("docs", "command")})); diff != "" {
		t.Errorf("reader is beyond what lead may grant (-want +got):\n%s", diff)
	}
	want = []org.ReachDiff{{ID: lead.ID, Name: "lead", Roles: change([]string{}, []string{"reader"}), Tools: change([]string{}, []string{"search"})}}
	if diff := cmp.Diff(want, reach(lead.ID, org.RoleSpec{Use: of("docs")})); diff != "" {
		t.Errorf("lead spawns nothing (-want +got):\n%s", diff)
	}
	if got := reach(lead.ID, org.RoleSpec{Description: "leads"}); len(got) != 0 {
		t.Errorf("another description changes the reach: %+v", got)
	}
}

// A role that is planned is compared as one that is created: who may spawn its agents, whom they may
// spawn, and what they may grant. Nothing is reached that the creation does not add.
func TestReach_OfPlannedRole(t *testing.T) {
	f := newFixture(t)
	lead := f.role(operator, org.RoleSpec{Name: "lead", Use: of("org_management"), Grant: of("docs")})
	f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs"), Grant: of()})
	f.role(operator, org.RoleSpec{Name: "runner", Use: of("command"), Grant: of()})
	change := func(gains ...string) org.ReachChange {
		return org.ReachChange{Gains: append([]string{}, gains...), Loses: []string{}}
	}
	for _, c := range []struct {
		spec org.RoleSpec
		want []org.ReachDiff
	}{
		{org.RoleSpec{Name: "clerk", Use: of("docs"), Grant: of()}, []org.ReachDiff{{ID: lead.ID, Name: "lead", Roles: change("clerk"), Tools: change()}}},
		{org.RoleSpec{Name: "clerk", Use: of("command"), Grant: of()}, []org.ReachDiff{}},
		{org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("command")}, []org.ReachDiff{{Name: "boss", Roles: change("runner"), Tools: change("run_command")}}},
	} {
		role, err := f.PlanRole(operator, c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, f.CompareReach(role)); diff != "" {
			t.Errorf("%s with %v (-want +got):\n%s", c.spec.Name, c.spec.Use, diff)
		}
	}
}

// CompareReach says what SpawnableRoles of agents says before and after the change.
func TestReach_AgreesWithSpawnableRoles(t *testing.T) {
	groups := []toolgroups.GroupID{"org_management", "docs", "workspace", "command", "artifact"}
	for seed := range short.Count(20, 200) {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		some := func() *toolgroups.GroupSet {
			return of(slices.DeleteFunc(slices.Clone(groups), func(toolgroups.GroupID) bool { return random.IntN(2) == 0 })...)
		}
		f := newFixture(t)
		agents, ids := map[string]identity.AgentID{}, []identity.RoleID{}
		root := f.task(org.TaskSpec{})
		for i := range 4 {
			role := f.role(operator, org.RoleSpec{Name: fmt.Sprintf("role%d", i), Use: some(), Grant: some()})
			ids = append(ids, role.ID)
			agents[role.Name] = f.spawn(root, role.ID)
		}
		spawnable := func(agent identity.AgentID) (names []string) {
			if !slices.Contains(f.tools(agent), "spawn_agent") {
				return nil
			}
			list, _ := f.SpawnableRoles(agent, "", 100)
			for _, r := range list {
				names = append(names, r.Name)
			}
			return names
		}
		was := map[string][]string{}
		for name, agent := range agents {
			was[name] = spawnable(agent)
		}
		changed, spec := ids[random.IntN(4)], org.RoleSpec{Use: some(), Grant: some()}
		next, _, _, err := f.UpdateRole(operator, changed, spec, true)
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]org.ReachChange{}
		for _, d := range f.CompareReach(next) {
			told[d.Name] = d.Roles
		}
		f.update(changed, spec)
		for name, agent := range agents {
			is := spawnable(agent)
			want := org.ReachChange{Gains: minus(is, was[name]), Loses: minus(was[name], is)}
			got, ok := told[name]
			if !ok {
				got = org.ReachChange{Gains: []string{}, Loses: []string{}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d, %s (-spawnable +reach):\n%s", seed, name, diff)
			}
		}
	}
}

// minus returns the names of a that are not in b.
func minus(a, b []string) []string {
	return slices.DeleteFunc(append([]string{}, a...), func(name string) bool { return slices.Contains(b, name) })
}
