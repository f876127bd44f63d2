package gate_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// All denials of a suspended role are the same and say that it is suspended, whether the
// tool exists or not, also if the role is tool-gated.
func TestDecision_SuspendedDenialsAreIdentical(t *testing.T) {
	for _, gated := range []bool{false, true} {
		f := newFixture(t, &fakeTool{definition: definition("mine", tool.ReadOnly)})
		view := f.groups.CurrentSnapshot().Compile(toolgroups.PinnedSet{})
		if gated {
			view.SetGating(toolgroups.Gated)
		}
		view.SetSuspended("role r is suspended")
		subject := f.PreviewSubject(view, "")
		var reasons []string
		for _, name := range []string{"mine", "nothing"} {
			d := subject.AuthorizeTool(name)
			if d.Allowed() || d.Code() != errcode.ToolNotAvailable || d.Suspended() != "role r is suspended" {
				t.Errorf("gated %v, %s: %q, %q", gated, name, d.Code(), d.Suspended())
			}
			reasons = append(reasons, strings.ReplaceAll(d.Reason(), name, "TOOL"))
		}
		if reasons[0] != reasons[1] || reasons[0] != "tool TOOL is not available: role r is suspended" {
			t.Errorf("gated %v: %q", gated, reasons)
		}
	}
	if d := (gate.Decision{Tool: "mine"}); d.Suspended() != "" || d.Allowed() {
		t.Errorf("the zero Decision: %q", d.Suspended())
	}
}
