package org_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// LimitsOnAgent lists every limit once: the role, its creators, the parents and the task,
// each with its kind, its role and its answer.
func TestLimitsOnAgent_ListsEveryLimit(t *testing.T) {
	f := newFixture(t)
	weak := f.role(operator, org.RoleSpec{Name: "weak", Use: of("org_management", "docs", "workspace")})
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("docs", "workspace")})
	root := f.task(org.TaskSpec{Caller: identity.ByCaller("ann", weak.ID), Groups: of("org_management", "docs", "workspace")})
	agent := f.spawn(root, boss.ID)
	reader := f.role(identity.ByAgent(agent), org.RoleSpec{Name: "reader", Use: of("docs", "workspace")})
	worker := f.spawn(agent, reader.ID)
	f.update(weak.ID, org.RoleSpec{Use: of("org_management", "docs")})
	const caller = " (caller ann in role weak)"
	want := []org.PermissionLimit{
		{Kind: org.LimitUse, RoleID: reader.ID, Role: "reader", Rule: "the toolGroups of role reader", Allows: true},
		{Kind: org.LimitCreator, RoleID: boss.ID, Role: "boss", Rule: "what role boss, its creator, may grant", Allows: true},
		{Kind: org.LimitParent, RoleID: boss.ID, Role: "boss", Rule: "what role boss may grant", Allows: true},
		{Kind: org.LimitCallerStart, Rule: "what the task's caller could use when the task started" + caller, Allows: true, Caller: "ann", CallerRole: "weak"},
		{Kind: org.LimitTaskGroups, Rule: "the groups the task is restricted to", Allows: true},
		{Kind: org.LimitCaller, RoleID: weak.ID, Role: "weak", Rule: "what the role weak of the task's caller may use" + caller, Caller: "ann", CallerRole: "weak"},
	}
	if diff := cmp.Diff(f.LimitsOnAgent(worker, handle(f.groups, "read_file")), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if l := org.DenyingLimit(f.LimitsOnAgent(worker, handle(f.groups, "search"))); l != nil {
		t.Errorf("search is allowed, and %+v denies it", l)
	}
}

// A caller has the limits of its role. One whose state is lost has none of its tools.
func TestLimitsOnCaller_AgreeWithView(t *testing.T) {
	f := newFixture(t)
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management", "docs", "workspace"), Grant: of("docs", "workspace")})
	made := f.role(identity.ByAgent(f.spawn(f.task(org.TaskSpec{}), boss.ID)), org.RoleSpec{Name: "made", Use: of("docs", "workspace")})
	f.update(boss.ID, org.RoleSpec{Grant: of("docs")})
	ann := identity.ByCaller("ann", made.ID)
	for name, want := range map[string]string{"search": "", "read_file": "what role boss, its creator, may grant", "run_command": "the toolGroups of role made"} {
		got := ""
		if l := org.DenyingLimit(f.LimitsOnCaller(ann, handle(f.groups, name))); l != nil {
			got = l.Rule
		}
		view, state, ok := f.CallerView(ann)
		if got != want || !ok || state != "" || view.HasTool(handle(f.groups, name)) != (want == "") {
			t.Errorf("%s: got %q, want %q; the view has %v in state %q", name, got, want, view.ToolNames(), state)
		}
	}
	if list := f.KnownCallers("ann"); len(list) != 0 {
		t.Errorf("a question makes a caller known: %v", list)
	}
	f.store.put(f.SetCallerState(ann, "draft"))
	if _, state, _ := f.CallerView(ann); state != "draft" || len(f.KnownCallers("ann")) != 1 {
		t.Errorf("got state %q, callers %v", state, f.KnownCallers("ann"))
	}
	f.store.set("caller", ann.Key(), "damaged")
	f.reopen()
	if _, _, ok := f.CallerView(ann); ok || org.DenyingLimit(f.LimitsOnCaller(ann, handle(f.groups, "search"))) == nil {
		t.Error("a caller whose state is lost is allowed a tool")
	}
}
