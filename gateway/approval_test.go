package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// The answer to whether a call is allowed says whether it waits. The operator also sees for whom.
func TestCheckAccess_ShowsApprovals(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "bank", "transfer")
	f.AddTool(t, "desk", "balance")
	use, none := toolgroups.SetOf("bank", "desk"), toolgroups.SetOf()
	bound, err := bounds.ParseRule([]byte(`{"/amount": {"max": 1000}}`))
	if err != nil {
		t.Fatal(err)
	}
	rule := approval.Rule{Tools: []string{"transfer"}, Unless: bound, From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}}}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{
		{Name: "clerk", Use: &use, Grant: &none, Approval: []approval.Rule{rule}}, {Name: "finance", Use: &none, Grant: &none},
	}}); err != nil {
		t.Fatal(err)
	}
	role, _ := f.Runtime.Org().RoleByName("clerk")
	operator, clerk := f.LocalClient(), f.WithCaller(t, role.ID).LocalClient()
	for _, tt := range []struct {
		tool, args string
		want       bool
	}{{"transfer", "", true}, {"transfer", `{"amount": 1001}`, true}, {"transfer", `{}`, true}, {"transfer", `{"amount": 1e3}`, false}, {"balance", "", false}} {
		q := client.Question{Role: "clerk", Tool: tt.tool, Args: json.RawMessage(tt.args)}
		v, err := operator.CheckAccess(t.Context(), q)
		if err != nil || !v.Allowed || v.Waits != tt.want || (len(v.Approval) == 1 && v.Approval[0].Equal(&rule)) != tt.want {
			t.Errorf("%s %s: %+v, %v", tt.tool, tt.args, v, err)
		}
		if v, err := clerk.CheckAccess(t.Context(), q); err != nil || !v.Allowed || v.Waits != tt.want || v.Approval != nil {
			t.Errorf("as caller: %s %s: %+v, %v", tt.tool, tt.args, v, err)
		}
	}
}

// All answers about who may call what say which calls may wait. The operator also sees for whom.
func TestAccess_ShowsWhichCallsWait(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "bank", "transfer")
	use, none := toolgroups.SetOf("bank", "artifact"), toolgroups.SetOf()
	rule := approval.Rule{Tools: []string{"transfer"}, From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}}}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{
		{Name: "clerk", Use: &use, Grant: &none, Approval: []approval.Rule{rule}}, {Name: "finance", Use: &none, Grant: &none}, {Name: "free", Use: &use, Grant: &none},
	}}); err != nil {
		t.Fatal(err)
	}
	role, _ := f.Runtime.Org().RoleByName("clerk")
	operator, clerk := f.LocalClient(), f.WithCaller(t, role.ID).LocalClient()
	for who, c := range map[string]*client.Client{"operator": operator, "caller": clerk} {
		checkWaits(t, who, c, rule)
	}
	h, err := operator.ListHolders(t.Context(), client.Question{Who: "transfer"})
	want := []wire.RoleHolder{{ID: role.ID, Name: "clerk", Group: "bank", Waits: true}, {ID: roleIDOf(f, "free"), Name: "free", Group: "bank"}}
	if diff := cmp.Diff(want, h.Roles); err != nil || diff != "" {
		t.Errorf("%v, holders (-want +got):\n%s", err, diff)
	}
}

// checkWaits checks that transfer waits in role clerk, and no other tool.
func checkWaits(t *testing.T, who string, c *client.Client, rule approval.Rule) {
	t.Helper()
	list, err := c.CheckTools(t.Context(), client.Question{Role: "clerk"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		named := len(v.Approval) == 1 && v.Approval[0].Equal(&rule)
		if waits := v.Tool == "transfer"; v.Waits != waits || named != (waits && who == "operator") {
			t.Errorf("%s: %+v", who, v)
		}
	}
	m, err := c.FetchMatrix(t.Context(), client.MatrixQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range m.Items {
		if got := strings.Join(row.Waits, " "); (got == "transfer") != (row.Name == "clerk") {
			t.Errorf("%s: in the row of %s wait %q", who, row.Name, got)
		}
	}
}

func roleIDOf(f *gatewaytest.Fixture, name string) identity.RoleID {
	role, _ := f.Runtime.Org().RoleByName(name)
	return role.ID
}

// A call of a caller waits. Callers in the role of the approvers see and decide it over the API,
// others learn nothing of it.
func TestApprovals_DecidedOverAPI(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "bank", "transfer")
	use, none := toolgroups.SetOf("bank"), toolgroups.SetOf()
	rule := approval.Rule{Tools: []string{"transfer"}, From: approval.Approvers{All: []approval.Quorum{{Role: "finance", Count: 2}}}, Deadline: 2 * time.Hour}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{
		{Name: "clerk", Use: &use, Grant: &none, Approval: []approval.Rule{rule}}, {Name: "finance", Use: &none, Grant: &none},
	}}); err != nil {
		t.Fatal(err)
	}
	clerkRole, _ := f.Runtime.Org().RoleByName("clerk")
	financeRole, _ := f.Runtime.Org().RoleByName("finance")
	clerk := identity.ByCaller("clara", clerkRole.ID)
	call := func() errcode.Code {
		a, err := f.Runtime.InvokeTool(t.Context(), clerk, "transfer", nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.Code()
	}
	if code := call(); code != errcode.ApprovalRequired {
		t.Fatalf("%q", code)
	}
	finance, stranger, operator := f.WithCaller(t, financeRole.ID).LocalClient(), f.WithCaller(t, clerkRole.ID).LocalClient(), f.LocalClient()
	list := func(c *client.Client) (all []client.Approval) {
		for a, err := range c.ListApprovals(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, a)
		}
		return all
	}
	if len(list(stranger)) != 0 || len(list(operator)) != 1 || len(list(finance)) != 1 {
		t.Fatalf("%d, %d, %d", len(list(stranger)), len(list(operator)), len(list(finance)))
	}
	id := list(finance)[0].ID
	if a, err := finance.FindApproval(t.Context(), id); err != nil || a.Tool != "transfer" || string(a.Args) != `{}` || a.Starter != "clara" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := stranger.FindApproval(t.Context(), id); errcode.CodeOf(err) != errcode.ApprovalNotFound {
		t.Errorf("a stranger reads it: %v", err)
	}
	for _, try := range []struct {
		as       *client.Client
		decision client.ApprovalDecision
		want     errcode.Code
	}{
		{stranger, client.ApprovalDecision{Action: "approve"}, errcode.ApprovalNotFound},
		{operator, client.ApprovalDecision{Action: "approve"}, errcode.InsufficientPermissions},
		{operator, client.ApprovalDecision{Action: "approve", Override: true}, errcode.InsufficientPermissions},
		{finance, client.ApprovalDecision{Action: "perhaps"}, errcode.InvalidArguments},
		{finance, client.ApprovalDecision{Action: "approve", Args: json.RawMessage(`[]`)}, errcode.InvalidArguments},
		{finance, client.ApprovalDecision{Action: "approve"}, ""},
		{finance, client.ApprovalDecision{Action: "approve"}, errcode.Conflict},
	} {
		if _, err := try.as.DecideApproval(t.Context(), id, try.decision); errcode.CodeOf(err) != try.want {
			t.Errorf("%+v: %v, want %q", try.decision, err, try.want)
		}
	}
	if code := call(); code != errcode.ApprovalRequired {
		t.Errorf("one vote of two: %q", code)
	}
	decision := client.ApprovalDecision{Action: "approve", Override: true, Reason: "the second person is away"}
	out, err := operator.DecideApprovals(t.Context(), client.ApprovalDecisions{Decisions: []client.NamedDecision{{ID: id, ApprovalDecision: decision}, {ID: "none", ApprovalDecision: decision}}})
	if err != nil || len(out.Outcomes) != 2 || out.Outcomes[0].Outcome != "approved" || out.Outcomes[1].Code != string(errcode.ApprovalNotFound) {
		t.Errorf("%+v, %v", out, err)
	}
	for _, want := range []errcode.Code{"", errcode.ApprovalRequired} {
		if code := call(); code != want {
			t.Errorf("%q, want %q", code, want)
		}
	}
}

// Approvers see what became of the calls that they could approve. Others learn nothing of them.
func TestApprovals_ListsWhatBecameOfThem(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "bank", "transfer")
	failing, err := tool.New("refund", "a tool", func(context.Context, map[string]any) (string, error) {
		return "", errors.New("the bank is closed: secret balance 5")
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, "desk", failing)
	use, none := toolgroups.SetOf("bank", "desk"), toolgroups.SetOf()
	rules := []approval.Rule{{Tools: []string{"transfer", "refund"}, From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}}}}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{
		{Name: "clerk", Use: &use, Grant: &none, Approval: rules}, {Name: "finance", Use: &none, Grant: &none}, {Name: "audit", Use: &none, Grant: &none},
	}}); err != nil {
		t.Fatal(err)
	}
	as := func(role string) *client.Client { return f.WithCaller(t, roleIDOf(f, role)).LocalClient() }
	call := func(name string, args ...string) string {
		a, err := f.Runtime.InvokeTool(t.Context(), identity.ByCaller("clara", roleIDOf(f, "clerk")), name, []byte(strings.Join(args, "")))
		if err != nil {
			t.Fatal(err)
		}
		return a.Approval()
	}
	decide := func(id, action string) {
		if _, err := as("finance").DecideApproval(t.Context(), id, client.ApprovalDecision{Action: action, Reason: "because"}); err != nil {
			t.Fatal(err)
		}
	}
	statuses := func(c *client.Client) string {
		list, err := c.ListDecidedApprovals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, d := range list {
			words = append(words, strings.TrimSpace(d.Tool+" "+d.Status+" "+d.Code))
		}
		if text, _ := json.Marshal(list); strings.Contains(string(text), "secret") {
			t.Errorf("it has the result: %s", text)
		}
		return strings.Join(words, ", ")
	}
	paid := call("transfer")
	if got := statuses(as("finance")); got != "" {
		t.Errorf("before the decision: %s", got)
	}
	decide(paid, "approve")
	if got := statuses(as("finance")); got != "transfer approved" {
		t.Errorf("before the call: %s", got)
	}
	call("transfer")
	decide(call("refund"), "approve")
	call("refund")
	decide(call("transfer"), "deny")
	want := "transfer denied, refund failed tool_execution_failed, transfer ok"
	for role, c := range map[string]*client.Client{"finance": as("finance"), "operator": f.LocalClient()} {
		if got := statuses(c); got != want {
			t.Errorf("%s sees %s", role, got)
		}
	}
	for _, role := range []string{"clerk", "audit"} {
		if got := statuses(as(role)); got != "" {
			t.Errorf("%s sees %s", role, got)
		}
	}
	if _, err := as("finance").DecideApproval(t.Context(), call("refund", `{"sum": 5}`), client.ApprovalDecision{Action: "approve", Args: json.RawMessage(`{"sum": 3}`)}); err != nil {
		t.Fatal(err)
	}
	list, err := as("finance").ListDecidedApprovals(t.Context())
	if err != nil || list[0].Short != `{"sum":3}` || list[0].Before != `{"sum":5}` || list[1].Before != "" {
		t.Errorf("changed arguments: %+v, %v", list, err)
	}
}

// The text of the arguments is exact, and shows what a screen hides.
func TestApprovals_TextOfArguments(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	transfer, err := tool.New("transfer", "a tool", func(context.Context, map[string]any) (string, error) { return "", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, "bank", transfer)
	use, none := toolgroups.SetOf("bank"), toolgroups.SetOf()
	rule := approval.Rule{Tools: []string{"transfer"}, From: approval.Approvers{Any: []approval.Quorum{{Operator: true}}}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{{Name: "clerk", Use: &use, Grant: &none, Approval: []approval.Rule{rule}}}}); err != nil {
		t.Fatal(err)
	}
	clerk, _ := f.Runtime.Org().RoleByName("clerk")
	a, err := f.Runtime.InvokeTool(t.Context(), identity.ByCaller("clara", clerk.ID), "transfer", json.RawMessage("{\"account\":12345678901234567,\"to\":\"ann\u202eeve\"}"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.LocalClient().FindApproval(t.Context(), a.Approval())
	if want := "{\n  \"account\": 12345678901234567,\n  \"to\": \"ann\\u202eeve\"\n}"; err != nil || got.Text != want {
		t.Errorf("%q, %v", got.Text, err)
	}
}
