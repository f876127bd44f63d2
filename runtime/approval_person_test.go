package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// An issuer may name the same user as operator in one token and in a role in another. The user is
// one person: with one vote, and without one for its own calls.
func TestApproval_OperatorAndCallerOfOneName(t *testing.T) {
	b := newBank(t, approval.Rule{From: approval.Approvers{All: []approval.Quorum{{Role: "finance"}, {Operator: true}}}})
	ann := identity.ByCaller("ann", b.clerk.ID)
	b.invoke(t, ann, "transfer", obj{"amount": 7})
	id := b.waiting(t, 1)[0].ID
	b.wantDecided(t, identity.ByOperator("ann"), approve(id), "insufficient_permissions")
	b.wantDecided(t, b.approvers["finance bob"], approve(id), "vote")
	b.wantDecided(t, identity.ByOperator("bob"), approve(id), "conflict")
	b.wantDecided(t, identity.ByOperator("eve"), approve(id), "approved")
}

// secureTool is a tool that takes secure arguments.
type secureTool struct{ tool.Tool }

func (s secureTool) Definition() tool.Definition {
	d := s.Tool.Definition()
	d.Auth = &tool.Auth{SecureArgs: true}
	return d
}

// An approved call is not made with other secure arguments, which are no part of the arguments.
func TestApproval_SecureArguments(t *testing.T) {
	pay := newTool(t, "pay", tool.Options{}, func(context.Context, obj) (any, error) { return "paid", nil })
	b := &bank{dir: fastTempDir(t), rule: approval.Rule{Tools: []string{"pay"}, From: financeRule.From}}
	b.fixture = fixtureConfig{dir: b.dir, model: clerkModel, tools: []tool.Tool{secureTool{pay}}}.open(t)
	b.configureRoles(t, org.RoleSpec{Name: "clerk", Use: groupSet("probe"), Grant: groupSet(), Approval: []approval.Rule{b.rule}})
	ann := identity.ByCaller("ann", b.clerk.ID)
	call := func(secure string) *gate.Admission {
		ctx := tool.WithCredentials(t.Context(), tool.Credentials{Secure: json.RawMessage(secure)})
		a, err := b.InvokeTool(ctx, ann, "pay", json.RawMessage(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := call(`{"account": 1}`)
	b.wantDecided(t, b.approvers["finance bob"], approve(first.Approval()), "approved")
	if code := call(`{"account": 2}`).Code(); code != errcode.ApprovalRequired {
		t.Errorf("other secure arguments: %q", code)
	}
}

// The arguments of a caller's call are edited, too, though the caller may not make another request.
func TestApproval_EditedForCaller(t *testing.T) {
	b := newBank(t, financeRule)
	ann := identity.ByCaller("ann", b.clerk.ID)
	b.invoke(t, ann, "transfer", obj{"amount": 7})
	for i := range 999 { // as many as one person may have
		b.invoke(t, ann, "transfer", obj{"amount": 100 + i})
	}
	edit := approve(b.waiting(t, 1000)[0].ID)
	edit.Args = json.RawMessage(`{"amount":"much"}`)
	b.wantDecided(t, b.approvers["finance bob"], edit, "invalid_arguments")
	edit.Args = json.RawMessage(`{"amount":3}`)
	b.wantDecided(t, b.approvers["finance bob"], edit, "approved")
	if a := b.invoke(t, ann, "transfer", obj{"amount": 7}); a.Code() != "" || string(a.Request.Args) != `{"amount":3}` || b.paid.Load() != 1 {
		t.Errorf("%s runs with %s, %d transfers", a.Code(), a.Request.Args, b.paid.Load())
	}
	if code := b.invokeCode(t, ann, "transfer", obj{"amount": 3}); code != errcode.ApprovalRequired {
		t.Errorf("again: %q", code)
	}
}

// A call that is edited to the arguments of another call that waits leaves the request of that call
// alone: each approval is for its own call, also after a restart.
func TestApproval_EditedToArgumentsOfOtherCall(t *testing.T) {
	for _, restart := range []bool{false, true} {
		b := newBank(t, financeRule)
		ann, bob := identity.ByCaller("ann", b.clerk.ID), b.approvers["finance bob"]
		five, seven := b.invoke(t, ann, "transfer", obj{"amount": 5}).Approval(), b.invoke(t, ann, "transfer", obj{"amount": 7}).Approval()
		b.wantDecided(t, bob, edit(five, `{"amount":7}`), "approved")
		if restart {
			b.shutdown(t)
			b.open(t)
		}
		if a := b.invoke(t, ann, "transfer", obj{"amount": 7}); a.Allowed() || a.Approval() != seven {
			t.Errorf("the call of %s, which is not approved, is about %s: %q", seven, a.Approval(), a.Code())
		}
		b.wantDecided(t, bob, edit(seven, `{"amount":5}`), "approved")
		for _, tt := range []struct {
			call     int
			approval string
			args     string
		}{{5, five, `{"amount":7}`}, {7, seven, `{"amount":5}`}} {
			if a := b.invoke(t, ann, "transfer", obj{"amount": tt.call}); !a.Allowed() || a.Approval() != tt.approval || string(a.Request.Args) != tt.args {
				t.Errorf("call with %d: %q, approval %s instead of %s, %s", tt.call, a.Code(), a.Approval(), tt.approval, a.Request.Args)
			}
		}
		b.noRequestLeft(t)
	}
}

// A token of an approver that is used in a network with a limit of groups approves nothing there.
func TestApproval_LimitedNetwork(t *testing.T) {
	b := newBank(t, financeRule)
	b.invoke(t, identity.ByCaller("ann", b.clerk.ID), "transfer", obj{"amount": 7})
	id := b.waiting(t, 1)[0].ID
	outside := b.approvers["finance bob"]
	outside.Within = "read"
	if list := b.ListApprovals(outside); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	b.wantDecided(t, outside, approve(id), "approval_not_found")
	b.wantDecided(t, outside, deny(id, "no"), "approval_not_found")
	b.wantDecided(t, b.approvers["finance bob"], approve(id), "approved")
}

// A task that follows from another one by triggers is for the person who started the first one.
func TestApproval_TaskAfterTask(t *testing.T) {
	b := newBank(t, approval.Rule{From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}, {Operator: true}}}})
	ann := b.approvers["finance ann"]
	for _, tt := range []struct {
		starter string
		by      identity.Principal
		want    string
	}{
		{ann.String(), ann, "insufficient_permissions"}, {ann.String(), operator, "approved"}, {operator.String(), operator, "insufficient_permissions"},
		{operator.String(), ann, "approved"}, {"", ann, "approved"},
	} {
		task := b.start(t, org.TaskSpec{
			Text: "pay", Role: string(b.clerk.ID), Ask: true, Groups: groupSet("probe"), Caller: identity.ByTrigger("next", b.clerk.ID), Trigger: &org.TaskTrigger{Name: "next", Chain: 1, Starter: tt.starter},
		})
		id := b.waiting(t, 1)[0].ID
		if got := b.decide(t, tt.by, approve(id)); got != tt.want {
			t.Errorf("%q started it, %v approves: %s", tt.starter, tt.by, got)
		}
		b.decide(t, operator, deny(id, "enough"))
		b.wait(t, task)
	}
}
