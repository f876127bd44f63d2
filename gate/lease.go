package gate

import (
	"slices"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// acquirer acquires leases for the calls of a batch before the batch is recorded.
// The module of a tool that was recorded as started then stays open until the call
// has ended.
type acquirer struct {
	ended []*toolgroups.ToolHandle // tools that refused a lease before
}

// acquireAll acquires a lease on the tool of every allowed call. It reports false,
// and holds no lease, if a tool has ended since it was looked up. The batch must
// then be decided again. A tool that is still registered although it has ended is
// tried only once. Its call then runs without a lease and fails with the tool's own
// error.
func (q *acquirer) acquireAll(batch []*Admission) bool {
	for _, a := range batch {
		if !a.Allowed() || slices.Contains(q.ended, a.handle) || a.acquire() {
			continue
		}
		q.ended = append(q.ended, a.handle)
		releaseAll(batch)
		return false
	}
	return true
}

// acquire acquires the lease of one call. It reports false if the tool has ended.
// A tool that is not a tool.Leaser never ends.
func (a *Admission) acquire() bool {
	t, ok := a.handle.Tool.(tool.Leaser)
	if !ok {
		return true
	}
	a.lease, ok = t.AcquireLease()
	if !ok {
		a.lease = nil
	}
	return ok
}

// releaseAll releases the leases that the calls of a batch hold.
func releaseAll(batch []*Admission) {
	for _, a := range batch {
		a.release()
	}
}

// release releases the lease of the call, if it holds one.
func (a *Admission) release() {
	if a.lease != nil {
		a.lease.Release()
		a.lease = nil
	}
}

// tool returns the tool to run: the leased one, if there is a lease.
func (a *Admission) tool() tool.Tool {
	if a.lease != nil {
		return a.lease
	}
	return a.handle.Tool
}

// maybeStale reports whether a change of the registry may be the reason for a
// denial. That is so if the tool is newer than the View, or if the View was
// replaced after the decision.
func (a *Admission) maybeStale() bool {
	d := a.Decision
	if d.Allowed() || d.handle == nil || a.Subject.ref == nil {
		return false
	}
	view := a.Subject.view()
	return view.PredatesTool(d.handle) || view.RuleEvaluation(d.Rule()) != d.outcome
}
