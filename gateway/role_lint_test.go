package gateway_test

import (
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

// The operator reads the lint of a role: what was called and denied, and what would be enough. A
// holder of a role's token does not, and finds no such route.
func TestLintRole_OverHTTP(t *testing.T) {
	operator, caller := usageFixture(t)
	lint, err := operator.LocalClient().LintRole(t.Context(), "clerk", "1h", "")
	if err != nil {
		t.Fatal(err)
	}
	if lint.Role != "clerk" || !lint.Used || lint.Calls.Denied != 2 || lint.Calls.Total != 6 || len(lint.Tools) != 1 || lint.Tools[0].Calls != 4 || len(lint.Denied) != 1 {
		t.Errorf("got %+v", lint)
	}
	if lint.ToolGroups.Recommended == nil || !lint.ToolGroups.Exact || lint.ToolGroups.KeptTools > lint.ToolGroups.HeldTools {
		t.Errorf("of its tools: %+v", lint.ToolGroups)
	}
	if lint, err = operator.LocalClient().LintRole(t.Context(), "clerk", "", "24h"); err != nil || lint.Used || lint.ToolGroups.Recommended != nil || lint.Grant.Recommended != nil {
		t.Errorf("before the record: %+v, %v", lint, err)
	}
	if _, err = caller.LocalClient().LintRole(t.Context(), "clerk", "", ""); err == nil {
		t.Error("a caller reads a lint")
	}
	joined := map[string]bool{}
	for joins, err := range operator.LocalClient().ListJoins(t.Context()) { // no tool of the fixture has flags that are set
		if err != nil || len(joins.Findings) == 0 || len(joins.Findings[0].Joined) != 3 || joins.Findings[0].Joined[0].FlagsKnown {
			t.Errorf("joins: %+v, %v", joins, err)
		}
		joined[joins.Role] = true
	}
	if !joined["clerk"] {
		t.Errorf("the roles that join all flags are %v", joined)
	}
	for _, err := range caller.LocalClient().ListJoins(t.Context()) {
		if err == nil {
			t.Error("a caller lists the joins")
		}
	}
	for _, tt := range []struct {
		ref, from, to string
		code          errcode.Code
	}{{"root", "", "", errcode.InvalidRole}, {"none", "", "", errcode.RoleNotFound}, {"clerk", "soon", "", errcode.InvalidArguments}, {"clerk", "", "soon", errcode.InvalidArguments}} {
		if _, err := operator.LocalClient().LintRole(t.Context(), tt.ref, tt.from, tt.to); errcode.CodeOf(err) != tt.code {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
