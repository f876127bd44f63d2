package org_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// wantName checks the name of an agent.
func (f *fixture) wantName(id identity.AgentID, want string) {
	f.t.Helper()
	if got := f.agent(id).Name; got != want {
		f.t.Errorf("agent %s has the name %q, want %q", id, got, want)
	}
}

// terminate terminates an agent and stores the changes.
func (f *fixture) terminate(id identity.AgentID) {
	f.t.Helper()
	_, changes, err := f.TerminateAgent(operator, id, "", "", f.stored)
	if err != nil {
		f.t.Fatal(err)
	}
	f.store.put(changes)
}

// Agents are numbered by the name of their role, in each task from 1.
func TestAgentName_NumbersAgentsOfTask(t *testing.T) {
	f := newFixture(t)
	counter, writer := f.role(operator, org.RoleSpec{Name: "counter", Use: of()}), f.role(operator, org.RoleSpec{Name: "writer", Use: of()})
	root, other := f.task(org.TaskSpec{}), f.task(org.TaskSpec{})
	f.wantName(root, "root")
	first := f.spawn(root, counter.ID)
	f.wantName(first, "counter-1")
	f.wantName(f.spawn(root, writer.ID), "writer-1")
	f.wantName(f.spawn(first, counter.ID), "counter-2")
	f.wantName(f.spawn(other, counter.ID), "counter-1")
	f.wantName(f.task(org.TaskSpec{Role: "writer"}), "writer-1")
}

// No name is given twice in a task: not after a termination, a restart, or both.
func TestAgentName_IsGivenOnce(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "counter", Use: of()})
	root := f.task(org.TaskSpec{})
	one, two, three := f.spawn(root, role.ID), f.spawn(root, role.ID), f.spawn(root, role.ID)
	f.terminate(two)
	f.reopen()
	f.wantName(one, "counter-1")
	f.wantName(three, "counter-3")
	f.terminate(three)
	f.terminate(one)
	f.reopen()
	f.wantName(f.spawn(root, role.ID), "counter-4")
}

// The name of a role never stands for an agent. Agents of the role counter skip the name of
// the role counter-1. Agents are found by their own names only.
func TestAgentName_IsNotThatOfRole(t *testing.T) {
	f := newFixture(t)
	counter := f.role(operator, org.RoleSpec{Name: "counter", Use: of()})
	f.role(operator, org.RoleSpec{Name: "counter-1", Use: of()})
	root := f.task(org.TaskSpec{})
	agent := f.spawn(root, counter.ID)
	f.wantName(agent, "counter-2")
	later := f.role(operator, org.RoleSpec{Name: "counter-3", Use: of()})
	f.wantName(f.spawn(root, later.ID), "counter-3-1")
	for name, want := range map[string]identity.AgentID{"counter-2": agent, "counter-1": "counter-1", "counter": "counter", "counter-3": "counter-3"} {
		if got := f.ResolveRecipient(root, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The names of a task that is done are not kept in memory: no agent is spawned in it any more. A task
// that can be retried keeps them.
func TestAgentName_OfDoneTaskIsForgotten(t *testing.T) {
	f := newFixture(t)
	counter := f.role(operator, org.RoleSpec{Name: "counter", Use: of()})
	for _, status := range []org.TaskStatus{org.Done, org.Failed, org.Cancelled} {
		root := f.task(org.TaskSpec{})
		agent := f.spawn(root, counter.ID)
		task, _ := f.TaskByID(f.agent(root).Task)
		f.terminate(agent)
		f.store.put(f.EndTask(&task, org.TaskEnd{Status: status}, 0))
	}
	if n := f.NamedTasks(); n != 2 {
		t.Errorf("%d tasks have names in memory, want 2", n)
	}
	f.reopen()
	if n := f.NamedTasks(); n != 2 {
		t.Errorf("%d tasks have names in memory after a restart, want 2", n)
	}
}

// A role that exists for others only does not show in the numbers.
func TestAgentName_ShowsNoRolesOfOthers(t *testing.T) {
	f := newFixture(t)
	weak := f.role(operator, org.RoleSpec{Name: "counter", Use: of()})
	mine, theirs := f.task(org.TaskSpec{}), f.task(org.TaskSpec{Caller: identity.ByCaller("ann", weak.ID)})
	f.role(identity.ByAgent(theirs), org.RoleSpec{Name: "counter-1", Use: of()})
	f.wantName(f.spawn(mine, weak.ID), "counter-1")
}

// A name stands for an agent that the sender may message, and for no other one.
func TestResolveRecipient_FindsRecipients(t *testing.T) {
	f := newFixture(t)
	role := func(name string) identity.RoleID {
		return f.role(operator, org.RoleSpec{Name: name, Use: of("org_management"), Grant: of("org_management")}).ID
	}
	root, other := f.task(org.TaskSpec{}), f.task(org.TaskSpec{})
	helper, stranger := f.spawn(root, role("helper")), f.spawn(root, role("stranger"))
	boss := f.spawn(root, role("boss"), helper)
	worker := f.spawn(boss, role("worker"), helper)
	below := f.spawn(worker, role("below"))
	elsewhere := f.spawn(other, role("elsewhere"))
	for _, tt := range []struct {
		from identity.AgentID
		name string
		want identity.AgentID
	}{
		{root, "boss-1", boss}, {root, "below-1", below}, {boss, "worker-1", worker}, {boss, "below-1", below},
		{worker, "boss-1", boss}, {worker, "helper-1", helper}, {below, "worker-1", worker},
		{worker, string(stranger), stranger}, // an id is an id; MayMessage decides
		{boss, "stranger-1", "stranger-1"}, {worker, "stranger-1", "stranger-1"}, {below, "boss-1", "boss-1"},
		{root, "elsewhere-1", "elsewhere-1"}, {root, "Boss-1", "Boss-1"}, {root, "", ""}, {"nobody", "boss-1", "boss-1"},
	} {
		if got := f.ResolveRecipient(tt.from, tt.name); got != tt.want {
			t.Errorf("%s writes to %q: got %q, want %q", tt.from, tt.name, got, tt.want)
		}
		if id := f.ResolveRecipient(tt.from, tt.name); !identity.IsID(tt.name) && string(id) != tt.name {
			if err := f.MayMessage(tt.from, id); err != nil {
				t.Errorf("%s may not message %q: %v", tt.from, tt.name, err)
			}
		}
	}
	for name, want := range map[identity.AgentID]identity.AgentID{"worker-1": worker, "below-1": below, "boss-1": "boss-1", "helper-1": "helper-1", "": ""} {
		if got := f.ResolveBelow(boss, name); got != want {
			t.Errorf("below boss, %q: got %q, want %q", name, got, want)
		}
	}
	if got := f.ResolveBelow(elsewhere, "elsewhere-1"); got != "elsewhere-1" {
		t.Errorf("an agent is not below itself, got %q", got)
	}
}

// An unknown recipient is answered with those there are, and with no others.
func TestMayMessage_NamesRecipients(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := func(name string) identity.RoleID {
		return f.role(operator, org.RoleSpec{Name: name, Use: of("org_management"), Grant: of("org_management")}).ID
	}
	boss := f.spawn(root, role("boss"))
	f.spawn(root, role("stranger"))
	clerk := role("clerk")
	f.spawn(boss, clerk)
	f.spawn(boss, clerk)
	err := f.MayMessage(boss, "clerk-3")
	wantCode(t, err, errcode.UnknownRecipient)
	if got := errcode.Message(err); !strings.HasSuffix(got, "you may message clerk-1, clerk-2, root, user") {
		t.Errorf("got %q", got)
	}
	_, _, err = f.TerminateAgent(identity.ByAgent(boss), "clerk-3", "", "", f.stored)
	if got := errcode.Message(err); !strings.HasSuffix(got, "; you hired clerk-1, clerk-2") {
		t.Errorf("got %q", got)
	}
}

// A brief names collaborators by name; the record has their ids.
func TestSpawnAgent_ResolvesCollaborators(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "clerk", Use: of()})
	root := f.task(org.TaskSpec{})
	first := f.spawn(root, role.ID)
	second := f.spawn(root, role.ID, "clerk-1")
	if a, _ := f.stored(second); a.Brief.Collaborators[0].Agent != first {
		t.Errorf("got %+v", a.Brief.Collaborators)
	}
	if err := f.MayMessage(second, first); err != nil {
		t.Error(err)
	}
}

// Agents of an earlier version have no names. They are found by their ids.
func TestAgentName_OfEarlierRecord(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "clerk", Use: of()})
	root := f.task(org.TaskSpec{})
	f.store.set("agent", "old", `{"id":"old","roleId":"`+string(role.ID)+`","parentAgentId":"`+string(root)+`","taskId":"`+string(f.agent(root).Task)+`","status":"active"}`)
	f.reopen()
	f.wantName("old", "")
	f.wantName(f.spawn(root, role.ID), "clerk-1")
	if got := f.ResolveRecipient(root, "old"); got != "old" {
		t.Errorf("got %q", got)
	}
	if got := f.ResolveRecipient(root, ""); got != "" {
		t.Errorf("an empty name stands for %q", got)
	}
}
