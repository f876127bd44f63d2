package org_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestOrg_Spawn(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{State: "draft"})
	role := f.role(operator, org.RoleSpec{Use: of("docs")})
	agent, changes, err := f.SpawnAgent(root, "a1", org.SpawnSpec{Role: role.ID, Brief: brief()})
	if err != nil {
		t.Fatal(err)
	}
	want := org.Agent{ID: "a1", Role: role.ID, Parent: root, Task: f.agent(root).Task, Name: role.Name + "-1", Brief: brief(), Status: org.Active, State: "draft", CreatedAt: f.now}
	if diff := cmp.Diff(agent, want); diff != "" || len(changes) != 1 {
		t.Errorf("%d changes, got before want:\n%s", len(changes), diff)
	}
	t.Run("same id", func(t *testing.T) {
		again, changes, err := f.SpawnAgent(root, "a1", org.SpawnSpec{Role: "nowhere"})
		if err != nil || changes != nil || again.ID != "a1" || again.Role != role.ID {
			t.Errorf("got %+v, %d changes, %v", again, len(changes), err)
		}
	})
	t.Run("incomplete brief", func(t *testing.T) {
		_, _, err := f.SpawnAgent(root, "a2", org.SpawnSpec{Role: role.ID})
		wantCode(t, err, errcode.InvalidTaskBrief)
	})
	t.Run("restart", func(t *testing.T) {
		f.store.put(changes)
		f.reopen()
		if got := f.agent("a1"); got.Parent != root || got.State != "draft" {
			t.Errorf("got %+v", got)
		}
		f.wantTools("a1", "search")
	})
}

// Direct children of root own a workspace. Their descendants share it.
func TestOrg_TopAncestor(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(operator, org.RoleSpec{Use: of()})
	one := f.spawn(root, role.ID)
	deep := f.spawn(f.spawn(one, role.ID), role.ID)
	for _, id := range []identity.AgentID{one, deep} {
		if got, ok := f.TopAncestor(id); !ok || got != one {
			t.Errorf("%s: got %q, %v, want %q", id, got, ok, one)
		}
	}
	for _, id := range []identity.AgentID{root, "nobody"} {
		if got, ok := f.TopAncestor(id); ok {
			t.Errorf("%s: got %q, want none", id, got)
		}
	}
}

func TestOrg_AgentsSortedByAge(t *testing.T) {
	f := newFixture(t)
	one, two := f.task(org.TaskSpec{}), f.task(org.TaskSpec{})
	role := f.role(operator, org.RoleSpec{Use: of()})
	want := []identity.AgentID{one, f.spawn(one, role.ID), f.spawn(one, role.ID)}
	other := f.spawn(two, role.ID)
	var got []identity.AgentID
	for _, a := range f.ListAgents(f.agent(one).Task) {
		got = append(got, a.ID)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if all := f.ListAgents(""); len(all) != 5 || all[4].ID != other {
		t.Errorf("got %d agents", len(all))
	}
	if _, ok := f.AgentByID("nobody"); ok {
		t.Error("an unknown agent is found")
	}
}

func TestSetState_ChangesVisibleTools(t *testing.T) {
	f := newFixture(t)
	limited, err := toolIn("publish", "review")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grouptest.RegisterGroup(f.groups, "o", toolgroups.Group{ID: "flow", Tools: limited}); err != nil {
		t.Fatal(err)
	}
	agent := f.spawn(f.task(org.TaskSpec{}), f.role(operator, org.RoleSpec{Use: of("flow")}).ID)
	f.wantTools(agent)
	stored, _ := f.stored(agent)
	changes, err := f.SetState(agent, "review", stored)
	if err != nil {
		t.Fatal(err)
	}
	f.wantTools(agent, "publish")
	f.store.put(changes)
	f.reopen()
	f.wantTools(agent, "publish")
	if a, _ := f.stored(agent); a.Brief.Objective != "o" {
		t.Error("the brief was lost")
	}
	_, err = f.SetState("nobody", "x", stored)
	wantCode(t, err, errcode.AgentNotFound)
}

// An agent may terminate its own descendants only.
func TestTerminate_Permission(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of()})
	root := f.task(org.TaskSpec{})
	parent := f.spawn(root, role.ID)
	child := f.spawn(parent, role.ID)
	sibling := f.spawn(root, role.ID)
	other := f.task(org.TaskSpec{})
	over := f.task(org.TaskSpec{})
	f.endTask(over)
	tests := []struct {
		name   string
		by     identity.Principal
		target identity.AgentID
		code   errcode.Code
	}{
		{"itself", identity.ByAgent(child), child, errcode.NotChildAgent},
		{"its parent", identity.ByAgent(child), parent, errcode.NotChildAgent},
		{"its sibling", identity.ByAgent(sibling), parent, errcode.NotChildAgent},
		{"its sibling's child", identity.ByAgent(sibling), child, errcode.NotChildAgent},
		{"root", identity.ByAgent(parent), root, errcode.NotChildAgent},
		{"an agent of another task", identity.ByAgent(other), child, errcode.NotChildAgent},
		{"unknown agent", identity.ByAgent(root), "nobody", errcode.AgentNotFound},
		{"by an unknown agent", identity.ByAgent("nobody"), child, errcode.NotChildAgent},
		{"by the zero Principal", identity.Principal{}, child, errcode.NotChildAgent},
		{"by an external caller", identity.ByCaller("ann", role.ID), child, errcode.NotChildAgent},
		{"by the configuration", identity.Principal{Kind: identity.Configuration}, child, errcode.NotChildAgent},
		{"root by the operator", operator, root, errcode.NotChildAgent},
		{"root of an ended task", operator, over, errcode.Conflict},
		{"its grandchild", identity.ByAgent(root), child, ""},
		{"any agent by the operator", operator, sibling, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, _, err := f.TerminateAgent(tt.by, tt.target, "c", "why", f.stored)
			wantCode(t, err, tt.code)
			if _, ok := f.AgentByID(tt.target); ok == (tt.code == "") && tt.target != "nobody" || (len(list) > 0) != (tt.code == "") {
				t.Errorf("got %v, agent still active: %v", list, ok)
			}
			if err != nil && err.(*errcode.Error).Details["agentId"] != tt.target {
				t.Errorf("got details %v", err.(*errcode.Error).Details)
			}
		})
	}
}

// Children are terminated before their parents, with one record each. The record of a
// descendant has its own parent and the reason "parent terminated (cascade)".
func TestTerminate_Cascades(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "r", Use: of("docs"), Grant: of("docs")})
	root := f.task(org.TaskSpec{})
	top := f.spawn(root, role.ID)
	left, right := f.spawn(top, role.ID), f.spawn(top, role.ID)
	leaf := f.spawn(left, role.ID)
	sibling := f.spawn(root, role.ID)
	delete(f.store.records, "agent "+string(right)) // a record that cannot be read is rebuilt
	task := f.agent(root).Task

	list, changes, err := f.TerminateAgent(identity.ByAgent(root), top, "call", "done with it", f.stored)
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
	f.store.put(changes)
	for range 2 { // in memory, then from the store
		for _, gone := range []identity.AgentID{top, left, right, leaf} {
			if _, ok := f.AgentByID(gone); ok {
				t.Errorf("%s is still active", gone)
			}
			f.wantTools(gone)
			a, _ := f.stored(gone)
			if a.Status != org.Terminated || a.EndedBy != "call" || a.Reason == "" || (a.Brief.Objective != "o") != (gone == right) {
				t.Errorf("got record %+v", a)
			}
		}
		f.wantTools(sibling, "search")
		f.reopen()
	}
}

// TerminateBelow terminates the descendants of an agent, and not the agent.
func TestTerminateBelow_KeepsAgent(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "r", Use: of("docs"), Grant: of("docs")})
	root, other := f.task(org.TaskSpec{}), f.task(org.TaskSpec{})
	top, sibling, foreign := f.spawn(root, role.ID), f.spawn(root, role.ID), f.spawn(other, role.ID)
	leaf := f.spawn(top, role.ID)
	task := f.agent(root).Task
	list, changes := f.TerminateBelow(root, "over", f.stored)
	want := []org.Termination{
		{Agent: leaf, Role: role.ID, Task: task, Parent: top, Reason: "over"},
		{Agent: top, Role: role.ID, Task: task, Parent: root, Reason: "over"},
		{Agent: sibling, Role: role.ID, Task: task, Parent: root, Reason: "over"},
	}
	byAgent := cmpopts.SortSlices(func(a, b org.Termination) bool { return a.Agent < b.Agent })
	if diff := cmp.Diff(list, want, byAgent); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	f.store.put(changes)
	for range 2 { // in memory, then from the store
		if left := f.AgentTree(root); len(left) != 1 || left[0] != root {
			t.Errorf("below root are %v, want root alone", left)
		}
		if _, ok := f.AgentByID(foreign); !ok {
			t.Error("an agent of another task was terminated")
		}
		f.reopen()
	}
	if list, changes := f.TerminateBelow("nobody", "over", f.stored); list != nil || changes != nil {
		t.Errorf("below an unknown agent: %v, %v", list, changes)
	}
}

// Terminate reads the records of the agent and its descendants, and no others.
func TestTerminate_ReadsOnlyDescendants(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of()})
	root := f.task(org.TaskSpec{})
	var chains []identity.AgentID
	for range 300 {
		at := root
		for depth := range 10 {
			at = f.spawn(at, role.ID)
			if depth == 0 {
				chains = append(chains, at)
			}
		}
	}
	start := time.Now()
	for i, id := range chains {
		asked := 0
		list, changes, err := f.TerminateAgent(operator, id, "", "", func(id identity.AgentID) (org.Agent, bool) {
			asked++
			return f.stored(id)
		})
		if err != nil || len(list) != 10 || len(changes) < 20 || len(changes) > 21 || asked != 10 {
			t.Fatalf("chain %d: got %d ended, %d changes, %d records read, %v", i, len(list), len(changes), asked, err)
		}
	}
	t.Logf("3000 agents ended in %v", time.Since(start))
	if left := f.ListAgents(""); len(left) != 1 {
		t.Errorf("got %d agents left, want root", len(left))
	}
}

// An agent may message its descendants, its parent, root and the collaborators of its
// brief, which its parent had to be allowed to message.
func TestOrg_MayMessage(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of()})
	agents := map[string]identity.AgentID{}
	agents["root"] = f.task(org.TaskSpec{})
	agents["parent"] = f.spawn(agents["root"], role.ID)
	agents["friend"] = f.spawn(agents["parent"], role.ID)
	agents["agent"] = f.spawn(agents["parent"], role.ID, agents["friend"], agents["root"])
	agents["child"] = f.spawn(agents["agent"], role.ID)
	agents["grandchild"] = f.spawn(agents["child"], role.ID)
	agents["uncle"] = f.spawn(agents["root"], role.ID)
	agents["stranger"] = f.task(org.TaskSpec{})
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
				if err := f.MayMessage(agents[from], agents[to]); errcode.CodeOf(err) != row[i] {
					t.Errorf("%s to %s: got %v, want %q", from, to, err, row[i])
				}
			}
		}
	}
	t.Run("in memory", check)
	f.reopen()
	t.Run("after a restart", check)
	t.Run("collaborator that the parent may not message", func(t *testing.T) {
		for name, code := range map[string]errcode.Code{"uncle": no, "stranger": errcode.CrossTask, "nobody": errcode.UnknownRecipient} {
			_, err := f.trySpawn(agents["parent"], role.ID, agents[name])
			wantCode(t, err, code, string(agents[name]))
		}
	})
	t.Run("collaborator of another task in a stored record", func(t *testing.T) {
		f.store.set("agent", "forged", fmt.Sprintf(`{"id":"forged","roleId":%q,"parentAgentId":%q,"taskId":%q,"status":"active","taskBrief":{"collaborators":[{"agentId":%q},{"agentId":%q}]}}`,
			role.ID, agents["root"], f.agent(agents["root"]).Task, agents["stranger"], agents["friend"]))
		f.reopen()
		wantCode(t, f.MayMessage("forged", agents["friend"]), "")
		wantCode(t, f.MayMessage("forged", agents["stranger"]), errcode.CrossTask)
	})
	t.Run("one to five collaborators", func(t *testing.T) {
		var friends []identity.AgentID
		for n := 1; n <= 5; n++ {
			friends = append(friends, f.spawn(agents["root"], role.ID))
			id := f.spawn(agents["root"], role.ID, friends...)
			for _, other := range friends {
				if err := f.MayMessage(id, other); err != nil {
					t.Errorf("with %d: %v", n, err)
				}
			}
		}
	})
	t.Run("terminated collaborator", func(t *testing.T) {
		if _, _, err := f.TerminateAgent(operator, agents["friend"], "", "", f.stored); err != nil {
			t.Fatal(err)
		}
		wantCode(t, f.MayMessage(agents["agent"], agents["friend"]), errcode.UnknownRecipient)
		wantCode(t, f.MayMessage(agents["friend"], agents["parent"]), errcode.SenderTerminated)
	})
}

// Ten thousand agents with the same role and parent share one scope and its View.
func TestOrg_AgentsShareScope(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(operator, org.RoleSpec{Use: of("docs")})
	first := f.spawn(root, role.ID)
	ref, _ := f.ResolveView(identity.ByAgent(first))
	ids := make([]identity.AgentID, 10_000)
	for i := range ids {
		ids[i] = identity.AgentID(identity.DeriveID("agent", fmt.Sprint(i)))
	}
	s := org.SpawnSpec{Role: role.ID, Brief: brief()}
	before := heapSize()
	for _, id := range ids {
		if _, _, err := f.SpawnAgent(root, id, s); err != nil {
			t.Fatal(err)
		}
	}
	each := (heapSize() - before) / uint64(len(ids))
	t.Logf("an idle agent takes %d bytes, without its id", each)
	if each > 512 {
		t.Errorf("an idle agent takes %d bytes, want at most 512", each)
	}
	for _, id := range ids {
		if other, _ := f.ResolveView(identity.ByAgent(id)); other != ref {
			t.Fatalf("%s has another ViewRef", id)
		}
	}
	view := ref.CurrentView()
	f.register("mcp:docs", "docs", "search", "fetch")
	if ref.CurrentView() == view {
		t.Error("the view was not replaced")
	}
	f.wantTools(ids[9_999], "fetch", "search")
	diff := f.update(role.ID, org.RoleSpec{Use: of()})
	if diff.Counts.Agents != 10_001 || len(diff.Agents) != org.MaxDiffNames || diff.Agents[0].Agent != first {
		t.Errorf("the diff counts %d agents and names %d", diff.Counts.Agents, len(diff.Agents))
	}
	f.wantTools(ids[0])
}
