package org_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// callersFixture is an organization in which two users of one role have tasks.
type callersFixture struct {
	*fixture
	ann, bob         identity.Principal
	annRoot, bobRoot identity.AgentID
}

func newCallersFixture(t testing.TB) *callersFixture {
	f := &callersFixture{fixture: newFixture(t)}
	guest := f.role(operator, org.RoleSpec{Name: "guest", Use: of(toolgroups.OrgManagement, toolgroups.Workspace)})
	f.ann, f.bob = identity.ByCaller("ann", guest.ID), identity.ByCaller("bob", guest.ID)
	f.annRoot, f.bobRoot = f.task(org.TaskSpec{Caller: f.ann}), f.task(org.TaskSpec{Caller: f.bob})
	return f
}

// helper creates a role of a name on behalf of an agent.
func (f *callersFixture) helper(agent identity.AgentID, name string) org.Role {
	f.t.Helper()
	return f.role(identity.ByAgent(agent), org.RoleSpec{Name: name, Use: of(toolgroups.Workspace)})
}

// wantFinds checks which role a name means for an agent, and whether the agent may spawn
// agents of a role. The id "" is for none.
func (f *callersFixture) wantFinds(agent identity.AgentID, name string, want identity.RoleID) {
	f.t.Helper()
	if got, ok := f.RoleForAgent(agent, name); got.ID != want || ok != (want != "") {
		f.t.Errorf("agent %s finds role %q, %v for the name %q; want %q", agent, got.ID, ok, name, want)
	}
}

func (f *callersFixture) wantSpawns(agent identity.AgentID, role identity.RoleID, want errcode.Code) {
	f.t.Helper()
	if _, err := f.trySpawn(agent, role); errcode.CodeOf(err) != want {
		f.t.Errorf("agent %s spawns an agent of role %q: %v, want code %q", agent, role, err, want)
	}
}

// A role that an agent has created exists for the tasks of the same caller only. Another
// user, the same user in another role and the operator's tasks are other callers.
func TestRoleOwner_ExistsForTasksOfCallerOnly(t *testing.T) {
	f := newCallersFixture(t)
	other := f.role(operator, org.RoleSpec{Name: "other", Use: of(toolgroups.OrgManagement, toolgroups.Workspace)})
	helper := f.helper(f.annRoot, "helper")
	child := f.spawn(f.annRoot, f.role(identity.ByAgent(f.annRoot), org.RoleSpec{Name: "lead", Use: of(toolgroups.OrgManagement, toolgroups.Workspace)}).ID)
	finders := []identity.AgentID{f.annRoot, child, f.task(org.TaskSpec{Caller: f.ann})}
	others := []identity.AgentID{
		f.bobRoot, f.task(org.TaskSpec{Caller: identity.ByCaller("ann", other.ID)}), f.task(org.TaskSpec{}),
		f.spawn(f.bobRoot, other.ID), "nobody",
	}
	for range 2 { // in memory, then from the store
		for _, agent := range finders {
			f.wantFinds(agent, "helper", helper.ID)
			f.wantFinds(agent, "guest", f.ann.Role)
			f.wantSpawns(agent, helper.ID, "")
			_, _, _, err := f.UpdateRole(identity.ByAgent(agent), helper.ID, org.RoleSpec{Prompt: "x"}, false)
			wantCode(t, err, errcode.InsufficientPermissions)
		}
		for _, agent := range others[:len(others)-1] {
			f.wantFinds(agent, "helper", "")
			f.wantFinds(agent, "guest", f.ann.Role)
			_, known := f.trySpawn(agent, helper.ID)
			_, unknown := f.trySpawn(agent, "nowhere")
			if got := strings.ReplaceAll(errcode.Message(known), string(helper.ID), "nowhere"); got != errcode.Message(unknown) || errcode.CodeOf(known) != errcode.RoleNotFound {
				t.Errorf("agent %s: the role of another caller is %v, a role that does not exist %v", agent, known, unknown)
			}
			_, _, _, err := f.UpdateRole(identity.ByAgent(agent), helper.ID, org.RoleSpec{Prompt: "x"}, false)
			wantCode(t, err, errcode.RoleNotFound)
		}
		f.wantFinds("nobody", "helper", "")
		f.reopen()
	}
}

// A caller cannot start a task as a role of another caller's tasks, by id or by name. The
// operator can.
func TestStartTask_RoleOfOtherCallerDoesNotExist(t *testing.T) {
	f := newCallersFixture(t)
	helper := f.helper(f.annRoot, "helper")
	for _, ref := range []string{string(helper.ID), "helper"} {
		_, _, _, err := f.StartTask("t1", org.TaskSpec{Caller: f.bob, Role: ref})
		wantCode(t, err, errcode.RoleNotFound)
		for _, by := range []identity.Principal{f.ann, operator} {
			id := identity.TaskID(f.id("task"))
			if _, agent, _, err := f.StartTask(id, org.TaskSpec{Caller: by, Role: ref}); agent.Role != helper.ID || err != nil {
				t.Errorf("%s starts a task as %s: role %q, %v", by, ref, agent.Role, err)
			}
		}
	}
}

// Each caller may have a role of the same name. To the operator the name is ambiguous, and
// the error lists the ids.
func TestRoleOwner_NamesAreUniqueForEachCaller(t *testing.T) {
	f := newCallersFixture(t)
	operatorRoot := f.task(org.TaskSpec{})
	roles := map[identity.AgentID]identity.RoleID{}
	for _, agent := range []identity.AgentID{f.annRoot, f.bobRoot, operatorRoot} {
		roles[agent] = f.helper(agent, "helper").ID
		_, err := f.create(identity.ByAgent(agent), org.RoleSpec{Name: "helper", Prompt: "another", Use: of()})
		wantCode(t, err, errcode.RoleExists, "spawn that one", string(roles[agent]))
		if again := f.helper(agent, "helper"); again.ID != roles[agent] {
			t.Errorf("the same role again is %q, want %q", again.ID, roles[agent])
		}
	}
	for range 2 {
		for agent, role := range roles {
			f.wantFinds(agent, "helper", role)
			if found, err := f.FindRole(string(role)); err != nil || found.ID != role {
				t.Errorf("the operator finds %q, %v for the id %q", found.ID, err, role)
			}
			_, err := f.FindRole("helper")
			wantCode(t, err, errcode.Conflict, "3 roles", string(role))
		}
		if _, ok := f.RoleByName("helper"); ok {
			t.Error("an ambiguous name means a role")
		}
		if n := len(f.ListRoles()); n != 4 {
			t.Errorf("the operator sees %d roles, want 4", n)
		}
		f.reopen()
	}
	f.remove(roles[operatorRoot])
	f.remove(roles[f.bobRoot])
	if found, err := f.FindRole("helper"); err != nil || found.ID != roles[f.annRoot] {
		t.Errorf("the operator finds %q, %v, want the only role of the name", found.ID, err)
	}
}

// The error for an ambiguous name is bounded.
func TestFindRole_AmbiguousNameListsSomeIDs(t *testing.T) {
	f := newCallersFixture(t)
	for range 50 {
		by := identity.ByCaller(identity.UserName(f.id("user")), f.ann.Role)
		f.helper(f.task(org.TaskSpec{Caller: by}), "helper")
	}
	_, err := f.FindRole("helper")
	wantCode(t, err, errcode.Conflict, "50 roles")
	if n := strings.Count(errcode.Message(err), ", r"); n > 25 {
		t.Errorf("the error lists %d ids", n)
	}
}

// A declared role may take the name of a role of a caller's tasks. From then on the name
// means the operator's roles only, also after that role is deleted; the id still finds the
// caller's role.
func TestRoleOwner_DeclaredRoleTakesName(t *testing.T) {
	f := newCallersFixture(t)
	byOperator, byConfig := f.helper(f.annRoot, "by hand"), f.helper(f.annRoot, "configured")
	declared := []org.Role{f.role(operator, org.RoleSpec{Name: "by hand", Use: of()}), f.configured("configured", org.RoleSpec{Name: "configured", Use: of()})}
	for i, own := range []org.Role{byOperator, byConfig} {
		f.wantFinds(f.annRoot, own.Name, declared[i].ID)
		f.wantFinds(f.bobRoot, own.Name, declared[i].ID)
		if found, err := f.FindRole(own.Name); err != nil || found.ID != declared[i].ID || found.ID == "" {
			t.Errorf("the operator finds %q, %v for %q, want the declared role", found.ID, err, own.Name)
		}
		_, err := f.create(identity.ByAgent(f.annRoot), org.RoleSpec{Name: own.Name})
		wantCode(t, err, errcode.RoleExists)
	}
	f.remove(declared[0].ID)
	f.configured("")
	for range 2 {
		for _, own := range []org.Role{byOperator, byConfig} {
			f.wantFinds(f.annRoot, own.Name, "")
			f.wantSpawns(f.annRoot, own.ID, "")
			_, err := f.FindRole(own.Name)
			wantCode(t, err, errcode.RoleNotFound)
			if found, err := f.FindRole(string(own.ID)); err != nil || found.ID != own.ID {
				t.Errorf("the id of %q finds %q, %v", own.Name, found.ID, err)
			}
			_, err = f.create(identity.ByAgent(f.annRoot), org.RoleSpec{Name: own.Name})
			wantCode(t, err, errcode.InvalidRole, "choose another name")
		}
		f.reopen()
	}
	f.update(byOperator.ID, org.RoleSpec{Name: "free"})
	f.wantFinds(f.annRoot, "free", byOperator.ID)
	_, _, _, err := f.UpdateRole(operator, byOperator.ID, org.RoleSpec{Name: "configured"}, false)
	wantCode(t, err, errcode.InvalidRole, "choose another name")
}

// The operator may rename a role of a caller's tasks to a name that another caller uses.
func TestUpdateRole_NameOfOtherCaller(t *testing.T) {
	f := newCallersFixture(t)
	anns, bobs := f.helper(f.annRoot, "helper"), f.helper(f.bobRoot, "reader")
	f.helper(f.bobRoot, "writer")
	f.update(bobs.ID, org.RoleSpec{Name: "helper"})
	f.wantFinds(f.annRoot, "helper", anns.ID)
	f.wantFinds(f.bobRoot, "helper", bobs.ID)
	f.wantFinds(f.bobRoot, "reader", "")
	_, _, _, err := f.UpdateRole(operator, bobs.ID, org.RoleSpec{Name: "writer"}, false)
	wantCode(t, err, errcode.RoleExists)
	_, _, _, err = f.UpdateRole(operator, f.bob.Role, org.RoleSpec{Name: "helper"}, false) // declared
	wantCode(t, err, "")
}

// Callers whose principals have the same String are different callers.
func TestRoleOwner_CallersOfSameText(t *testing.T) {
	f := newCallersFixture(t)
	odd, changes, err := f.CreateRole(operator, "b@"+f.ann.Role, org.RoleSpec{Name: "odd", Use: of(toolgroups.OrgManagement, toolgroups.Workspace)})
	if err != nil {
		t.Fatal(err)
	}
	f.store.put(changes)
	one, two := identity.ByCaller("a@b", f.ann.Role), identity.ByCaller("a", odd.ID)
	if one.String() != two.String() {
		t.Fatalf("%q and %q differ", one, two)
	}
	first, second := f.task(org.TaskSpec{Caller: one}), f.task(org.TaskSpec{Caller: two})
	role := f.helper(first, "helper")
	for range 2 {
		f.wantFinds(second, "helper", "")
		f.wantSpawns(second, role.ID, errcode.RoleNotFound)
		f.reopen()
	}
}

// edit changes fields of a stored role; nil removes one.
func (f *callersFixture) edit(id identity.RoleID, fields map[string]any) {
	f.t.Helper()
	var record map[string]any
	if err := json.Unmarshal(f.store.records["role "+string(id)], &record); err != nil {
		f.t.Fatal(err)
	}
	for name, v := range fields {
		if record[name] = v; v == nil {
			delete(record, name)
		}
	}
	text, _ := json.Marshal(record)
	f.store.set("role", string(id), string(text))
}

// A role that an older version stored belongs to the caller of the task that made it. If
// that task is gone, or contradicts the record, only the operator finds the role.
func TestLoadOrg_OwnersOfRoles(t *testing.T) {
	tests := []struct {
		name   string
		damage func(f *callersFixture, id identity.RoleID, task identity.TaskID)
		owned  bool // ann's tasks still have the role
	}{
		{"as written", func(*callersFixture, identity.RoleID, identity.TaskID) {}, true},
		{"older record", func(f *callersFixture, id identity.RoleID, _ identity.TaskID) {
			f.edit(id, map[string]any{"caller": nil, "callerRole": nil})
		}, true},
		{"older record whose task is gone", func(f *callersFixture, id identity.RoleID, task identity.TaskID) {
			f.edit(id, map[string]any{"caller": nil, "callerRole": nil})
			delete(f.store.records, "task "+string(task))
		}, false},
		{"older record without a task", func(f *callersFixture, id identity.RoleID, _ identity.TaskID) {
			f.edit(id, map[string]any{"caller": nil, "callerRole": nil, "task": nil})
		}, false},
		{"record whose task is gone", func(f *callersFixture, _ identity.RoleID, task identity.TaskID) {
			delete(f.store.records, "task "+string(task))
		}, true},
		{"record of another caller than its task", func(f *callersFixture, id identity.RoleID, _ identity.TaskID) {
			f.edit(id, map[string]any{"caller": f.bob.String()})
		}, false},
		{"record of no caller's role", func(f *callersFixture, id identity.RoleID, _ identity.TaskID) {
			f.edit(id, map[string]any{"callerRole": nil})
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newCallersFixture(t)
			helper := f.helper(f.annRoot, "helper")
			root, bobRoot := f.task(org.TaskSpec{Caller: f.ann}), f.bobRoot
			tt.damage(f, helper.ID, helper.Task)
			for range 2 {
				f.reopen()
				want, code := identity.RoleID(""), errcode.RoleNotFound
				if tt.owned {
					want, code = helper.ID, ""
				}
				f.wantFinds(root, "helper", want)
				f.wantSpawns(root, helper.ID, code)
				f.wantFinds(bobRoot, "helper", "")
				f.wantSpawns(bobRoot, helper.ID, errcode.RoleNotFound)
				if found, err := f.FindRole("helper"); err != nil || found.ID != helper.ID {
					t.Errorf("the operator finds %q, %v", found.ID, err)
				}
			}
		})
	}
}

// The record says whose tasks have a role. That of a declared role says nothing.
func TestRole_RecordNamesCaller(t *testing.T) {
	f := newCallersFixture(t)
	tests := []struct {
		role identity.RoleID
		want []string
	}{
		{f.helper(f.annRoot, "helper").ID, []string{`"caller":"user:ann@` + string(f.ann.Role) + `"`, `"callerRole":"` + string(f.ann.Role) + `"`}},
		{f.helper(f.task(org.TaskSpec{}), "helper").ID, []string{`"caller":"operator"`}},
		{f.ann.Role, nil},
	}
	for _, tt := range tests {
		record := string(f.store.records["role "+string(tt.role)])
		if slices.ContainsFunc(tt.want, func(s string) bool { return !strings.Contains(record, s) }) || tt.want == nil && strings.Contains(record, `"caller`) {
			t.Errorf("got %s, want %q", record, tt.want)
		}
	}
	f.update(tests[0].role, org.RoleSpec{Prompt: "changed"})
	if record := string(f.store.records["role "+string(tests[0].role)]); !strings.Contains(record, tests[0].want[0]) {
		t.Errorf("after a change: %s", record)
	}
}

// An agent whose task is gone has declared roles only, also if a role has no owner.
func TestRoleOwner_TaskThatIsGoneHasDeclaredRolesOnly(t *testing.T) {
	f := newCallersFixture(t)
	helper := f.helper(f.annRoot, "helper")
	f.edit(helper.ID, map[string]any{"caller": nil, "callerRole": nil})
	delete(f.store.records, "task "+string(helper.Task))
	f.reopen()
	f.wantFinds(f.annRoot, "helper", "")
	f.wantFinds(f.annRoot, "guest", f.ann.Role)
}
