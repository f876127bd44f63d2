package org_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// agentOf lets callers ask, with groups when a request names none.
func agentOf(ids ...toolgroups.GroupID) *org.AskSettings {
	return &org.AskSettings{DefaultGroups: of(ids...)}
}

// newAskFixture returns a fixture with callers in a role that uses workspace and docs, and that
// lets them ask its agents with docs.
func newAskFixture(t *testing.T) (f *fixture, clerk org.Role, start func(org.TaskSpec) (org.Task, org.Agent, error)) {
	f = newFixture(t)
	clerk = f.role(operator, org.RoleSpec{Name: "clerk", Use: of("workspace", "docs"), Agent: agentOf("docs"), States: []string{"draft", "review"}})
	return f, clerk, func(s org.TaskSpec) (org.Task, org.Agent, error) {
		s.Ask, s.Caller = true, identity.ByCaller("ann", clerk.ID)
		if s.Role == "" {
			s.Role = string(clerk.ID)
		}
		task, agent, changes, err := f.StartTask(identity.TaskID(f.id("asked")), s)
		if err == nil {
			f.store.put(changes)
		}
		return task, agent, err
	}
}

// A request that names no groups gets the default groups of the role; one that names groups is
// held to what the role may use.
func TestAsk_GroupsOfRequest(t *testing.T) {
	f, _, start := newAskFixture(t)
	for _, tt := range []struct {
		groups *toolgroups.GroupSet
		tools  []string
	}{
		{nil, []string{"search"}},
		{of("workspace"), []string{"read_file", "write_file"}},
		{of("*"), []string{"read_file", "search", "write_file"}},
		{of(), []string{}},
	} {
		task, agent, err := start(org.TaskSpec{Groups: tt.groups})
		if err != nil {
			t.Fatal(err)
		}
		f.wantTools(agent.ID, tt.tools...)
		if !task.Asked || (task.Requested == nil) != (tt.groups == nil) {
			t.Errorf("groups %v are recorded as %v", tt.groups, task.Requested)
		}
	}
	_, _, err := start(org.TaskSpec{Groups: of("docs", "command")})
	wantCode(t, err, errcode.InsufficientPermissions, "may not use [command]")
	_, _, err = start(org.TaskSpec{Groups: of("nothing")})
	wantCode(t, err, errcode.InsufficientPermissions, "may not use [nothing]")
}

// A request that names no groups, and so leaves no tool, is told the groups of the role, and no
// others. A role without tools is asked without tools.
func TestAsk_NoToolsAvailable(t *testing.T) {
	f, clerk, start := newAskFixture(t)
	for _, agent := range []*org.AskSettings{{}, agentOf(), agentOf("command"), agentOf("nothing")} {
		f.update(clerk.ID, org.RoleSpec{Agent: agent})
		_, _, err := start(org.TaskSpec{})
		wantCode(t, err, errcode.NoToolsAvailable)
		e, _ := errors.AsType[*errcode.Error](err)
		if diff := cmp.Diff(any([]toolgroups.GroupID{"docs", "workspace"}), e.Details["groups"]); diff != "" {
			t.Errorf("%+v: groups (-want +got):\n%s", agent, diff)
		}
	}
	f.update(clerk.ID, org.RoleSpec{Use: of()})
	if _, agent, err := start(org.TaskSpec{}); err != nil {
		t.Error(err)
	} else {
		f.wantTools(agent.ID)
	}
}

// Callers ask agents of their own role only if the role says so, and those of another role only
// if they may start tasks. Other roles do not exist for them.
func TestAsk_OnlyWhereAllowed(t *testing.T) {
	f, clerk, start := newAskFixture(t)
	f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs")})
	for _, name := range []string{"reader", "nobody", org.RootRole} {
		_, _, err := start(org.TaskSpec{Role: name})
		wantCode(t, err, errcode.RoleNotFound, "there is no role")
	}
	f.update(clerk.ID, org.RoleSpec{Defaults: []org.RoleField{org.AgentField}})
	_, _, err := start(org.TaskSpec{})
	wantCode(t, err, errcode.InsufficientPermissions)
	f.update(clerk.ID, org.RoleSpec{TasksAs: ptr("clerk")})
	if _, _, err := start(org.TaskSpec{Role: "reader", Groups: of("docs")}); err != nil {
		t.Error(err)
	}
	f.update(clerk.ID, org.RoleSpec{Agent: agentOf("docs")})
	f.suspend(clerk.ID)
	_, _, err = start(org.TaskSpec{})
	wantCode(t, err, errcode.InsufficientPermissions)
	if _, _, _, err := f.StartTask("x", org.TaskSpec{Caller: operator, Ask: true}); errcode.CodeOf(err) != errcode.InvalidArguments {
		t.Errorf("without a role: %v", err)
	}
}

// An agent that is asked has no more than its caller, also if its role may grant more.
func TestAsk_GrantsNothing(t *testing.T) {
	f, clerk, start := newAskFixture(t)
	f.update(clerk.ID, org.RoleSpec{Use: of("org_management", "docs"), Grant: of("command", "docs")})
	_, agent, err := start(org.TaskSpec{Groups: of("*")})
	if err != nil {
		t.Fatal(err)
	}
	wantSet(t, f.GrantableGroups(agent.ID), "docs")
	f.update(clerk.ID, org.RoleSpec{Use: of("org_management")})
	if tools := strings.Join(f.tools(agent.ID), " "); strings.Contains(tools, "search") {
		t.Errorf("after the change the agent has %s", tools)
	}
}

// A caller begins in a state that its role lists, while none is on record for it. The state is
// durable; another one is a conflict.
func TestAsk_StateOfRequest(t *testing.T) {
	f, clerk, start := newAskFixture(t)
	caller := ann(clerk)
	_, _, err := start(org.TaskSpec{State: "done"})
	wantCode(t, err, errcode.InsufficientPermissions, "lists no such state")
	for _, state := range []string{"", toolgroups.UndefinedState} {
		if _, _, err := start(org.TaskSpec{State: state}); err != nil {
			t.Errorf("state %q: %v", state, err)
		}
	}
	_, _, err = start(org.TaskSpec{State: "draft", Groups: of("command")})
	wantCode(t, err, errcode.InsufficientPermissions)
	f.wantVisible(caller, "", "read_file", "search", "write_file") // a request that is denied records no state
	if _, _, err := start(org.TaskSpec{State: "draft"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f.wantVisible(caller, "draft", "read_file", "search", "write_file")
		_, _, err = start(org.TaskSpec{State: "review"})
		wantCode(t, err, errcode.Conflict, `in state "draft"`)
		_, _, err = start(org.TaskSpec{State: toolgroups.UndefinedState})
		wantCode(t, err, errcode.Conflict)
		if _, _, err := start(org.TaskSpec{State: "draft"}); err != nil {
			t.Error(err)
		}
		f.reopen()
	}
	_, agent, _, err := f.StartTask("operator's", org.TaskSpec{Caller: operator, Role: "clerk", Ask: true, State: "any"})
	if err != nil || agent.State != "any" {
		t.Errorf("the operator begins in %q, %v", agent.State, err)
	}
}

// What a role says about requests is checked, and only roles of the operator say it.
func TestRole_RequestsRejected(t *testing.T) {
	f := newFixture(t)
	for _, spec := range []org.RoleSpec{
		{States: []string{""}}, {States: []string{"*"}}, {States: []string{"a\nb"}}, {States: []string{strings.Repeat("s", 129)}},
		{States: make([]string, 101)}, {Agent: agentOf("no group")},
	} {
		spec.Name = "r"
		_, err := f.create(operator, spec)
		wantCode(t, err, errcode.InvalidRole)
	}
	agent := f.task(org.TaskSpec{})
	for _, spec := range []org.RoleSpec{{States: []string{"s"}}, {Agent: agentOf()}} {
		spec.Name, spec.Use = "made", of()
		_, err := f.create(identity.ByAgent(agent), spec)
		wantCode(t, err, errcode.InvalidRole, "only roles of the operator")
	}
}

// A change keeps what it does not name, and a default clears it.
func TestRole_RequestsChange(t *testing.T) {
	f, clerk, _ := newAskFixture(t)
	f.update(clerk.ID, org.RoleSpec{Prompt: "p"})
	role, _ := f.RoleByID(clerk.ID)
	if diff := cmp.Diff([]string{"draft", "review"}, role.States); diff != "" || role.Agent == nil {
		t.Errorf("agent %v, states:\n%s", role.Agent, diff)
	}
	if again, err := f.create(operator, org.RoleSpec{Name: "clerk", Prompt: "p", Use: of("workspace", "docs")}); errcode.CodeOf(err) != errcode.RoleExists {
		t.Errorf("a role without them is the same: %v, %v", again.ID, err)
	}
	f.update(clerk.ID, org.RoleSpec{Defaults: []org.RoleField{org.AgentField, org.StatesField}})
	if role, _ = f.RoleByID(clerk.ID); role.Agent != nil || role.States != nil {
		t.Errorf("after the default: %v, %v", role.Agent, role.States)
	}
}

// The default groups of a role that another role's callers ask are held to those callers.
func TestAsk_DefaultGroupsOfOther(t *testing.T) {
	f, clerk, start := newAskFixture(t)
	f.update(clerk.ID, org.RoleSpec{TasksAs: ptr("clerk")})
	f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs"), Agent: agentOf("docs", "command")})
	task, agent, err := start(org.TaskSpec{Role: "reader"})
	if err != nil {
		t.Fatal(err)
	}
	wantSet(t, task.Groups.Set, "docs")
	f.wantTools(agent.ID, "search")
	f.role(operator, org.RoleSpec{Name: "all", Use: of("docs"), Agent: agentOf("*")})
	if task, _, err = start(org.TaskSpec{Role: "all"}); err != nil {
		t.Fatal(err)
	}
	wantSet(t, task.Groups.Set, "workspace,docs")
}

// A request that names no groups has default groups, whether it is granted or not. It has none
// if the role is another than the sender's own and the sender may not ask it.
func TestDefaultGroups(t *testing.T) {
	f, clerk, _ := newAskFixture(t)
	reader := f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs"), Agent: agentOf("docs", "command")})
	plain := f.role(operator, org.RoleSpec{Name: "plain", Use: of("docs")})
	strong := f.role(operator, org.RoleSpec{Name: "strong", Use: of("command"), Agent: agentOf("command")})
	ask := func(caller org.Role, role string) org.TaskSpec {
		return org.TaskSpec{Ask: true, Caller: identity.ByCaller("ann", caller.ID), Role: role}
	}
	check := func(name string, s org.TaskSpec, want string) {
		t.Helper()
		got := "nil"
		if set := f.DefaultGroups(s); set != nil {
			got = strings.Join(set.Names(), ",")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	check("own role", ask(clerk, "clerk"), "docs")
	check("own role by id", ask(clerk, string(clerk.ID)), "docs")
	check("own role without agent", ask(plain, "plain"), "default")
	check("other role", ask(clerk, "reader"), "nil")
	check("no role", ask(clerk, "nobody"), "nil")
	check("no role at all", ask(org.Role{}, ""), "nil")
	check("no agent", org.TaskSpec{Caller: identity.ByCaller("ann", clerk.ID)}, "*")
	named := ask(clerk, "clerk")
	named.Groups = of()
	check("groups named", named, "nil")
	f.update(clerk.ID, org.RoleSpec{TasksAs: ptr("clerk")})
	check("other role of its tasks", ask(clerk, "reader"), strings.Join(reader.Agent.DefaultGroups.Names(), ","))
	check("a role beyond its tasks", ask(clerk, string(strong.ID)), "nil")
}

// A stored role of an agent that says something about callers is ignored as a whole.
func TestAsk_ForgedRecords(t *testing.T) {
	f := newFixture(t)
	made := f.role(identity.ByAgent(f.task(org.TaskSpec{})), org.RoleSpec{Name: "made", Use: of("docs")})
	text, _ := json.Marshal(made)
	for _, field := range []string{`"agent":{}`, `"states":["draft"]`} {
		f.store.set(string(org.KindRole), string(made.ID), strings.TrimSuffix(string(text), "}")+","+field+"}")
		f.reopen()
		if role, ok := f.RoleByID(made.ID); ok {
			t.Errorf("a record with %s was read: %+v", field, role)
		}
	}
}

// A caller that may start tasks by org_management may not do so from a network without the group,
// also not by asking an agent.
func TestAsk_NetworkWithoutOrgManagement(t *testing.T) {
	f := newFixture(t)
	desk := f.role(operator, org.RoleSpec{Name: "desk", Use: of("org_management", "docs")})
	ask := func(within string) error {
		by := identity.ByCaller("ann", desk.ID)
		by.Within = within
		_, _, _, err := f.StartTask(identity.TaskID(f.id("asked")), org.TaskSpec{Caller: by, Role: string(desk.ID), Ask: true, Groups: of("docs")})
		return err
	}
	for within, allowed := range map[string]bool{
		"": true, f.LimitTo(toolgroups.SetOf("docs", "org_management")): true, f.LimitTo(toolgroups.SetOf("docs")): false,
	} {
		if err := ask(within); (err == nil) != allowed {
			t.Errorf("within %q: %v, want allowed %v", within, err, allowed)
		}
		by := identity.ByCaller("ann", desk.ID)
		by.Within = within
		if roles := f.AskableRoles(by); (len(roles) > 0) != allowed {
			t.Errorf("within %q the caller may ask %d roles", within, len(roles))
		}
	}
}

// The tools of a caller are computed once for all roles that it may ask.
func TestAskableRoles_ComputesToolsOnce(t *testing.T) {
	const tools, roles = 2000, 200
	f := newFixture(t)
	names := make([]string, tools)
	for i := range names {
		names[i] = fmt.Sprint("big_", i)
	}
	f.register("probe", "big", names...)
	desk := f.role(operator, org.RoleSpec{Name: "desk", Use: of("big")})
	for i := range roles {
		f.role(operator, org.RoleSpec{Name: fmt.Sprint("role-", i), Use: of("big")})
	}
	by := identity.ByCaller("ann", desk.ID)
	f.AskableRoles(by)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f.AskableRoles(by)
	runtime.ReadMemStats(&after)
	if used, limit := after.TotalAlloc-before.TotalAlloc, uint64(tools*roles*8); used > limit {
		t.Errorf("%d bytes for %d roles, want at most %d", used, roles, limit)
	}
}
