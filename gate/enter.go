package gate

import (
	"slices"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// entry has the calls of a run enter their tools before the run is recorded.
type entry struct {
	missed []*toolgroups.Handle // tools that had ended, by the decisions before
}

// enter lets the allowed calls of a run enter their tools; false says that one
// of the tools has ended since it was looked up: nobody is in then, and the run
// is to be decided anew. A tool that is still offered though it has ended is
// not asked twice: its call fails with its own error.
func (e *entry) enter(run []*Admission) bool {
	for _, a := range run {
		if !a.Allowed() || slices.Contains(e.missed, a.handle) || a.enter() {
			continue
		}
		e.missed = append(e.missed, a.handle)
		leave(run)
		return false
	}
	return true
}

func (a *Admission) enter() bool {
	t, ok := a.handle.Tool.(tool.Enterer)
	if !ok {
		return true
	}
	a.entered, ok = t.Enter()
	if !ok {
		a.entered = nil
	}
	return ok
}

// leave lets go of what a run entered.
func leave(run []*Admission) {
	for _, a := range run {
		a.leave()
	}
}

func (a *Admission) leave() {
	if a.entered != nil {
		a.entered.Leave()
		a.entered = nil
	}
}

// tool is what the call runs.
func (a *Admission) tool() tool.Tool {
	if a.entered != nil {
		return a.entered
	}
	return a.handle.Tool
}

// unsettled says whether a refusal may come from a View that a change of the
// registry is just replacing: it does not know the tool, or is not the one that
// refused.
func (a *Admission) unsettled() bool {
	d := a.Decision
	if d.Allowed() || d.handle == nil || a.Seat.slot == nil {
		return false
	}
	view := a.Seat.view()
	return view.Predates(d.handle) || view.Ruling(d.Rule()) != d.ruling
}
