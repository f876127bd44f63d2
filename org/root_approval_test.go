package org_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// asked returns the rules of a tool for a principal, in words.
func (f *fixture) asked(p identity.Principal, tool string) string {
	f.t.Helper()
	h, ok := f.groups.CurrentSnapshot().LookupTool(tool)
	if !ok {
		f.t.Fatalf("no tool %s", tool)
	}
	ref, state := f.ResolveView(p)
	var list []string
	for _, r := range ref.CurrentView().ForState(state).EvaluateTool(h).ApprovalRules(h) {
		list = append(list, r.String())
	}
	return strings.Join(list, " | ")
}

func asks(r approval.Rule) approval.Rule {
	r.From = approval.Approvers{Any: []approval.Quorum{{Role: "boss"}}}
	return r
}

var bossRole = org.RoleSpec{Name: "boss", Use: of(), Grant: of()}

func withApproval(rules []approval.Rule, roles ...org.RoleSpec) org.RoleConfig {
	return org.RoleConfig{Roles: append(roles, bossRole), Default: toolgroups.AllGroups(), Root: toolgroups.AllGroups(), Approval: rules}
}

// The rules of the organization hold for all: root, roles of the configuration, those that agents
// create, and callers. They change at once, and hold after a restart.
func TestOrganizationApproval_HoldsForAllRoles(t *testing.T) {
	f := newFixture(t)
	clerk := org.RoleSpec{Name: "clerk", Use: of("docs"), Grant: of("docs")}
	f.configure(withApproval(nil, clerk))
	root := f.task(org.TaskSpec{})
	made := f.spawn(root, f.role(identity.ByAgent(root), org.RoleSpec{Use: of("docs")}).ID)
	declared, _ := f.ConfiguredRole("clerk")
	principals := []identity.Principal{identity.ByAgent(made), identity.ByCaller("ann", declared.ID), identity.ByAgent(f.spawn(root, declared.ID))}
	want := func(want string) {
		t.Helper()
		for range 2 { // in memory, then from the store
			for _, p := range principals {
				if got := f.asked(p, "search"); got != want {
					t.Errorf("%s: %q, want %q", p, got, want)
				}
			}
			f.reopen()
		}
	}
	want("")
	f.configure(withApproval([]approval.Rule{asks(approval.Rule{Tools: []string{"search", "create_role"}})}, clerk))
	want("tools search, create_role; from boss")
	if got := f.asked(identity.ByAgent(root), "create_role"); got == "" {
		t.Error("root is asked nothing")
	}
	own := clerk
	own.Approval = []approval.Rule{asks(approval.Rule{Tools: []string{"search", "create_role"}}), asks(approval.Rule{Groups: []string{"docs"}})}
	f.configure(withApproval(own.Approval[:1], own))
	if got := f.asked(principals[1], "search"); got != "tools search, create_role; from boss | groups docs; from boss" {
		t.Errorf("%q", got)
	}
	f.configure(org.RoleConfig{Keep: true, Default: toolgroups.AllGroups(), Root: toolgroups.AllGroups()})
	if got := f.asked(principals[0], "search"); got == "" {
		t.Error("a configuration that keeps roles has removed a rule")
	}
	grant := withApproval(own.Approval[:1], clerk)
	grant.Root = toolgroups.SetOf("docs", toolgroups.OrgManagement)
	f.configure(grant)
	want("tools search, create_role; from boss")
	f.configure(withApproval(nil, clerk))
	want("")
}

// Rules of the organization that are not valid, or whose approvers do not exist, are rejected, and
// nothing changes.
func TestOrganizationApproval_Rejected(t *testing.T) {
	f := newFixture(t)
	for want, rule := range map[string]approval.Rule{
		"organization: approval: rule 1: it selects no calls": asks(approval.Rule{}),
		"there is no role": {Tools: []string{"search"}, From: approval.Approvers{Any: []approval.Quorum{{Role: "nobody"}}}},
	} {
		err := f.groups.UpdateWith(func(change toolgroups.Change) error {
			_, err := f.ApplyRoles(withApproval([]approval.Rule{rule}), change)
			return err
		}, func(*toolgroups.Tx) error { return nil })
		wantCode(t, err, errcode.InvalidRole, want)
	}
}

// If the record of the rules cannot be read, an operator approves every call.
func TestOrganizationApproval_DamagedRecordAsksOperator(t *testing.T) {
	for name, damage := range map[string]func(*memoryStore){
		"unreadable": func(m *memoryStore) { m.damaged = append(m.damaged, "approval") },
		"no JSON":    func(m *memoryStore) { m.set("meta", "approval", `[`) },
		"null":       func(m *memoryStore) { m.set("meta", "approval", `null`) },
		"no list":    func(m *memoryStore) { m.set("meta", "approval", `[{"tools":["x"]},7]`) },
		"no key": func(m *memoryStore) {
			delete(m.records, "meta approval")
			m.set("meta", "", `1`)
			m.damaged = append(m.damaged, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.configure(withApproval([]approval.Rule{asks(approval.Rule{Tools: []string{"write_file"}})}, org.RoleSpec{Name: "clerk", Use: of("docs"), Grant: of()}))
			damage(f.store)
			f.reopen()
			if _, err := f.ResumeOrg(operator); err != nil && errcode.CodeOf(err) != errcode.Conflict { // a damaged record without a key is also a pause
				t.Fatal(err)
			}
			role, _ := f.ConfiguredRole("clerk")
			if got := f.asked(identity.ByCaller("ann", role.ID), "search"); got != "from operator" {
				t.Errorf("%q", got)
			}
		})
	}
}

// A rule by a group selects a tool that the group gets later, though the role has the tool through
// another group.
func TestApproval_GroupThatComesLater(t *testing.T) {
	f := newHierarchyFixture(t)
	role := f.configured("clerk", bossRole, org.RoleSpec{Name: "clerk", Use: of("read"), Grant: of(), Approval: []approval.Rule{asks(approval.Rule{Groups: []string{"late"}}), asks(approval.Rule{Tools: []string{"kb_raed"}})}})
	caller := identity.ByCaller("ann", role.ID)
	if got := f.asked(caller, "kb_read"); got != "" {
		t.Errorf("%q", got)
	}
	if got, want := f.UnknownNames(), []org.UnknownName{{Role: "clerk", Field: "groups", Name: "late"}, {Role: "clerk", Field: "tools", Name: "kb_raed"}}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	late := toolgroups.Group{ID: "late", Refs: []string{"kb_read"}}
	if _, err := grouptest.RegisterGroup(f.groups, toolgroups.Config, late); err != nil {
		t.Fatal(err)
	}
	if got := f.asked(caller, "kb_read"); got != "groups late; from boss" {
		t.Errorf("%q", got)
	}
	f.registerChildren("late", "read")
	if got := f.asked(caller, "kb_read"); got != "groups late; from boss" {
		t.Errorf("as a child: %q", got)
	}
	if got := f.UnknownNames(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// So does a rule by the read part of a group.
func TestApproval_ReadPartThatComesLater(t *testing.T) {
	f := newFixture(t)
	f.registerLibrary(tool.ReadOnly)
	role := f.configured("clerk", bossRole, org.RoleSpec{Name: "clerk", Use: of("lib"), Grant: of(), Approval: []approval.Rule{asks(approval.Rule{Groups: []string{"late:read"}})}})
	caller := identity.ByCaller("ann", role.ID)
	if got := f.asked(caller, "lib_get"); got != "" {
		t.Errorf("%q", got)
	}
	if _, err := grouptest.RegisterGroup(f.groups, toolgroups.Config, toolgroups.Group{ID: "late", Refs: []string{"lib_get"}}); err != nil {
		t.Fatal(err)
	}
	if got := f.asked(caller, "lib_get"); got != "groups late:read; from boss" {
		t.Errorf("%q", got)
	}
}

// An argument in unless that the tool lacks is reported.
func TestUnknownNames_Unless(t *testing.T) {
	f := newBoundFixture(t)
	rule := asks(approval.Rule{Tools: []string{"note"}, Unless: bind(t, `{"note": {"/texts": {"equal": "x"}}}`)["note"]})
	f.configure(withApproval([]approval.Rule{rule}))
	if got := f.UnknownNames(); len(got) != 1 || got[0] != (org.UnknownName{Role: "root", Field: "unless", Name: "note /texts"}) {
		t.Errorf("%v", got)
	}
}
