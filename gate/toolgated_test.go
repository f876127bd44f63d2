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

// gated opens a house whose principal is tool-gated and has the tool mine, and
// late in another workflow state.
func gated(t *testing.T) *house {
	t.Helper()
	late := definition("late", tool.Mutating)
	late.States = []string{"draft"}
	h := open(t, &fake{d: definition("mine", tool.ReadOnly)}, &fake{d: late, run: mustNotRun(t)})
	s := h.groups.Snapshot()
	view := s.Compile(s.Bind(toolgroups.Of("mine")))
	view.SetToolGated()
	h.slot.Publish(view)
	return h
}

// A tool-gated principal gets one answer for whatever is not its own: another's
// tool, nobody's, one of another state. Well-formed arguments or not, none of
// these answers tells which it was.
func TestAGatedDenialIsOneAndTheSame(t *testing.T) {
	h := gated(t)
	for _, args := range []string{`{}`, `{"x":1}`, `{`, ``} {
		var told []string
		for _, name := range []string{"theirs", "nothing", "late"} {
			a := h.call(name, args)
			if a.Allowed() || !a.Decision.ToolGated() || a.Decision.Code() != errcode.ToolNotAvailable {
				t.Errorf("%s(%s): %+v", name, args, a.Decision)
			}
			if want := "Access denied. This agent is not authorized to use the " + name + " tool."; a.Decision.Reason() != want {
				t.Errorf("got %q, want %q", a.Decision.Reason(), want)
			}
			told = append(told, strings.ReplaceAll(string(a.Result.JSON()), name, "TOOL"))
		}
		if told[0] != told[1] || told[0] != told[2] {
			t.Errorf("with %q the answers differ: %q", args, told)
		}
	}
	if a := h.call("mine", `{}`); !a.Allowed() || a.Code() != "" || !a.Decision.ToolGated() {
		t.Errorf("its own tool: %+v", a.Err)
	}
}

// Others are told what keeps a tool from them.
func TestOthersAreToldWhy(t *testing.T) {
	h := open(t, &fake{d: definition("mine", tool.ReadOnly)})
	for name, code := range map[string]errcode.Code{"theirs": errcode.ToolNotAvailable, "nothing": errcode.UnknownTool} {
		if a := h.call(name, `{}`); a.Code() != code || a.Decision.ToolGated() {
			t.Errorf("%s: %q, gated %v", name, a.Code(), a.Decision.ToolGated())
		}
	}
}

// An Offer is what one View says.
func TestAnOffer(t *testing.T) {
	h := gated(t)
	seat := h.Subject(ann)
	got := seat.Tools()
	if diff := cmp.Diff(got.Names, []string{"mine"}); diff != "" || !got.ToolGated || string(got.JSON) != string(seat.ToolJSON()) {
		t.Errorf("got %+v", got)
	}
	h.grant("theirs")
	if got := seat.Tools(); !slices.Equal(got.Names, []string{"theirs"}) || got.ToolGated {
		t.Errorf("after another View is in force: %+v", got)
	}
	if got := h.Subject(tool.Call{}.By).Tools(); len(got.Names) > 0 || got.ToolGated {
		t.Errorf("nobody is offered %+v", got)
	}
}
