package org_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestSpawn(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{State: "draft"})
	role := h.role(operator, org.RoleSpec{Use: of("docs")})
	agent, changes, err := h.Spawn(root, "a1", org.Spawn{Role: role.ID, Brief: brief()})
	if err != nil {
		t.Fatal(err)
	}
	want := org.Agent{ID: "a1", Role: role.ID, Parent: root, Task: h.agent(root).Task, Brief: brief(), Status: org.Active, State: "draft", CreatedAt: h.now}
	if diff := cmp.Diff(agent, want); diff != "" || len(changes) != 1 {
		t.Errorf("%d changes, got before want:\n%s", len(changes), diff)
	}
	t.Run("under the same id again gives the agent it made", func(t *testing.T) {
		again, changes, err := h.Spawn(root, "a1", org.Spawn{Role: "nowhere"})
		if err != nil || changes != nil || again.ID != "a1" || again.Role != role.ID {
			t.Errorf("got %+v, %d changes, %v", again, len(changes), err)
		}
	})
	t.Run("with an incomplete brief is refused", func(t *testing.T) {
		_, _, err := h.Spawn(root, "a2", org.Spawn{Role: role.ID})
		wantCode(t, err, errcode.InvalidTaskBrief)
	})
	t.Run("is found again from the store", func(t *testing.T) {
		h.store.put(changes)
		h.reopen()
		if got := h.agent("a1"); got.Parent != root || got.State != "draft" {
			t.Errorf("got %+v", got)
		}
		h.wantMay("a1", "search")
	})
}

// reference §4: "Direct children of root own a workspace; descendants use the
// nearest ancestor's."
func TestEntryIsTheAncestorBelowRoot(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(operator, org.RoleSpec{Use: of()})
	one := h.spawn(root, role.ID)
	deep := h.spawn(h.spawn(one, role.ID), role.ID)
	for _, id := range []identity.AgentID{one, deep} {
		if got, ok := h.TopAncestor(id); !ok || got != one {
			t.Errorf("%s: got %q, %v, want %q", id, got, ok, one)
		}
	}
	for _, id := range []identity.AgentID{root, "nobody"} {
		if got, ok := h.TopAncestor(id); ok {
			t.Errorf("%s: got %q, want none", id, got)
		}
	}
}

func TestAgentsAreListedByAge(t *testing.T) {
	h := open(t)
	one, two := h.task(org.TaskSpec{}), h.task(org.TaskSpec{})
	role := h.role(operator, org.RoleSpec{Use: of()})
	want := []identity.AgentID{one, h.spawn(one, role.ID), h.spawn(one, role.ID)}
	other := h.spawn(two, role.ID)
	var got []identity.AgentID
	for _, a := range h.Agents(h.agent(one).Task) {
		got = append(got, a.ID)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if all := h.Agents(""); len(all) != 5 || all[4].ID != other {
		t.Errorf("got %d agents", len(all))
	}
	if _, ok := h.Agent("nobody"); ok {
		t.Error("nobody is an agent")
	}
}

func TestMoveChangesWhatAnAgentSees(t *testing.T) {
	h := open(t)
	limited, err := toolIn("publish", "review")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.groups.Register("o", toolgroups.Group{ID: "flow", Tools: limited}); err != nil {
		t.Fatal(err)
	}
	agent := h.spawn(h.task(org.TaskSpec{}), h.role(operator, org.RoleSpec{Use: of("flow")}).ID)
	h.wantMay(agent)
	stored, _ := h.stored(agent)
	changes, err := h.SetState(agent, "review", stored)
	if err != nil {
		t.Fatal(err)
	}
	h.wantMay(agent, "publish")
	h.store.put(changes)
	h.reopen()
	h.wantMay(agent, "publish")
	if a, _ := h.stored(agent); a.Brief.Objective != "o" {
		t.Error("the brief was lost")
	}
	_, err = h.SetState("nobody", "x", stored)
	wantCode(t, err, errcode.AgentNotFound)
}

// design §4: "Terminate: one's own descendants."
func TestWhoMayTerminate(t *testing.T) {
	type who = identity.AgentID
	h := open(t)
	role := h.role(operator, org.RoleSpec{Use: of()})
	root := h.task(org.TaskSpec{})
	parent := h.spawn(root, role.ID)
	child := h.spawn(parent, role.ID)
	sibling := h.spawn(root, role.ID)
	other := h.task(org.TaskSpec{})
	tests := []struct {
		name   string
		by     identity.Principal
		target who
		code   errcode.Code
	}{
		{"itself", identity.ByAgent(child), child, errcode.NotChildAgent},
		{"its parent", identity.ByAgent(child), parent, errcode.NotChildAgent},
		{"its sibling", identity.ByAgent(sibling), parent, errcode.NotChildAgent},
		{"its sibling's child", identity.ByAgent(sibling), child, errcode.NotChildAgent},
		{"root", identity.ByAgent(parent), root, errcode.NotChildAgent},
		{"an agent of another task", identity.ByAgent(other), child, errcode.NotChildAgent},
		{"somebody who is not there", identity.ByAgent(root), "nobody", errcode.AgentNotFound},
		{"as somebody who is not there", identity.ByAgent("nobody"), child, errcode.NotChildAgent},
		{"as nobody", identity.Principal{}, child, errcode.NotChildAgent},
		{"as a caller from outside", identity.ByCaller("ann", role.ID), child, errcode.NotChildAgent},
		{"as the configuration", identity.Principal{Kind: identity.Configuration}, child, errcode.NotChildAgent},
		{"a root as the operator", operator, root, errcode.NotChildAgent},
		{"its child's child", identity.ByAgent(root), child, ""},
		{"any agent as the operator", operator, sibling, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, _, err := h.Terminate(tt.by, tt.target, "c", "why", h.stored)
			wantCode(t, err, tt.code)
			if _, ok := h.Agent(tt.target); ok == (tt.code == "") && tt.target != "nobody" || (len(list) > 0) != (tt.code == "") {
				t.Errorf("got %v, and the agent there: %v", list, ok)
			}
			if err != nil && err.(*errcode.Error).Details["agentId"] != tt.target {
				t.Errorf("got details %v", err.(*errcode.Error).Details)
			}
		})
	}
}

// reference §6: "remove children before parents … one termination record
// each; a descendant's says its own parent and parent terminated (cascade)".
func TestTerminationCascades(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Name: "r", Use: of("docs"), Grant: of("docs")})
	root := h.task(org.TaskSpec{})
	top := h.spawn(root, role.ID)
	left, right := h.spawn(top, role.ID), h.spawn(top, role.ID)
	leaf := h.spawn(left, role.ID)
	beside := h.spawn(root, role.ID)
	delete(h.store.records, "agent "+string(right)) // a record that cannot be read is made anew
	task := h.agent(root).Task

	list, changes, err := h.Terminate(identity.ByAgent(root), top, "call", "done with it", h.stored)
	if err != nil {
		t.Fatal(err)
	}
	const cascade = "parent terminated (cascade)"
	want := []org.Termination{
		{Agent: right, Role: role.ID, Task: task, Parent: top, Reason: cascade},
		{Agent: leaf, Role: role.ID, Task: task, Parent: left, Reason: cascade},
		{Agent: left, Role: role.ID, Task: task, Parent: top, Reason: cascade},
		{Agent: top, Role: role.ID, Task: task, Parent: root, Reason: "done with it"},
	}
	if diff := cmp.Diff(list, want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	h.store.put(changes)
	for range 2 { // in memory, then from the store
		for _, gone := range []identity.AgentID{top, left, right, leaf} {
			if _, ok := h.Agent(gone); ok {
				t.Errorf("%s is still there", gone)
			}
			h.wantMay(gone)
			a, _ := h.stored(gone)
			if a.Status != org.Terminated || a.EndedBy != "call" || a.Reason == "" || (a.Brief.Objective != "o") != (gone == right) {
				t.Errorf("got record %+v", a)
			}
		}
		h.wantMay(beside, "search")
		h.reopen()
	}
}

// Ending a cascade looks at its descendants alone, and agents beside it cost
// nothing: the work is counted in records read.
func TestTerminationIsProportionalToTheDescendants(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Use: of()})
	root := h.task(org.TaskSpec{})
	var chains []identity.AgentID
	for range 300 {
		at := root
		for depth := range 10 {
			at = h.spawn(at, role.ID)
			if depth == 0 {
				chains = append(chains, at)
			}
		}
	}
	start := time.Now()
	for i, id := range chains {
		asked := 0
		list, changes, err := h.Terminate(operator, id, "", "", func(id identity.AgentID) (org.Agent, bool) {
			asked++
			return h.stored(id)
		})
		if err != nil || len(list) != 10 || len(changes) != 20 || asked != 10 {
			t.Fatalf("chain %d: got %d ended, %d changes, %d records read, %v", i, len(list), len(changes), asked, err)
		}
	}
	t.Logf("3000 agents ended in %v", time.Since(start))
	if left := h.Agents(""); len(left) != 1 {
		t.Errorf("got %d agents left, want root", len(left))
	}
}

// design §4: "Message: own descendants, the parent, user, and collaborators of
// the same task whom the spawner itself may message"; contract §8: root too.
func TestMayMessage(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Use: of()})
	agents := map[string]identity.AgentID{}
	agents["root"] = h.task(org.TaskSpec{})
	agents["parent"] = h.spawn(agents["root"], role.ID)
	agents["friend"] = h.spawn(agents["parent"], role.ID)
	agents["agent"] = h.spawn(agents["parent"], role.ID, agents["friend"], agents["root"])
	agents["child"] = h.spawn(agents["agent"], role.ID)
	agents["grandchild"] = h.spawn(agents["child"], role.ID)
	agents["uncle"] = h.spawn(agents["root"], role.ID)
	agents["stranger"] = h.task(org.TaskSpec{})
	agents["nobody"] = "nobody"
	const no = errcode.InsufficientPermissions
	columns := []string{"root", "parent", "friend", "agent", "child", "grandchild", "uncle", "stranger", "nobody"}
	matrix := map[string][]errcode.Code{
		"root":       {"", "", "", "", "", "", "", errcode.CrossTask, errcode.UnknownRecipient},
		"parent":     {"", no, "", "", "", "", no, errcode.CrossTask, errcode.UnknownRecipient},
		"friend":     {"", "", no, no, no, no, no, errcode.CrossTask, errcode.UnknownRecipient},
		"agent":      {"", "", "", no, "", "", no, errcode.CrossTask, errcode.UnknownRecipient},
		"child":      {"", no, no, "", no, "", no, errcode.CrossTask, errcode.UnknownRecipient},
		"grandchild": {"", no, no, no, "", no, no, errcode.CrossTask, errcode.UnknownRecipient},
		"uncle":      {"", no, no, no, no, no, no, errcode.CrossTask, errcode.UnknownRecipient},
		"stranger": {errcode.CrossTask, errcode.CrossTask, errcode.CrossTask, errcode.CrossTask, errcode.CrossTask, errcode.CrossTask,
			errcode.CrossTask, "", errcode.UnknownRecipient},
		"nobody": slices.Repeat([]errcode.Code{errcode.SenderTerminated}, 9),
	}
	check := func(t *testing.T) {
		for from, row := range matrix {
			for i, to := range columns {
				if err := h.MayMessage(agents[from], agents[to]); errcode.Of(err) != row[i] {
					t.Errorf("%s to %s: got %v, want %q", from, to, err, row[i])
				}
			}
		}
	}
	t.Run("as spawned", check)
	h.reopen()
	t.Run("as stored", check)
	t.Run("a collaborator the spawner may not message is refused", func(t *testing.T) {
		for name, code := range map[string]errcode.Code{"uncle": no, "stranger": errcode.CrossTask, "nobody": errcode.UnknownRecipient} {
			_, err := h.trySpawn(agents["parent"], role.ID, agents[name])
			wantCode(t, err, code, string(agents[name]))
		}
	})
	t.Run("one to five collaborators are all contacts", func(t *testing.T) {
		var friends []identity.AgentID
		for n := 1; n <= 5; n++ {
			friends = append(friends, h.spawn(agents["root"], role.ID))
			id := h.spawn(agents["root"], role.ID, friends...)
			for _, f := range friends {
				if err := h.MayMessage(id, f); err != nil {
					t.Errorf("with %d: %v", n, err)
				}
			}
		}
	})
	t.Run("a terminated collaborator is unknown", func(t *testing.T) {
		if _, _, err := h.Terminate(operator, agents["friend"], "", "", h.stored); err != nil {
			t.Fatal(err)
		}
		wantCode(t, h.MayMessage(agents["agent"], agents["friend"]), errcode.UnknownRecipient)
		wantCode(t, h.MayMessage(agents["friend"], agents["parent"]), errcode.SenderTerminated)
	})
}

// Agents of one role and parent share one slot: one View for ten thousand.
func TestTenThousandAgentsShareOneView(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(operator, org.RoleSpec{Use: of("docs")})
	first := h.spawn(root, role.ID)
	slot, _ := h.Resolve(identity.ByAgent(first))
	ids := make([]identity.AgentID, 10_000)
	for i := range ids {
		ids[i] = identity.AgentID(identity.Derive("agent", fmt.Sprint(i)))
	}
	s := org.Spawn{Role: role.ID, Brief: brief()}
	before := heap()
	for _, id := range ids {
		if _, _, err := h.Spawn(root, id, s); err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / uint64(len(ids))
	t.Logf("an idle agent takes %d bytes, without its id", each)
	if each > 512 {
		t.Errorf("an idle agent takes %d bytes, want at most 512", each)
	}
	for _, id := range ids {
		if other, _ := h.Resolve(identity.ByAgent(id)); other != slot {
			t.Fatalf("%s has a slot of its own", id)
		}
	}
	view := slot.View()
	h.register("mcp:docs", "docs", "search", "fetch")
	if slot.View() == view {
		t.Error("the view was not replaced")
	}
	h.wantMay(ids[9_999], "fetch", "search")
	diff := h.update(role.ID, org.RoleSpec{Use: of()})
	if len(diff) != 10_001 || !slices.IsSortedFunc(diff, func(a, b org.AgentDiff) int { return compareIDs(a.Agent, b.Agent) }) {
		t.Errorf("got %d agents in the diff, or unsorted", len(diff))
	}
	h.wantMay(ids[0])
}
