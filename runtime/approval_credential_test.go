package runtime_test

import (
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// decideWith decides about a request with a credential.
func (b *bank) decideWith(t *testing.T, by, credential string, d runtime.ApprovalDecision) string {
	t.Helper()
	who := operator
	if by != "" {
		who = b.approvers[by]
	}
	out, err := b.DecideApprovals(t.Context(), who, runtime.ApproverAuth{How: "test", Credential: credential}, []runtime.ApprovalDecision{d})
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Err != nil {
		return string(errcode.CodeOf(out[0].Err))
	}
	return out[0].Outcome
}

// revocable lets credentials count until they are revoked.
func (b *bank) revocable() (revoke func(credential string)) {
	revoked := new(atomic.Value)
	revoked.Store("")
	b.SetCredentialCheck(func(c string) bool { return c != revoked.Load() })
	return func(c string) { revoked.Store(c) }
}

// The vote of a person whose token was removed does not count when another person votes. The same
// person may vote again with another token.
func TestApproval_RemovedTokenBeforeLastVote(t *testing.T) {
	b := newBank(t, approval.Rule{From: bothRoles})
	revoke := b.revocable()
	task := b.begin(t)
	id := b.waiting(t, 1)[0].ID
	for _, step := range []struct{ by, credential, want string }{
		{"finance ann", "old", "vote"}, {"finance ann", "old", "conflict"}, {"security bob", "bob's", "vote"}, {"finance ann", "new", "approved"},
	} {
		if step.by == "security bob" {
			revoke("old")
		}
		if got := b.decideWith(t, step.by, step.credential, approve(id)); got != step.want {
			t.Errorf("%+v: %s", step, got)
		}
	}
	b.wantResult(t, b.wait(t, task), `[100,5]`, "")
}

// An approval is worthless when the token of an approver was removed before its use: people are
// asked again. So is one that an operator gave in place of the approvers.
func TestApproval_RemovedTokenBeforeUse(t *testing.T) {
	for _, override := range []bool{false, true} {
		b := newBank(t, financeRule)
		revoke := b.revocable()
		ann := identity.ByCaller("ann", b.clerk.ID)
		b.invokeCode(t, ann, "transfer", obj{"amount": 7})
		d, by := approve(b.waiting(t, 1)[0].ID), "finance bob"
		if override {
			d.Override, d.Reason, by = true, "urgent", ""
		}
		if got := b.decideWith(t, by, "token", d); got != "approved" {
			t.Fatal(got)
		}
		revoke("token")
		again := b.invoke(t, ann, "transfer", obj{"amount": 7})
		if again.Code() != errcode.ApprovalRequired || again.Approval() == d.ID || b.paid.Load() != 0 {
			t.Errorf("override %v: %s", override, again.Result.JSON())
		}
		if got := b.decideWith(t, "finance bob", "other", approve(again.Approval())); got != "approved" {
			t.Error(got)
		}
		if code := b.invokeCode(t, ann, "transfer", obj{"amount": 7}); code != "" || b.paid.Load() != 1 {
			t.Errorf("%q, %d transfers", code, b.paid.Load())
		}
		b.noRequestLeft(t)
	}
}

// In a process that knows no tokens, votes with a token do not count, and those without do.
func TestApproval_UnknownCredentials(t *testing.T) {
	b := newBank(t, financeRule)
	b.begin(t)
	id := b.waiting(t, 1)[0].ID
	if got := b.decideWith(t, "finance ann", "token", approve(id)); got != "vote" {
		t.Error(got)
	}
	if got := b.decideWith(t, "finance bob", "", approve(id)); got != "approved" {
		t.Error(got)
	}
}
