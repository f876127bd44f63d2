package property_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// replaceOwner replaces the group alpha of module:a by one of module:b with the
// same id and tool name.
func (f *workerFixture) replaceOwner(t *testing.T) {
	t.Helper()
	if err := grouptest.UnregisterGroup(f.GroupManager(), "module:a", "alpha"); err != nil {
		t.Fatal(err)
	}
	if _, err := grouptest.RegisterGroup(f.GroupManager(), "module:b", groupSpec{ID: "alpha", Tools: []toolSpec{{Name: "t0"}, {Name: "t9"}}}.Group(nil)); err != nil {
		t.Fatal(err)
	}
}

// visibleTo returns the tools that an agent sees.
func (f *workerFixture) visibleTo(id identity.AgentID) []string {
	return definitionNames(f.Gate().Subject(identity.ByAgent(id)).VisibleTools())
}

// createUnderRoot creates an agent directly below root whose role uses the
// given groups.
func (f *workerFixture) createUnderRoot(t *testing.T, use ...toolgroups.GroupID) (identity.RoleID, identity.AgentID) {
	t.Helper()
	set := toolgroups.SetOf(use...)
	manager, _ := f.Org().AgentByID(f.agent)
	task, _ := f.Org().TaskByID(manager.Task)
	role, agent, err := f.createAgent(task.Top, org.RoleSpec{Name: "intern", Use: &set})
	if err != nil {
		t.Fatal(err)
	}
	return role, agent
}

// mustWorkerFixture returns a workerFixture that is closed after the test.
func mustWorkerFixture(t *testing.T) *workerFixture {
	t.Helper()
	w, err := newWorkerFixture(newMemoryStore(), newScriptedModel())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// A group that goes away leaves grants inert, and another owner does not
// inherit them. An update without groups does not pin the groups of the role
// to new owners.
func TestUpdateRole_PromptKeepsGroupOwners(t *testing.T) {
	w := mustWorkerFixture(t)
	role, agent := w.createUnderRoot(t, "alpha")
	w.replaceOwner(t)
	if _, _, err := w.UpdateRole(operator, role, org.RoleSpec{Prompt: "other words"}, false); err != nil {
		t.Fatal(err)
	}
	if got := w.visibleTo(agent); len(got) > 0 {
		t.Errorf("after an update of the prompt the agent sees %v of another owner", got)
	}
}

// If the owner of a group is absent while the prompt is updated, the role has
// the group again when the owner is back.
func TestUpdateRole_PromptKeepsGrantOfAbsentOwner(t *testing.T) {
	w := mustWorkerFixture(t)
	role, agent := w.createUnderRoot(t, "alpha")
	before := w.visibleTo(agent)
	if err := grouptest.UnregisterGroup(w.GroupManager(), "module:a", "alpha"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.UpdateRole(operator, role, org.RoleSpec{Prompt: "other words"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := grouptest.RegisterGroup(w.GroupManager(), "module:a", moduleGroups[0].Group(nil)); err != nil {
		t.Fatal(err)
	}
	if got := w.visibleTo(agent); !slices.Equal(got, before) {
		t.Errorf("after an update of the prompt while its module was absent the agent sees %v, want %v", got, before)
	}
}

// Another owner does not inherit a reference in the operator's toolset.
func TestToolset_NotInheritedByOtherOwner(t *testing.T) {
	w := mustWorkerFixture(t)
	if _, err := grouptest.RegisterGroup(w.GroupManager(), toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"t0"}}); err != nil {
		t.Fatal(err)
	}
	_, agent := w.createUnderRoot(t, "kit")
	w.replaceOwner(t)
	if got := w.visibleTo(agent); len(got) > 0 {
		t.Errorf("the toolset was written for a tool of module:a; the agent sees %v of module:b", got)
	}
}

// The limits of a caller's task are pinned to the owners that the caller's role
// is pinned to.
func TestTask_CallerGroupsNotInheritedByOtherOwner(t *testing.T) {
	w := mustWorkerFixture(t)
	role, _ := w.createUnderRoot(t, "alpha")
	w.replaceOwner(t)
	id, err := w.StartTask(context.Background(), org.TaskSpec{Caller: identity.ByCaller("u", role), Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	task, _ := w.Org().TaskByID(id)
	alpha := toolgroups.SetOf("alpha")
	_, agent, err := w.createAgent(task.Top, org.RoleSpec{Name: "helper", Use: &alpha})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.visibleTo(agent); len(got) > 0 {
		t.Errorf("the caller's role was pinned to module:a; the task's agent sees %v of module:b", got)
	}
}

// A limit follows changes also of groups that the role itself does not name,
// here of a toolset that is only in the creator's grant.
func TestToolset_LiveWhenOnlyInGrant(t *testing.T) {
	w := mustWorkerFixture(t)
	kit := toolgroups.SetOf("kit")
	for i, refs := range [][]string{{"t0", "t2", "t3"}, {"t2"}, nil, {"t3", "t0"}} {
		if _, err := grouptest.RegisterGroup(w.GroupManager(), toolgroups.Config, toolgroups.Group{ID: "kit", Refs: refs}); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // afterwards only the toolset changes
			if _, _, err := w.UpdateRole(operator, w.manager, org.RoleSpec{Grant: &kit}, false); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		for _, name := range []string{"t0", "t2", "t3"} {
			if slices.Contains(refs, name) {
				want = append(want, name)
			}
		}
		if got := w.visibleTo(w.agent); !slices.Equal(got, want) {
			t.Errorf("the toolset contains %v, the agent sees %v", refs, got)
		}
	}
}

// A repeated call of spawn_agent returns the agent of the first call. It does
// not revive it if it was terminated meanwhile.
func TestSpawn_RepeatDoesNotReviveAgent(t *testing.T) {
	w := mustWorkerFixture(t)
	manager, _ := w.Org().AgentByID(w.agent)
	c := newCall(identity.ByAgent(manager.Parent))
	first, err := w.SpawnAgent(t.Context(), c, org.SpawnSpec{Role: w.role, Brief: taskBrief}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.TerminateAgent(t.Context(), newCall(operator), first.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	_, _ = w.SpawnAgent(t.Context(), c, org.SpawnSpec{Role: w.role, Brief: taskBrief}, nil) // returns it, or an error because it is terminated
	if record, err := w.AgentRecord(t.Context(), first.ID); err != nil || record.Status != org.Terminated {
		t.Errorf("after the repeated spawn the terminated agent is %s, %v", record.Status, err)
	}
	if got := w.visibleTo(first.ID); len(got) > 0 {
		t.Errorf("the terminated agent sees %v", got)
	}
}

// A user whose name is a reserved creator, such as root or config, is not taken
// for that creator.
func TestCreateRole_UserNameIsNotReservedCreator(t *testing.T) {
	w := mustWorkerFixture(t)
	beta := toolgroups.SetOf("beta")
	caller, _ := w.createUnderRoot(t, "beta")
	declared, err := w.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "declared", Use: &beta})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []identity.UserName{org.CreatorRoot, org.CreatorOperator, org.CreatorConfig} {
		made, err := w.CreateRole(t.Context(), newCall(identity.ByCaller(name, caller)), org.RoleSpec{Name: "of " + string(name), Use: &beta})
		if err == nil && made.CreatedBy == string(name) {
			t.Errorf("the role created by a user named %s has createdBy %q", name, made.CreatedBy)
		}
		for role, want := range map[identity.RoleID]errcode.Code{declared.ID: errcode.InsufficientPermissions, w.role: errcode.RoleNotFound} {
			if _, err := w.DeleteRole(identity.ByCaller(name, caller), role, false); errcode.CodeOf(err) != want {
				t.Errorf("a user named %s deletes a role: %v, want %q", name, err, want)
			}
		}
	}
}
