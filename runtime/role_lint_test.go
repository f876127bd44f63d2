package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// lintFixture has the tool poke in the group probe, and agents of the role worker that root
// creates and that call poke.
func lintFixture(t *testing.T) *fixture {
	t.Helper()
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return 1, nil })
	return fixtureConfig{tools: []tool.Tool{poke}, model: answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role == org.RootRole {
			return delegate(r, "worker", "probe")
		}
		if answerCount(r) == 0 {
			return callTools("poke", obj{})
		}
		return endWith("done")
	})}.open(t)
}

func (fx *fixture) createRole(t *testing.T, spec org.RoleSpec) org.Role {
	t.Helper()
	role, err := fx.CreateRole(t.Context(), newCall(operator), spec)
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// lint returns the lint of a role. Its kept sets must be the ones that are wanted.
func (fx *fixture) lint(t *testing.T, q runtime.LintQuery, use, grant string) runtime.RoleLint {
	t.Helper()
	l, err := fx.LintRole(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if l.Use.Kept.String() != use || l.Grant.Kept.String() != grant {
		t.Errorf("kept %v, and the grant %v; want %s and %s", l.Use.Kept, l.Grant.Kept, use, grant)
	}
	return l
}

// What bounds the tasks of a caller keeps what their agents called, and what lets the caller
// start tasks. Role probes has done nothing itself.
func TestLintRole_KeepsWhatTasksOfCallersUse(t *testing.T) {
	fx := lintFixture(t)
	clerk := fx.createRole(t, org.RoleSpec{Name: "clerk", Use: groupSet("org_management", "probe", "console", "context")})
	fx.run(t, org.TaskSpec{Caller: identity.ByCaller("ann", clerk.ID)})
	l := fx.lint(t, runtime.LintQuery{Role: clerk.ID}, "org_management,probe", "-")
	if l.Calls != 0 || l.Others != 1 || l.Denied != 0 || len(l.Tools) != 1 || l.Tools[0].Other != 1 || !l.Narrows() {
		t.Errorf("got %+v", l)
	}
	probes := fx.createRole(t, org.RoleSpec{Name: "probes", Use: groupSet("probe", "console")})
	desk := fx.createRole(t, org.RoleSpec{Name: "desk", Use: groupSet("console"), TasksAs: new("probes")})
	fx.run(t, org.TaskSpec{Caller: identity.ByCaller("bob", desk.ID)})
	fx.lint(t, runtime.LintQuery{Role: probes.ID}, "probe", "-")
	if l := fx.lint(t, runtime.LintQuery{Role: desk.ID}, "-", "-"); l.IsUsed() {
		t.Errorf("the tasks of desk are bounded by another role; got %+v", l)
	}
}

// An agent that was spawned before the span depends on the grant of the agent above it, also
// when both have ended.
func TestLintRole_FindsAgentsFromBeforeTheSpan(t *testing.T) {
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return 1, nil })
	clock := &wallClock{}
	fx := fixtureConfig{tools: []tool.Tool{poke}, configure: clock.configure, model: answerFunc(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "lead":
			return delegate(r, "worker", "probe")
		case answerCount(r) == 0:
			clock.set(time.Hour)
			return callTools("poke", obj{})
		}
		return endWith("done")
	})}.open(t)
	lead := fx.createRole(t, org.RoleSpec{Name: "lead", Use: groupSet("org_management"), Grant: groupSet("probe", "console", "context")})
	clerk := fx.createRole(t, org.RoleSpec{Name: "clerk", Use: groupSet("org_management", "probe", "console", "context", "artifact")})
	fx.run(t, org.TaskSpec{Role: "lead", Caller: identity.ByCaller("ann", clerk.ID)})
	var poked time.Time
	for _, e := range eventsOf[journal.ToolCall](t, fx) {
		if e.Body.(journal.ToolCall).Tool == "poke" {
			poked = e.At
		}
	}
	l := fx.lint(t, runtime.LintQuery{Role: lead.ID, From: poked}, "-", "probe")
	if l.Calls != 0 || l.Others != 1 || l.Grants != 0 {
		t.Errorf("got %+v", l)
	}
	if l := fx.lint(t, runtime.LintQuery{Role: clerk.ID, From: poked}, "probe", "-"); l.Others != 1 {
		t.Errorf("of the caller: %+v", l)
	}
	l = fx.lint(t, runtime.LintQuery{Role: lead.ID, To: poked}, "org_management", "probe")
	if l.Calls != 2 || l.Others != 0 || l.Grants != 2 || !l.Last.Before(poked) || l.Since.After(l.First) {
		t.Errorf("got %+v", l)
	}
	if l := fx.lint(t, runtime.LintQuery{Role: lead.ID, To: l.Since}, "-", "-"); l.IsUsed() || l.Narrows() {
		t.Errorf("before the record: %+v", l)
	}
}

// In place of all groups a grant keeps the ids that spawned roles name, also without a group. An
// agent that follows the advice spawns the role again.
func TestLintRole_KeepsUnknownGroupsOfSpawnedRoles(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	lead := fx.createRole(t, org.RoleSpec{Name: "lead", Use: groupSet("org_management"), Grant: new(toolgroups.AllGroups())})
	clerk := fx.createRole(t, org.RoleSpec{Name: "clerk", Use: groupSet("console"), Grant: groupSet("unknown"), AllowUnknown: true})
	agent := fx.spawnRole(t, fx.topAgent(t, fx.start(t, org.TaskSpec{})), lead.ID)
	fx.spawnRole(t, agent, clerk.ID)
	l := fx.lint(t, runtime.LintQuery{Role: lead.ID}, "-", "console,unknown")
	listed := func(g runtime.GroupLint) bool { return g.ID == "unknown" && g.Held && g.Kept && g.Away }
	if !slices.ContainsFunc(l.Grant.Groups, listed) {
		t.Errorf("got %+v", l.Grant.Groups)
	}
	follow := org.RoleSpec{Use: &l.Use.Kept, Grant: &l.Grant.Kept, AllowUnknown: true}
	if _, _, err := fx.UpdateRole(operator, lead.ID, follow, false); err != nil {
		t.Fatal(err)
	}
	fx.spawnRole(t, agent, clerk.ID)
	if l := fx.lint(t, runtime.LintQuery{Role: lead.ID}, "-", "console,unknown"); l.Narrows() || l.Grants != 2 {
		t.Errorf("after the advice: %+v", l)
	}
}

// A tool that is gone keeps its group while that is away, and not when another owner has it.
func TestLintRole_KeepsGroupsThatAreAway(t *testing.T) {
	fx := lintFixture(t)
	role := fx.createRole(t, org.RoleSpec{Name: "worker", Use: groupSet("probe", "console")})
	ann := identity.ByCaller("ann", role.ID)
	fx.invoke(t, ann, "poke", obj{})
	q := runtime.LintQuery{Role: role.ID}
	if l := fx.lint(t, q, "probe", "-"); l.Calls != 1 || l.Tools[0].Gone || l.Tools[0].Group != "probe" {
		t.Errorf("got %+v", l)
	}
	if err := grouptest.UnregisterGroup(fx.GroupManager(), "test", "probe"); err != nil {
		t.Fatal(err)
	}
	if l := fx.lint(t, q, "probe", "-"); !l.Tools[0].Gone || !l.Use.Groups[0].Away || !l.Use.Groups[0].Kept {
		t.Errorf("away: %+v", l)
	}
	other := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return 2, nil })
	if _, err := grouptest.RegisterGroup(fx.GroupManager(), "other", toolgroups.Group{ID: "probe", Tools: []tool.Tool{other}}); err != nil {
		t.Fatal(err)
	}
	if l := fx.lint(t, q, "-", "-"); !l.Use.Groups[0].Away {
		t.Errorf("of another owner: %+v", l)
	}
}

// A tool that is gone keeps no group that is away if its own group is below another. So the advice
// has nothing left to narrow.
func TestLintRole_DropsAwayGroupsBesideAGroupAbove(t *testing.T) {
	fx := lintFixture(t)
	register := func(g toolgroups.Group) {
		if _, err := grouptest.RegisterGroup(fx.GroupManager(), "test", g); err != nil {
			t.Fatal(err)
		}
	}
	pull := newTool(t, "pull", tool.Options{}, func(context.Context, obj) (any, error) { return 1, nil })
	register(toolgroups.Group{ID: "suite", Children: []toolgroups.GroupID{"probe"}, Tools: []tool.Tool{pull}})
	role := fx.createRole(t, org.RoleSpec{Name: "worker", Use: groupSet("suite", "unknown"), AllowUnknown: true})
	fx.invoke(t, identity.ByCaller("ann", role.ID), "poke", obj{})
	if err := grouptest.UnregisterGroup(fx.GroupManager(), "test", "probe"); err != nil {
		t.Fatal(err)
	}
	register(toolgroups.Group{ID: "probe"})
	l := fx.lint(t, runtime.LintQuery{Role: role.ID}, "probe", "-")
	if _, _, err := fx.UpdateRole(operator, role.ID, org.RoleSpec{Use: &l.Use.Kept}, false); err != nil {
		t.Fatal(err)
	}
	if l := fx.lint(t, runtime.LintQuery{Role: role.ID}, "probe", "-"); l.Narrows() || !l.Tools[0].Gone {
		t.Errorf("after the advice: %+v", l)
	}
}

// Names of denied calls are bounded, and no denied call keeps a group.
func TestLintRole_BoundsDeniedNames(t *testing.T) {
	fx := lintFixture(t)
	role := fx.createRole(t, org.RoleSpec{Name: "worker", Use: groupSet("probe", "console")})
	ann := identity.ByCaller("ann", role.ID)
	for i := range 110 {
		if _, err := fx.InvokeTool(t.Context(), ann, fmt.Sprintf("\x1b[31m%d%s", i, strings.Repeat("é", 500)), nil); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := fx.InvokeTool(t.Context(), ann, "console_print", []byte(`{"wrong":1}`)); err != nil || a.Allowed() {
		t.Fatalf("wrong arguments: %v, %v", a, err)
	}
	l := fx.lint(t, runtime.LintQuery{Role: role.ID}, "-", "-")
	if l.Denied != 111 || len(l.Refused) != 100 || l.IsUsed() {
		t.Errorf("%d denied, %d names, used %t", l.Denied, len(l.Refused), l.IsUsed())
	}
	if slices.ContainsFunc(l.Refused, func(t runtime.LintedTool) bool { return len(t.Name) > 140 }) {
		t.Error("a name is not shortened")
	}
}

// Root's role is fixed, and an unknown role is an error.
func TestLintRole_Errors(t *testing.T) {
	fx := lintFixture(t)
	for id, code := range map[identity.RoleID]errcode.Code{org.RootRole: errcode.InvalidRole, "nothing": errcode.RoleNotFound} {
		if _, err := fx.LintRole(t.Context(), runtime.LintQuery{Role: id}); errcode.CodeOf(err) != code {
			t.Errorf("role %s: %v, want %s", id, err, code)
		}
	}
}
