package mcpserver_test

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// A client reads the id of the request for approval in the error of its call. The same call made
// again has the same id, and runs once when people have approved it.
func TestToolsCall_WaitsForApproval(t *testing.T) {
	f := openFixture(t)
	use, none := toolgroups.SetOf("probe"), toolgroups.SetOf()
	rule := approval.Rule{Tools: []string{"say"}, From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}}}}
	if err := f.rt.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{
		{Name: "payer", Use: &use, Grant: &none, Approval: []approval.Rule{rule}}, {Name: "finance", Use: &none, Grant: &none},
	}}); err != nil {
		t.Fatal(err)
	}
	payer, _ := f.rt.Org().RoleByName("payer")
	finance, _ := f.rt.Org().RoleByName("finance")
	f.roles["payer"] = payer.ID
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := f.connect(t, "ann"+version+"@payer", "/mcp", version, nil)
			call := func() *sdk.CallToolResult {
				t.Helper()
				got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "say", Arguments: raw(`{"text":"hello"}`)})
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			// waits requires that the call waits, and returns the id of the request.
			waits := func() string {
				t.Helper()
				got := call()
				fields, _ := got.StructuredContent.(map[string]any)
				id, _ := fields["approval"].(string)
				if !got.IsError || fields["error"] != "approval_required" || id == "" {
					t.Fatalf("%v, %+v", got.IsError, got.StructuredContent)
				}
				return id
			}
			id := waits()
			if again := waits(); again != id {
				t.Errorf("the same call has the request %s, and then %s", id, again)
			}
			out, err := f.rt.DecideApprovals(t.Context(), identity.ByCaller("fay", finance.ID), runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{{ID: id, Approve: true}})
			if err != nil || out[0].Err != nil {
				t.Fatal(err, out)
			}
			if got := call(); got.IsError || textOf(got) != "hello" {
				t.Errorf("after the approval: %v, %s", got.IsError, textOf(got))
			}
			if next := waits(); next == id {
				t.Error("an approval is used twice")
			}
		})
	}
}
