package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// newApprovals returns an organization in which transfers of clerks wait for finance, or after a
// while for oncall. It also returns a function that makes a call and returns the id of its
// request.
func newApprovals(t *testing.T, after time.Duration) (f *gatewaytest.Fixture, call func(n int) string) {
	f = newFixture(t, transferOnce)
	f.AddTool(t, "bank", "transfer")
	use, none := toolgroups.SetOf("bank"), toolgroups.SetOf()
	rule := approval.Rule{Tools: []string{"transfer"}, From: approval.Approvers{All: []approval.Quorum{{Role: "finance", Count: 2}}}, Deadline: 2 * time.Hour}
	if after > 0 {
		rule.Escalate = &approval.Escalation{After: after, To: approval.Quorum{Role: "oncall"}}
	}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{
		{Name: "clerk", Use: &use, Grant: &none, Approval: []approval.Rule{rule}}, {Name: "finance", Use: &none, Grant: &none}, {Name: "oncall", Use: &none, Grant: &none},
	}}); err != nil {
		t.Fatal(err)
	}
	clerk, _ := f.Runtime.Org().RoleByName("clerk")
	return f, func(n int) string {
		t.Helper()
		a, err := f.Runtime.InvokeTool(t.Context(), identity.ByCaller(identity.UserName(fmt.Sprint("clara", n)), clerk.ID), "transfer", nil)
		if err != nil || a.Code() != errcode.ApprovalRequired {
			t.Fatalf("%+v, %v", a, err)
		}
		return a.Approval()
	}
}

// transferOnce calls transfer, and then ends its turn.
func transferOnce(r model.Request) model.Answer {
	if gatewaytest.CountAnswers(r) > 0 {
		return gatewaytest.EndAnswer("done")
	}
	return gatewaytest.ToolCallAnswer("transfer", map[string]any{})
}

// approvalStream is a stream of a client that is read step by step.
type approvalStream struct {
	t    *testing.T
	next func() (client.ApprovalChange, error, bool)
}

func followApprovals(ctx context.Context, t *testing.T, c *client.Client) approvalStream {
	next, stop := iter.Pull2(c.FollowApprovals(ctx))
	t.Cleanup(stop)
	return approvalStream{t, next}
}

// want requires the next item of the stream.
func (s approvalStream) want(kind, id string) client.ApprovalChange {
	s.t.Helper()
	change, err, _ := s.next()
	if err != nil || change.Type != kind || change.ID != id {
		s.t.Fatalf("%+v, %v; want %s of %s", change, err, kind, id)
	}
	return change
}

// Approvers follow the calls that wait for them: those that wait, and then requests, votes and
// ends. Others are told nothing.
func TestApprovals_Follow(t *testing.T) {
	gatewaytest.OverBothTransports(t, func(t *testing.T, dial func(*gatewaytest.Fixture) *client.Client) {
		f, call := newApprovals(t, 0)
		role := func(name string) identity.RoleID { r, _ := f.Runtime.Org().RoleByName(name); return r.ID }
		first := call(1)
		finance := f.WithCaller(t, role("finance"))
		streams := []approvalStream{followApprovals(t.Context(), t, dial(f)), followApprovals(t.Context(), t, dial(finance))}
		stranger := followApprovals(t.Context(), t, dial(f.WithCaller(t, role("clerk"))))
		stranger.want("listed", "")
		for _, s := range streams {
			if a := s.want("waiting", first); a.Approval.Starter != "clara1" || a.Tool != "transfer" || len(a.Approval.Args) > 0 {
				t.Errorf("%+v", a)
			}
			s.want("listed", "")
		}
		second := call(2)
		decide := func(c *client.Client, d client.ApprovalDecision) {
			t.Helper()
			if _, err := c.DecideApproval(t.Context(), second, d); err != nil {
				t.Fatal(err)
			}
		}
		decide(finance.LocalClient(), client.ApprovalDecision{Action: "approve"})
		decide(f.LocalClient(), client.ApprovalDecision{Action: "approve", Override: true, Reason: "away"})
		for _, s := range streams {
			s.want("requested", second)
			if vote := s.want("vote", second); vote.As != "finance" || vote.By == "" || vote.Role != "clerk" {
				t.Errorf("%+v", vote)
			}
			if end := s.want("approved", second); !end.Override || end.Reason != "away" {
				t.Errorf("%+v", end)
			}
		}
	})
}

// Approvers read for what a call is made: the beginning of the task's text and the name of the agent.
// They may see nothing else of the task.
func TestApprovals_NameTaskAndAgent(t *testing.T) {
	f, _ := newApprovals(t, 0)
	finance := f.WithCaller(t, roleIDOf(f, "finance")).LocalClient()
	s := followApprovals(t.Context(), t, finance)
	s.want("listed", "")
	task, err := f.LocalClient().StartTask(t.Context(), client.TaskRequest{Text: "Pay the\nlandlord.\u202e " + strings.Repeat("x", 1000) + " secret", Role: "clerk"}, "")
	if err != nil {
		t.Fatal(err)
	}
	change, err, _ := s.next()
	if err != nil {
		t.Fatal(err)
	}
	want := "Pay the landlord.\ufffd " + strings.Repeat("x", 160-len("Pay the landlord.\ufffd ")) + "…"
	one, err := finance.FindApproval(t.Context(), change.ID)
	if err != nil || change.Approval.TaskShort != want || change.Approval.AgentName == "" || one.TaskShort != want || one.AgentName != change.Approval.AgentName {
		t.Errorf("%+v, %+v, %v", change.Approval, one, err)
	}
	if _, err := finance.DecideApproval(t.Context(), change.ID, client.ApprovalDecision{Action: "deny"}); err != nil {
		t.Fatal(err)
	}
	decided, err := finance.ListDecidedApprovals(t.Context())
	if err != nil || len(decided) != 1 || decided[0].TaskShort != want || decided[0].AgentName != one.AgentName {
		t.Errorf("%+v, %v", decided, err)
	}
	if _, err := finance.FindTask(t.Context(), string(task.ID)); errcode.CodeOf(err) != errcode.TaskNotFound {
		t.Errorf("an approver reads the task: %v", err)
	}
}

// The people to whom a request escalates are told about it then.
func TestApprovals_FollowEscalation(t *testing.T) {
	f, call := newApprovals(t, 50*time.Millisecond)
	oncall, _ := f.Runtime.Org().RoleByName("oncall")
	s := followApprovals(t.Context(), t, f.WithCaller(t, oncall.ID).LocalClient())
	s.want("listed", "")
	id := call(1)
	if e := s.want("escalated", id); e.To != "oncall" || e.Approval.ID != id {
		t.Errorf("%+v", e)
	}
	if _, err := f.LocalClient().DecideApproval(t.Context(), id, client.ApprovalDecision{Action: "deny"}); err != nil {
		t.Fatal(err)
	}
	s.want("denied", id)
}

// A stream ends when the token of its sender is revoked, and with its context.
func TestApprovals_FollowEnds(t *testing.T) {
	f, call := newApprovals(t, 0)
	finance, _ := f.Runtime.Org().RoleByName("finance")
	token, known := gatewaytest.NewToken("ann", auth.Token{Scope: auth.ScopeRole, Role: finance.ID})
	all, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: f.Runtime.Org().RoleByID, Now: time.Now})
	if err == nil {
		err = all.ReplaceTokens([]auth.Token{known})
	}
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(f.WithAuthenticator(t, all.Authenticate).Handler)
	defer server.Close()
	c, err := client.NewRemote(server.URL, token)
	if err != nil {
		t.Fatal(err)
	}
	s := followApprovals(t.Context(), t, c)
	s.want("listed", "")
	if err := all.ReplaceTokens(nil); err != nil {
		t.Fatal(err)
	}
	call(1)
	if change, err, _ := s.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		text, _ := json.Marshal(change)
		t.Errorf("after the token was revoked: %s, %v", text, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = followApprovals(ctx, t, f.LocalClient())
	for range 2 {
		if _, err, _ := s.next(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if _, err, _ := s.next(); err == nil {
		t.Error("the stream goes on after its context")
	}
}
