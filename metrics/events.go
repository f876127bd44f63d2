package metrics

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// What each event moves. All are called with mu held.

func (m *Metrics) started(b journal.TaskStarted) {
	m.ended.of("started", "", "").Inc()
	switch {
	case b.Groups == nil:
		m.requests.of("*", "", "").Inc()
	case len(b.Groups) == 0:
		m.requests.of("-", "", "").Inc()
	}
	for _, g := range b.Groups {
		m.requests.of(m.names.group(g), "", "").Inc()
	}
}

func (m *Metrics) spawned(e journal.Event) {
	m.agentLifetimes.of("spawned", "", "").Inc()
	if a := m.crowd.agentFor(e); a != nil {
		a.spawnSeen, a.entered = true, e.At.UnixNano()
	}
}

func (m *Metrics) terminated(e journal.Event) {
	m.agentLifetimes.of("terminated", "", "").Inc()
	if a := m.crowd.tasks[e.Task][e.Agent]; a != nil {
		m.observeStateTime(a, e.At.UnixNano(), "")
	}
	m.crowd.drop(e.Task, e.Agent)
	m.crowd.gone.add(string(e.Agent))
}

func (m *Metrics) sent(b journal.MessageSent) {
	if a := m.crowd.tasks[b.Message.Task][identity.AgentID(b.Message.To)]; a != nil {
		m.crowd.mail(a, 1)
	}
}

func (m *Metrics) taken(e journal.Event) {
	a := m.crowd.agentFor(e)
	if a == nil {
		return
	}
	m.crowd.mail(a, -1)
	if !a.working {
		a.working, a.turn = true, e.At.UnixNano()
	}
}

func (m *Metrics) answered(e journal.Event, b journal.ModelAnswered) {
	m.spent(label(e.Role), b.Answer.Usage)
	a := m.crowd.agentFor(e)
	if a == nil {
		return
	}
	a.begin()
	if b.Answer.Tools != nil {
		a.tools = len(b.Answer.Tools)
	}
	if a.tools >= 0 {
		m.filtered.of("", "", "").Observe(float64(a.tools))
	}
	if a.state == "" {
		a.state = m.names.state(b.Answer.State)
	}
	switch b.Answer.Finish {
	case model.FinishEnd:
		m.turned(e, a, "ended")
	case model.FinishWait:
		m.turned(e, a, "waiting")
	}
}

func (m *Metrics) turned(e journal.Event, a *agent, outcome string) {
	if d, ok := a.end(e.At.UnixNano()); ok {
		m.turns.of(outcome, "", "").Observe(d.Seconds())
	}
}

// spent counts a usage. Providers report it: what is negative is not counted.
func (m *Metrics) spent(role string, u model.Usage) {
	for _, t := range []struct {
		kind string
		n    int
	}{{"input", u.Input}, {"output", u.Output}, {"cached", u.Cached}} {
		if t.n > 0 {
			m.tokens.of(role, t.kind, "").Add(float64(t.n))
		}
	}
	if u.Cost > 0 {
		m.cost.of(role, "", "").Add(float64(u.Cost) / 1e9)
	}
}

func (m *Metrics) called(e journal.Event, b journal.ToolCall) {
	m.decisions.of(label(b.Decision), label(string(b.Code)), "").Inc()
	a := m.crowd.agentFor(e)
	if a != nil {
		a.begin()
	}
	switch {
	case b.Decision != journal.Denied:
		if a != nil {
			a.close(b.Call) // one that another process had started
			a.open = append(a.open, openCall{b.Call, m.names.tool(b.Tool), e.At.UnixNano()})
		}
	case b.Rule == toolgroups.WrongState.String():
		m.wrongState.of("", "", "").Inc()
	case b.Code == errcode.ToolNotAvailable && m.names.knows(b.Tool):
		m.denied.of("", "", "").Inc()
	}
}

func (m *Metrics) returned(e journal.Event, id identity.CallID, outcome string) {
	a := m.crowd.agentFor(e)
	if a == nil {
		return
	}
	if c, ok := a.close(id); ok {
		m.calls.of(c.tool, outcome, "").Observe(float64(max(0, e.At.UnixNano()-c.began)) / 1e9)
	}
}

func (m *Metrics) moved(e journal.Event, b journal.StateTransition) {
	from, to := m.names.state(b.From), m.names.state(b.To)
	m.transitions.of(m.names.tool(b.Tool), from, to).Inc()
	if a := m.crowd.agentFor(e); a != nil {
		a.state = from
		m.observeStateTime(a, e.At.UnixNano(), to)
	}
}

// observeStateTime counts the time in a state that ends.
func (m *Metrics) observeStateTime(a *agent, at int64, next string) {
	state := a.state
	if d, ok := a.leave(at, next); ok && state != "" {
		m.stateTime.of(state, "", "").Observe(d.Seconds())
	}
}

func (m *Metrics) failed(e journal.Event, b journal.Failed) {
	m.refused(b.Code)
	if a := m.crowd.agentFor(e); a != nil {
		a.begin()
		m.turned(e, a, "failed")
	}
}

func (m *Metrics) finished(e journal.Event, b journal.Result) {
	m.ended.of(status(b.Status), "", "").Inc()
	at := e.At.UnixNano()
	for id, a := range m.crowd.tasks[e.Task] {
		m.observeStateTime(a, at, "")
		m.crowd.drop(e.Task, id)
	}
	delete(m.crowd.tasks, e.Task)
	m.crowd.gone.add(string(e.Task))
}

// status gives the label of how a task ended.
func status(s string) string {
	switch org.TaskStatus(s) {
	case org.Done, org.Failed, org.Cancelled:
		return s
	}
	return otherLabel
}
