package gate

import (
	"slices"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// acquirer has the calls of a run enter their tools before the run is recorded.
type acquirer struct {
	ended []*toolgroups.Handle // tools that had ended, by the decisions before
}

// acquireAll lets the allowed calls of a run enter their tools; false says that one
// of the tools has ended since it was looked up: nobody is in then, and the run
// is to be decided anew. A tool that is still offered though it has ended is
// not asked twice: its call fails with its own error.
func (e *acquirer) acquireAll(run []*Admission) bool {
	for _, a := range run {
		if !a.Allowed() || slices.Contains(e.ended, a.handle) || a.acquire() {
			continue
		}
		e.ended = append(e.ended, a.handle)
		releaseAll(run)
		return false
	}
	return true
}

func (a *Admission) acquire() bool {
	t, ok := a.handle.Tool.(tool.Leaser)
	if !ok {
		return true
	}
	a.lease, ok = t.Lease()
	if !ok {
		a.lease = nil
	}
	return ok
}

// releaseAll lets go of what a run entered.
func releaseAll(run []*Admission) {
	for _, a := range run {
		a.release()
	}
}

func (a *Admission) release() {
	if a.lease != nil {
		a.lease.Release()
		a.lease = nil
	}
}

// tool is what the call runs.
func (a *Admission) tool() tool.Tool {
	if a.lease != nil {
		return a.lease
	}
	return a.handle.Tool
}

// maybeStale says whether a refusal may come from a View that a change of the
// registry is just replacing: it does not know the tool, or is not the one that
// refused.
func (a *Admission) maybeStale() bool {
	d := a.Decision
	if d.Allowed() || d.handle == nil || a.Seat.slot == nil {
		return false
	}
	view := a.Seat.view()
	return view.Predates(d.handle) || view.Evaluation(d.Rule()) != d.outcome
}
