package runtime_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// wantVoid checks that no request waits, and that the record says why one is void.
func (b *bank) wantVoid(t *testing.T, id string) {
	t.Helper()
	e := b.waitEvent(t, func(e journal.Event) bool {
		d, ok := e.Body.(journal.ApprovalDecided)
		return ok && d.Approval == id
	})
	if d := e.Body.(journal.ApprovalDecided); d.Outcome != journal.ApprovalVoid || d.Reason != "the tool is not available to the role any more" || len(b.ListApprovals(operator)) != 0 {
		t.Errorf("%+v, waiting: %+v", d, b.ListApprovals(operator))
	}
}

// A request ends in the commit that takes the tool from its role, and its call is denied then,
// not at the deadline.
func TestApproval_ToolLost(t *testing.T) {
	none, nobody := groupSet(), []org.RoleSpec{{Name: "finance", Use: groupSet(), Grant: groupSet()}}
	for name, take := range map[string]func(*bank, identity.RoleID) error{
		"a configuration without the tool": func(b *bank, _ identity.RoleID) error {
			return b.ApplyConfig(runtime.OrgConfig{Roles: append(nobody, org.RoleSpec{Name: "clerk", Use: none, Grant: none})})
		},
		"a configuration without the role": func(b *bank, _ identity.RoleID) error {
			return b.ApplyConfig(runtime.OrgConfig{Roles: nobody})
		},
		"a change of the role": func(b *bank, id identity.RoleID) error {
			_, _, err := b.UpdateRole(operator, id, org.RoleSpec{Use: none, Grant: none}, false)
			return err
		},
		"the end of the role": func(b *bank, id identity.RoleID) error {
			_, err := b.DeleteRole(operator, id, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, financeRule)
			made, err := b.CreateRole(t.Context(), tool.Call{By: operator}, org.RoleSpec{Name: "teller", Use: groupSet("probe"), Grant: none, Approval: []approval.Rule{b.rule}})
			if err != nil {
				t.Fatal(err)
			}
			role := "teller"
			if strings.Contains(name, "configuration") {
				role, made.ID = "clerk", b.clerk.ID
			}
			task := b.start(t, org.TaskSpec{Text: "pay", Role: role})
			ann := identity.ByCaller("ann", made.ID)
			b.waiting(t, 1)
			b.invoke(t, ann, "transfer", obj{"amount": 7})
			list := b.waiting(t, 2)
			if err := take(b, made.ID); err != nil {
				t.Fatal(err)
			}
			b.wantDenied(t, task, errcode.ToolNotAvailable, "")
			b.wantDecided(t, b.approvers["finance bob"], approve(list[0].ID), "approval_not_found")
			b.wantVoid(t, list[0].ID)
			b.wantVoid(t, list[1].ID)
		})
	}
}

// A change of a role also ends the requests of the agents below its own.
func TestApproval_ToolLostBelow(t *testing.T) {
	b := newBankBelow(t)
	all, less := toolgroups.SetOf("probe", toolgroups.OrgManagement), toolgroups.SetOf(toolgroups.OrgManagement)
	boss, err := b.create(t, operator, org.RoleSpec{Name: "boss", Use: &all, Grant: &all, Approval: []approval.Rule{b.rule}})
	if err != nil {
		t.Fatal(err)
	}
	unrelated, err := b.create(t, operator, org.RoleSpec{Name: "unrelated", Use: groupSet("probe"), Grant: groupSet()})
	if err != nil {
		t.Fatal(err)
	}
	b.start(t, org.TaskSpec{Text: "pay", Role: "boss"})
	a := b.waiting(t, 1)[0]
	if _, err := b.DeleteRole(operator, unrelated.ID, false); err != nil {
		t.Fatal(err)
	}
	b.waiting(t, 1)
	if _, _, err := b.UpdateRole(operator, boss.ID, org.RoleSpec{Use: &less, Grant: &less}, false); err != nil {
		t.Fatal(err)
	}
	if list := b.ListApprovals(operator); len(list) != 0 {
		t.Fatalf("waiting: %+v", list)
	}
	b.wantVoid(t, a.ID)
}

// A request whose tool was taken while the role was paused ends when the role is resumed. One whose
// tool is kept goes on waiting.
func TestApproval_ToolLostInPause(t *testing.T) {
	for _, lost := range []bool{true, false} {
		b := newBank(t, financeRule)
		task := b.begin(t)
		a := b.waiting(t, 1)[0]
		if _, _, err := b.PauseRole(operator, b.clerk.ID, "lunch"); err != nil {
			t.Fatal(err)
		}
		if lost {
			b.configureRoles(t, org.RoleSpec{Name: "clerk", Use: groupSet(), Grant: groupSet()})
		}
		b.waiting(t, 1)
		if _, _, err := b.ResumeRole(operator, b.clerk.ID, ""); err != nil {
			t.Fatal(err)
		}
		if !lost {
			b.waiting(t, 1)
			continue
		}
		if list := b.ListApprovals(operator); len(list) != 0 {
			t.Fatalf("waiting: %+v", list)
		}
		b.wantVoid(t, a.ID)
		b.wantDenied(t, task, errcode.ToolNotAvailable, "")
	}
}

// Other changes and a pause of the role take no tool away: the request goes on waiting.
func TestApproval_ToolKept(t *testing.T) {
	b := newBank(t, financeRule)
	b.begin(t)
	a := b.waiting(t, 1)[0]
	if _, _, err := b.PauseRole(operator, b.clerk.ID, "lunch"); err != nil {
		t.Fatal(err)
	}
	b.configure(t, b.rule)
	if _, _, err := b.ResumeRole(operator, b.clerk.ID, ""); err != nil {
		t.Fatal(err)
	}
	if now := b.waiting(t, 1)[0]; now.ID != a.ID {
		t.Errorf("%+v", now)
	}
	if _, _, err := b.PauseRole(operator, b.clerk.ID, "lunch"); err != nil {
		t.Fatal(err)
	}
	if err := b.PauseOrg(operator, "closed"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.ResumeRole(operator, b.clerk.ID, ""); err != nil { // the organization is still paused
		t.Fatal(err)
	}
	if err := b.ResumeOrg(operator, ""); err != nil {
		t.Fatal(err)
	}
	if now := b.waiting(t, 1)[0]; now.ID != a.ID {
		t.Errorf("after two pauses: %+v", now)
	}
}

// A request that has ended keeps its task from ending until its agent goes on.
func TestApproval_ToolLostKeepsTask(t *testing.T) {
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: financeRule, model: clerkModel}
	b.rule.Tools = []string{"transfer"}
	var committed func()
	b.openWith(t, func(s journal.Store) journal.Store {
		return hookedStore{Store: s, after: func(batch *journal.Batch) {
			if committed != nil && slices.ContainsFunc(batch.Events, func(e journal.Event) bool { _, ok := e.Body.(journal.ApprovalDecided); return ok }) {
				committed()
			}
		}}
	})
	task := b.begin(t)
	b.waiting(t, 1)
	b.waitQuiet(t)
	top := b.Org().ListAgents(task)[0].ID
	committed = func() { // the task is released once before its agent goes on
		committed = nil
		if err := b.TerminateAgent(t.Context(), tool.Call{By: operator}, top, ""); err == nil {
			t.Error("the top agent of a task was terminated")
		}
	}
	none := groupSet()
	if err := b.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{{Name: "clerk", Use: none, Grant: none}}}); err != nil {
		t.Fatal(err)
	}
	b.wantDenied(t, task, errcode.ToolNotAvailable, "")
}
