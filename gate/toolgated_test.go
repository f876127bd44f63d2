package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// newGatedFixture returns a fixture whose principal is tool-gated. It has the tool
// mine, and the tool late in another workflow state.
func newGatedFixture(t *testing.T) *fixture {
	t.Helper()
	late := definition("late", tool.Mutating)
	late.States = []string{"draft"}
	f := newFixture(t, &fakeTool{definition: definition("mine", tool.ReadOnly)}, &fakeTool{definition: late, run: mustNotRun(t)})
	s := f.groups.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("mine")))
	view.SetGating(toolgroups.Gated)
	f.ref.PublishView(view)
	return f
}

// All denials of a tool-gated principal are the same: for a tool of another group, an
// unknown tool and a tool of another state, with well-formed arguments or not.
func TestDecision_ToolGatedDenialsAreIdentical(t *testing.T) {
	f := newGatedFixture(t)
	for _, args := range []string{`{}`, `{"x":1}`, `{`, ``} {
		var results []string
		for _, name := range []string{"theirs", "nothing", "late"} {
			a := f.call(name, args)
			if a.Allowed() || !a.Decision.ToolGated() || a.Decision.Code() != errcode.ToolNotAvailable {
				t.Errorf("%s(%s): %+v", name, args, a.Decision)
			}
			if want := "Access denied. This agent is not authorized to use the " + name + " tool."; a.Decision.Reason() != want {
				t.Errorf("got %q, want %q", a.Decision.Reason(), want)
			}
			results = append(results, strings.ReplaceAll(string(a.Result.JSON()), name, "TOOL"))
		}
		if results[0] != results[1] || results[0] != results[2] {
			t.Errorf("with %q the denials differ: %q", args, results)
		}
	}
	if a := f.call("mine", `{}`); !a.Allowed() || a.Code() != "" || !a.Decision.ToolGated() {
		t.Errorf("its own tool: %+v", a.Err)
	}
}

// The denial of a principal that is not tool-gated says why.
func TestDecision_ReasonWhenNotToolGated(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("mine", tool.ReadOnly)})
	for name, code := range map[string]errcode.Code{"theirs": errcode.ToolNotAvailable, "nothing": errcode.UnknownTool} {
		if a := f.call(name, `{}`); a.Code() != code || a.Decision.ToolGated() {
			t.Errorf("%s: %q, gated %v", name, a.Code(), a.Decision.ToolGated())
		}
	}
}

// All fields of a ToolList come from one View.
func TestSubject_Tools(t *testing.T) {
	f := newGatedFixture(t)
	subject := f.Subject(ann)
	got := subject.ListTools()
	if diff := cmp.Diff(got.Names, []string{"mine"}); diff != "" || got.Gating != toolgroups.Gated || string(got.JSON) != string(subject.ToolJSON()) {
		t.Errorf("got %+v", got)
	}
	f.grant("theirs")
	if got := subject.ListTools(); !slices.Equal(got.Names, []string{"theirs"}) || got.Gating != toolgroups.NotGated {
		t.Errorf("after another View was published: %+v", got)
	}
	if got := f.Subject(tool.Call{}.By).ListTools(); len(got.Names) > 0 || got.Gating != toolgroups.NotGated {
		t.Errorf("zero Principal: got %+v", got)
	}
}
