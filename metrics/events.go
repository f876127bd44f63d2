package metrics

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// One method for each kind of event updates the metrics. All must be called with
// mu held.

// taskStarted counts a task and the groups it is restricted to. Nil groups mean
// no restriction; an empty list means no groups.
func (m *Metrics) taskStarted(b journal.TaskStarted) {
	m.tasks.series("started", "", "").Inc()
	if b.Groups == nil {
		b.Groups = []string{allGroups}
	}
	m.countRequest(b.Groups)
}

// taskDenied counts a request that was rejected, with the groups that it named, or has by
// default.
func (m *Metrics) taskDenied(b journal.TaskDenied) {
	switch {
	case b.Requested != nil:
		m.countRequest(b.Requested)
	case b.Defaults != nil:
		m.countRequest(b.Defaults)
	}
}

// countRequest counts a request for groups. An empty list is a request for no group.
func (m *Metrics) countRequest(groups []string) {
	if len(groups) == 0 {
		m.requests.series("-", "", "").Inc()
	}
	for _, g := range groups {
		m.requests.series(m.labels.requestedGroupLabel(g), "", "").Inc()
	}
}

// agentSpawned counts an agent and starts the time in its first state.
func (m *Metrics) agentSpawned(e journal.Event) {
	m.agents.series("spawned", "", "").Inc()
	if a := m.tracker.agentFor(e); a != nil {
		a.spawnSeen, a.stateStart = true, e.At.UnixNano()
	}
}

// agentTerminated counts a terminated agent and stops tracking it.
func (m *Metrics) agentTerminated(e journal.Event) {
	m.agents.series("terminated", "", "").Inc()
	if a := m.tracker.tasks[e.Task][e.Agent]; a != nil {
		m.observeStateTime(a, e.At.UnixNano(), "")
	}
	m.tracker.forget(e.Task, e.Agent)
	m.tracker.ended.add(string(e.Agent))
}

// messageSent counts an unread message of a tracked agent.
func (m *Metrics) messageSent(b journal.MessageSent) {
	if a := m.tracker.tasks[b.Message.Task][identity.AgentID(b.Message.To)]; a != nil {
		m.tracker.addUnread(a, 1)
	}
}

// messageReceived counts a message as read; the first one starts a turn.
func (m *Metrics) messageReceived(e journal.Event) {
	a := m.tracker.agentFor(e)
	if a == nil {
		return
	}
	m.tracker.addUnread(a, -1)
	if !a.working {
		a.working, a.turnStart = true, e.At.UnixNano()
	}
}

// modelAnswered counts the usage and the available tools of an answer, and ends
// the turn if the answer does. An answer without a list of tools has the tools
// of the previous answer.
func (m *Metrics) modelAnswered(e journal.Event, b journal.ModelAnswered) {
	m.addUsage(cleanLabel(e.Role), b.Answer.Usage)
	a := m.tracker.agentFor(e)
	if a == nil {
		return
	}
	a.beginTurn()
	if b.Answer.Tools != nil {
		a.tools = len(b.Answer.Tools)
	}
	if a.tools >= 0 {
		m.filtered.series("", "", "").Observe(float64(a.tools))
	}
	if a.state == "" {
		a.state = m.labels.stateLabel(b.Answer.State)
	}
	switch {
	case b.Answer.Finish.EndsTurn():
		m.observeTurn(e, a, "ended")
	case b.Answer.Finish == model.FinishWait:
		m.observeTurn(e, a, "waiting")
	}
}

// observeTurn records the duration of a turn that ends, if its start is known.
func (m *Metrics) observeTurn(e journal.Event, a *agent, outcome string) {
	if d, ok := a.endTurn(e.At.UnixNano()); ok {
		m.turns.series(outcome, "", "").Observe(d.Seconds())
	}
}

// addUsage counts tokens and cost. Providers report the numbers, so negative
// ones are ignored.
func (m *Metrics) addUsage(role string, u model.TokenUsage) {
	for _, t := range []struct {
		kind string
		n    int
	}{{"input", u.Input}, {"output", u.Output}, {"cached", u.Cached}} {
		if t.n > 0 {
			m.tokens.series(role, t.kind, "").Add(float64(t.n))
		}
	}
	if u.Cost > 0 {
		m.cost.series(role, "", "").Add(float64(u.Cost) / 1e9)
	}
}

// toolCalled counts a decision of the gate and starts the time of an allowed
// call. Denials are counted by rule and code; the text of the reason may
// contain names that a model has invented.
func (m *Metrics) toolCalled(e journal.Event, b journal.ToolCall) {
	m.decisions.series(cleanLabel(b.Decision), cleanLabel(string(b.Code)), "").Inc()
	a := m.tracker.agentFor(e)
	if a != nil {
		a.beginTurn()
	}
	switch {
	case b.Decision != journal.Denied:
		if a != nil {
			a.closeCall(b.Call) // started by another process, and started again
			a.openCalls = append(a.openCalls, openCall{b.Call, m.labels.toolLabel(b.Tool), e.At.UnixNano()})
		}
	case b.Rule == toolgroups.WrongState.String():
		m.wrongState.series("", "", "").Inc()
	case b.Code == errcode.ToolNotAvailable && m.labels.hasTool(b.Tool):
		m.denied.series("", "", "").Inc()
	}
}

// toolReturned records the duration of a call that has ended.
func (m *Metrics) toolReturned(e journal.Event, id identity.CallID, outcome string) {
	a := m.tracker.agentFor(e)
	if a == nil {
		return
	}
	if c, ok := a.closeCall(id); ok {
		m.calls.series(c.tool, outcome, "").Observe(float64(max(0, e.At.UnixNano()-c.start)) / 1e9)
	}
}

// stateChanged counts a transition and records the time in the state it leaves.
func (m *Metrics) stateChanged(e journal.Event, b journal.StateTransition) {
	from, to := m.labels.stateLabel(b.From), m.labels.stateLabel(b.To)
	m.transitions.series(m.labels.toolLabel(b.Tool), from, to).Inc()
	if a := m.tracker.agentFor(e); a != nil {
		a.state = from
		m.observeStateTime(a, e.At.UnixNano(), to)
	}
}

// observeStateTime records how long the agent was in the state it leaves.
func (m *Metrics) observeStateTime(a *agent, at int64, next string) {
	state := a.state
	if d, ok := a.changeState(at, next); ok && state != "" {
		m.stateTime.series(state, "", "").Observe(d.Seconds())
	}
}

// turnFailed records the duration of a turn that failed.
func (m *Metrics) turnFailed(e journal.Event, b journal.TurnFailed) {
	m.countEscalation(b.Code)
	if a := m.tracker.agentFor(e); a != nil {
		a.beginTurn()
		m.observeTurn(e, a, "failed")
	}
}

// approvalDecided counts a decision about a call that waits, and how long the call has waited for
// it. An approval in place of the approvers has an outcome of its own.
func (m *Metrics) approvalDecided(b journal.ApprovalDecided) {
	outcome := cleanLabel(b.Outcome)
	if b.Override {
		outcome = "override"
	}
	m.approvals.series(outcome, "", "").Inc()
	if b.Outcome != journal.ApprovalVoted {
		m.approvalTime.series(outcome, "", "").Observe(max(0, b.Waited.Seconds()))
	}
}

// taskFinished counts the result of a task and forgets its agents.
func (m *Metrics) taskFinished(e journal.Event, b journal.TaskEnded) {
	m.tasks.series(statusLabel(b.Status), "", "").Inc()
	at := e.At.UnixNano()
	for id, a := range m.tracker.tasks[e.Task] {
		m.observeStateTime(a, at, "")
		m.tracker.forget(e.Task, id)
	}
	delete(m.tracker.tasks, e.Task)
	m.tracker.ended.add(string(e.Task))
}

// statusLabel returns the label for the final status of a task.
func statusLabel(s string) string {
	switch org.TaskStatus(s) {
	case org.Done, org.Failed, org.Cancelled:
		return s
	}
	return otherLabel
}
