package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// A pattern is approved, listed and revoked over the API. People who are no approvers do not see it.
func TestStandingApprovals_OverAPI(t *testing.T) {
	f := newFixture(t, func(r model.Request) model.Answer {
		calls := 0
		for _, item := range r.Items {
			if item.Answer != nil {
				calls++
			}
		}
		args := json.RawMessage(fmt.Sprintf(`{"amount": %d}`, 5+calls))
		return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: "transfer", Args: args}}}
	})
	paid := make(chan int, 100)
	transfer, err := tool.New("transfer", "Transfer money.", func(_ context.Context, in struct {
		Amount int `json:"amount"`
	}) (any, error) {
		paid <- in.Amount
		return in.Amount, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, "bank", transfer)
	use, none := toolgroups.SetOf("bank"), toolgroups.SetOf()
	rule := approval.Rule{Tools: []string{"transfer"}, From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}}}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{
		{Name: "clerk", Use: &use, Grant: &none, Approval: []approval.Rule{rule}}, {Name: "finance", Use: &none, Grant: &none},
	}}); err != nil {
		t.Fatal(err)
	}
	clerkRole, _ := f.Runtime.Org().RoleByName("clerk")
	financeRole, _ := f.Runtime.Org().RoleByName("finance")
	finance, stranger := f.WithCaller(t, financeRole.ID).LocalClient(), f.WithCaller(t, clerkRole.ID).LocalClient()
	if _, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "pay", Role: "clerk", Caller: identity.ByOperator("test")}); err != nil {
		t.Fatal(err)
	}
	id := waitingRequest(t, f.Runtime)
	for _, p := range []client.ApprovalPattern{
		{Args: json.RawMessage(`{"/amount": {"max": 7}}`)},
		{Args: json.RawMessage(`{"/amount": {"most": 7}}`), Uses: 3},
		{Args: json.RawMessage(`{"/sum": {"max": 7}}`), Uses: 3},
		{Args: json.RawMessage(`{"/amount": {"max": 7}}`), Seconds: 1 << 62},
	} {
		if _, err := finance.DecideApproval(t.Context(), id, client.ApprovalDecision{Action: "approve", Pattern: &p}); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%+v: %v", p, err)
		}
	}
	p := client.ApprovalPattern{Args: json.RawMessage(`{"/amount": {"max": 7}}`), Uses: 3}
	out, err := finance.DecideApproval(t.Context(), id, client.ApprovalDecision{Action: "approve", Pattern: &p})
	if err != nil || out.Standing == "" {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, want := range []int{5, 6, 7} {
		if got := <-paid; got != want {
			t.Fatalf("%d was paid, want %d", got, want)
		}
	}
	waitingRequest(t, f.Runtime) // 8 does not fit
	if list := standingOf(t, finance); len(list) != 1 || list[0].ID != out.Standing || list[0].Used != 2 || list[0].Pattern.Uses != 3 || list[0].Tool != "transfer" {
		t.Errorf("%+v", list)
	}
	if err := stranger.RevokeStandingApproval(t.Context(), out.Standing, ""); len(standingOf(t, stranger)) != 0 || errcode.CodeOf(err) != errcode.ApprovalNotFound {
		t.Errorf("a stranger sees or revokes it: %v", err)
	}
	if err := finance.RevokeStandingApproval(t.Context(), out.Standing, "enough"); err != nil || len(standingOf(t, finance)) != 0 {
		t.Errorf("%v", err)
	}
}

func standingOf(t *testing.T, c *client.Client) (list []client.StandingApproval) {
	t.Helper()
	for s, err := range c.ListStandingApprovals(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// waitingRequest waits until a request waits, and returns its id.
func waitingRequest(t *testing.T, rt *runtime.Runtime) string {
	t.Helper()
	for {
		changed := rt.ApprovalsChanged()
		if list := rt.ListApprovals(identity.ByOperator("test")); len(list) > 0 {
			return list[0].ID
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("no request waits")
		}
	}
}
