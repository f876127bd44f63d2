package property_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// usurp has another owner take the place of module:a: its group's id and a tool's name.
func (w *worker) usurp(t *testing.T) {
	t.Helper()
	if err := w.Unregister("module:a", "alpha"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Register("module:b", spec{id: "alpha", tools: []toolSpec{{name: "t0"}, {name: "t9"}}}.group(nil)); err != nil {
		t.Fatal(err)
	}
}

func (w *worker) sees(id identity.AgentID) []string {
	return definitionNames(w.Gate().Subject(identity.ByAgent(id)).Visible())
}

// intern is an agent directly below root whose role uses some groups.
func (w *worker) intern(t *testing.T, use ...toolgroups.GroupID) (identity.RoleID, identity.AgentID) {
	t.Helper()
	set := toolgroups.Of(use...)
	boss, _ := w.Org().Agent(w.agent)
	task, _ := w.Org().Task(boss.Task)
	role, agent, err := w.hire(task.Top, org.RoleSpec{Name: "intern", Use: &set})
	if err != nil {
		t.Fatal(err)
	}
	return role, agent
}

func newWorkerFor(t *testing.T) *worker {
	t.Helper()
	w, err := newWorker(newMemory(), newBrain())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// A module that goes away leaves its grants inert; another owner never
// inherits them (design §4). An update that names no groups writes none: those
// the role has stay bound to whom they were.
func TestAnUpdateOfThePromptMovesNoGrant(t *testing.T) {
	w := newWorkerFor(t)
	role, agent := w.intern(t, "alpha")
	w.usurp(t)
	if _, _, err := w.UpdateRole(operator, role, org.RoleSpec{Prompt: "other words"}, false); err != nil {
		t.Fatal(err)
	}
	if got := w.sees(agent); len(got) > 0 {
		t.Errorf("after an update of the prompt the agent sees %v of another owner", got)
	}
}

// The same the other way: a group whose owner is away while the prompt is
// updated is the role's again when its owner is back.
func TestAnUpdateOfThePromptLosesNoGrant(t *testing.T) {
	w := newWorkerFor(t)
	role, agent := w.intern(t, "alpha")
	before := w.sees(agent)
	if err := w.Unregister("module:a", "alpha"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.UpdateRole(operator, role, org.RoleSpec{Prompt: "other words"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Register("module:a", modules[0].group(nil)); err != nil {
		t.Fatal(err)
	}
	if got := w.sees(agent); !slices.Equal(got, before) {
		t.Errorf("after an update of the prompt while its module was away the agent sees %v, want %v", got, before)
	}
}

// Nor does another owner inherit a place in the operator's toolset.
func TestAnotherOwnerInheritsNoReference(t *testing.T) {
	w := newWorkerFor(t)
	if _, err := w.Register(toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"t0"}}); err != nil {
		t.Fatal(err)
	}
	_, agent := w.intern(t, "kit")
	w.usurp(t)
	if got := w.sees(agent); len(got) > 0 {
		t.Errorf("the toolset was written for a tool of module:a; the agent sees %v of module:b", got)
	}
}

// A caller's task is bounded by what the caller's role is bound to.
func TestATaskInheritsNothingForItsCaller(t *testing.T) {
	w := newWorkerFor(t)
	role, _ := w.intern(t, "alpha")
	w.usurp(t)
	id, err := w.Start(context.Background(), org.TaskSpec{Caller: identity.ByCaller("u", role), Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	task, _ := w.Org().Task(id)
	alpha := toolgroups.Of("alpha")
	_, agent, err := w.hire(task.Top, org.RoleSpec{Name: "helper", Use: &alpha})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.sees(agent); len(got) > 0 {
		t.Errorf("the caller's role was bound to module:a; the task's agent sees %v of module:b", got)
	}
}

// A limit is live also where the role itself does not name its groups: here a
// toolset that only the maker's grant holds.
func TestAToolsetThatOnlyALimitHoldsIsLive(t *testing.T) {
	w := newWorkerFor(t)
	kit := toolgroups.Of("kit")
	for i, refs := range [][]string{{"t0", "t2", "t3"}, {"t2"}, nil, {"t3", "t0"}} {
		if _, err := w.Register(toolgroups.Config, toolgroups.Group{ID: "kit", Refs: refs}); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // from then on only the toolset changes
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
		if got := w.sees(w.agent); !slices.Equal(got, want) {
			t.Errorf("the toolset holds %v, the agent sees %v", refs, got)
		}
	}
}

// A call of spawn_agent that is repeated finds what it made (design §5), also
// when that was terminated meanwhile: nobody is brought back.
func TestARepeatedSpawnBringsNobodyBack(t *testing.T) {
	w := newWorkerFor(t)
	boss, _ := w.Org().Agent(w.agent)
	c := call(identity.ByAgent(boss.Parent))
	first, err := w.Spawn(t.Context(), c, org.Spawn{Role: w.role, Brief: brief}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Terminate(t.Context(), call(operator), first.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Spawn(t.Context(), c, org.Spawn{Role: w.role, Brief: brief}, nil) // finds it, or says that it is gone
	if record, err := w.AgentRecord(t.Context(), first.ID); err != nil || record.Status != org.Terminated {
		t.Errorf("after the repeated spawn the terminated agent is %s, %v", record.Status, err)
	}
	if got := w.sees(first.ID); len(got) > 0 {
		t.Errorf("the terminated agent sees %v", got)
	}
}

// Who is outside passes for nobody inside: a user's name is not a maker's.
func TestAUsersNameMakesNoConfiguration(t *testing.T) {
	w := newWorkerFor(t)
	beta := toolgroups.Of("beta")
	caller, _ := w.intern(t, "beta")
	for _, name := range []identity.User{org.CreatorRoot, org.CreatorOperator, org.CreatorConfig} {
		made, err := w.CreateRole(t.Context(), call(identity.ByCaller(name, caller)), org.RoleSpec{Name: "of " + string(name), Use: &beta})
		if err == nil && made.CreatedBy == string(name) {
			t.Errorf("the role a user named %s made says createdBy %q", name, made.CreatedBy)
		}
		if _, err := w.DeleteRole(identity.ByCaller(name, caller), w.role, false); errcode.Of(err) != errcode.InsufficientPermissions {
			t.Errorf("a user named %s deletes a role: %v", name, err)
		}
	}
}
