package gate_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// door gives open, which leads from shut to open, and enter, which is for open.
func door() []tool.Tool {
	open, enter := definition("open", tool.Mutating), definition("enter", tool.ReadOnly)
	open.State, open.States, enter.States = "open", []string{"shut"}, []string{"open"}
	return []tool.Tool{&fake{d: open}, &fake{d: enter}}
}

// A seat looks ahead to where a call leads: only one that it sees leads
// somewhere, and looking moves nothing.
func TestASeatAfterACall(t *testing.T) {
	h := open(t, door()...)
	h.desk.move("shut")
	for _, c := range []struct {
		name  string
		calls []string
		state string
		sees  []string
	}{
		{"of nothing", nil, "shut", []string{"open"}},
		{"of what leads to a state", []string{"open"}, "open", []string{"enter"}},
		{"of what leads nowhere", []string{"open", "enter"}, "open", []string{"enter"}},
		{"of what is not for this state", []string{"enter"}, "shut", []string{"open"}},
		{"of what there is not", []string{"no_such"}, "shut", []string{"open"}},
		{"of what is for another state by then", []string{"open", "open"}, "open", []string{"enter"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := h.Subject(ann)
			seat := first
			for _, name := range c.calls {
				seat = seat.AfterCall(name)
			}
			got := slices.DeleteFunc(slices.Clone(seat.ToolNames()), func(s string) bool { return s != "open" && s != "enter" })
			if seat.State != c.state || !slices.Equal(got, c.sees) || first.State != "shut" {
				t.Errorf("it is in state %q and sees %v, want %q and %v", seat.State, got, c.state, c.sees)
			}
			for _, name := range []string{"open", "enter"} {
				if may := seat.Authorize(name).Allowed(); may != slices.Contains(c.sees, name) {
					t.Errorf("it may call %s: %t", name, may)
				}
			}
		})
	}
}

// What a seat is offered is what it may call, and nothing when nobody sits.
func TestAnOfferIsWhatMayBeCalled(t *testing.T) {
	h := open(t, door()...)
	for _, state := range []string{"shut", "open", "elsewhere"} {
		h.desk.move(state)
		seat := h.Subject(ann)
		offer := seat.Tools()
		if !slices.Equal(offer.Names, seat.ToolNames()) || string(offer.JSON) != string(seat.ToolJSON()) || offer.ToolGated {
			t.Errorf("in state %s: offered %v, sees %v", state, offer.Names, seat.ToolNames())
		}
		for _, name := range []string{"open", "enter", "no_such"} {
			if seat.Authorize(name).Allowed() != slices.Contains(offer.Names, name) {
				t.Errorf("in state %s: %s is offered or allowed, not both", state, name)
			}
		}
	}
	for name, seat := range map[string]*gate.Subject{"zero": {}, "of a zero View": h.Preview(new(toolgroups.View), "")} {
		if offer := seat.Tools(); len(offer.Names) > 0 || seat.AfterCall("open").Authorize("open").Allowed() {
			t.Errorf("a %s seat is offered %v", name, offer.Names)
		}
	}
}

// What is offered is what some state lets through, in order, and the same
// list each time it is asked for.
func TestOfferedIsWhatSomeStateLetsThrough(t *testing.T) {
	nowhere := definition("nowhere", tool.Mutating)
	nowhere.States = []string{}
	h := open(t, append(door(), &fake{d: nowhere})...)
	for _, state := range []string{"shut", "open", "elsewhere"} {
		h.desk.move(state)
		seat := h.Subject(ann)
		var names []string
		for _, d := range seat.Listable() {
			names = append(names, d.Name)
		}
		if slices.Contains(names, "nowhere") || !slices.Contains(names, "open") || !slices.Contains(names, "enter") {
			t.Errorf("in state %s: offered %v", state, names)
		}
		if &seat.Listable()[0] != &h.Subject(ann).Listable()[0] {
			t.Error("the list is made anew")
		}
	}
	for name, seat := range map[string]*gate.Subject{"zero": {}, "of a zero View": h.Preview(new(toolgroups.View), "")} {
		if list := seat.Listable(); len(list) > 0 {
			t.Errorf("a %s seat is offered %v", name, list)
		}
	}
}
