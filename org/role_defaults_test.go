package org_test

import (
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// An update sets fields to what a role has that is created without them, within what its
// creators may grant.
func TestUpdateRole_SetsDefaults(t *testing.T) {
	f := newFixture(t)
	f.configure(org.RoleConfig{Default: toolgroups.SetOf("docs", "org_management", "workspace"), Root: toolgroups.SetOf("*")})
	full := org.RoleSpec{Prompt: "p", Model: "m", Use: of("command"), Grant: of("command"), Limits: org.AgentLimits{Rounds: 3}, Hosts: allow("a.x"), Pattern: org.Plan, ToolGated: new(toolgroups.Gated), Server: new("docs")}
	role := f.role(operator, full)
	all := []org.RoleField{org.PromptField, org.ModelField, org.UseField, org.GrantField, org.LimitsField, org.HostsField, org.PatternField, org.ToolGatedField, org.ServerField}
	fresh := f.role(operator, org.RoleSpec{})
	f.update(role.ID, org.RoleSpec{Defaults: all})
	got, _ := f.RoleByID(role.ID)
	if !got.MatchesSpec(org.RoleSpec{Name: role.Name, Use: &fresh.Use, Grant: &fresh.Grant}) {
		t.Errorf("got %+v, want the values of %+v", got, fresh)
	}
	f.wantTools(f.spawn(f.task(org.TaskSpec{}), role.ID), "create_role", "read_file", "search", "spawn_agent", "write_file")

	f.update(role.ID, full)
	for i := range all {
		f.update(role.ID, org.RoleSpec{Defaults: all[i : i+1]})
		got, _ := f.RoleByID(role.ID)
		if got.Use.Equal(*full.Use) == (all[i] == org.UseField) || (got.Prompt == "p") == (all[i] == org.PromptField) || (got.Server == "docs") == (all[i] == org.ServerField) {
			t.Errorf("the default of %s: got %+v", all[i], got)
		}
		f.update(role.ID, full)
	}

	lead := f.role(operator, org.RoleSpec{Use: of("org_management"), Grant: of("docs", "command")})
	made := f.role(identity.ByAgent(f.spawn(f.task(org.TaskSpec{}), lead.ID)), org.RoleSpec{Use: of("command")})
	f.update(made.ID, org.RoleSpec{Defaults: []org.RoleField{org.UseField}})
	made, _ = f.RoleByID(made.ID)
	wantSet(t, made.Use, "docs")
	_, _, _, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Defaults: []org.RoleField{"name"}}, false)
	wantCode(t, err, errcode.InvalidRole, "name")
}

// An update removes the limits that it names. It sets others and keeps the rest.
func TestUpdateRole_RemovesSingleLimits(t *testing.T) {
	f := newFixture(t)
	full := org.AgentLimits{Rounds: 3, Budget: org.ModelAllowance{Tokens: 9000}, LineLimits: org.LineLimits{Depth: 4, Hires: 5, Seconds: 60}}
	for field, without := range map[org.RoleField]func(*org.AgentLimits){
		org.RoundsField: func(l *org.AgentLimits) { l.Rounds = 0 }, org.BudgetField: func(l *org.AgentLimits) { l.Budget = org.ModelAllowance{} },
		org.DepthField: func(l *org.AgentLimits) { l.Depth = 0 }, org.HiresField: func(l *org.AgentLimits) { l.Hires = 0 },
		org.SecondsField: func(l *org.AgentLimits) { l.Seconds = 0 },
	} {
		role := f.role(operator, org.RoleSpec{Use: of("docs"), Limits: full})
		f.update(role.ID, org.RoleSpec{Defaults: []org.RoleField{field}})
		got, _ := f.RoleByID(role.ID)
		want := full
		if without(&want); got.Limits != want {
			t.Errorf("the default of %s: got %+v, want %+v", field, got.Limits, want)
		}
	}
	role := f.role(operator, org.RoleSpec{Use: of("docs"), Limits: full})
	f.update(role.ID, org.RoleSpec{Limits: org.AgentLimits{LineLimits: org.LineLimits{Depth: 2}}, Defaults: []org.RoleField{org.RoundsField}})
	want := full
	want.Rounds, want.Depth = 0, 2
	if got, _ := f.RoleByID(role.ID); got.Limits != want {
		t.Errorf("got %+v, want %+v", got.Limits, want)
	}
}

// An update of another revision than the current one changes nothing.
func TestUpdateRole_RejectsOtherRevision(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Use: of("docs")})
	f.update(role.ID, org.RoleSpec{Prompt: "first", Revision: 1})
	for _, revision := range []uint64{1, 3} {
		_, _, changes, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Use: of("*"), Revision: revision}, false)
		wantCode(t, err, errcode.Conflict, "it has revision 2 now")
		if changes != nil {
			t.Error("there are records to store")
		}
	}
	now, _ := f.RoleByID(role.ID)
	wantSet(t, now.Use, "docs")
	f.update(role.ID, org.RoleSpec{Use: of("workspace"), Revision: 2})
}
