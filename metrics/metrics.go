// Package metrics owns the figures of an organization for Prometheus: those of
// seed 000 §8.1 by their names, and others that begin with rolecall_.
//
//	reg := prometheus.NewRegistry()
//	m, err := metrics.New(reg, metrics.Config{Groups: groups, Load: load})
//	… runtime.Config{Observe: m.Observe} … gateway.Config{Metrics: metrics.Handler(reg, log)}
//
// Whatever an agent does is in a committed event, so that every working
// pattern and every door is counted the same way. Of what is not public it
// reads only that a message was taken, and when. The package decides nothing,
// stores nothing and does no I/O. docs/metrics.md lists the figures.
package metrics

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config is what Metrics need.
type Config struct {
	Groups *toolgroups.Manager // which tools, groups and states have names of their own
	Load   func() Load         // asked with every scrape
}

// Load is what no event tells: how much there is to do at this moment.
type Load struct {
	Tasks   int    // that are worked on
	Working int    // agents at work
	Delayed int    // messages that are not due yet
	Commits uint64 // since the process began
}

// Metrics counts what events say. All methods are safe for concurrent use.
type Metrics struct {
	names labelValues

	requests    *metricVec[prometheus.Counter]
	filtered    *metricVec[prometheus.Observer]
	transitions *metricVec[prometheus.Counter]
	stateTime   *metricVec[prometheus.Observer]
	denied      *metricVec[prometheus.Counter]
	wrongState  *metricVec[prometheus.Counter]
	escalations *metricVec[prometheus.Counter]

	ended          *metricVec[prometheus.Counter]
	agentLifetimes *metricVec[prometheus.Counter]
	turns          *metricVec[prometheus.Observer]
	calls          *metricVec[prometheus.Observer]
	tokens         *metricVec[prometheus.Counter]
	cost           *metricVec[prometheus.Counter]
	decisions      *metricVec[prometheus.Counter]

	mu    sync.Mutex // guards what follows, and what the families have made
	crowd agentTracker
}

// New makes Metrics and registers them with reg. The error names the field of
// Config that is missing, or says what reg has already.
func New(reg prometheus.Registerer, c Config) (*Metrics, error) {
	switch {
	case c.Groups == nil:
		return nil, errors.New("metrics: Config.Groups is missing")
	case c.Load == nil:
		return nil, errors.New("metrics: Config.Load is missing")
	}
	m := &Metrics{names: labelValues{groups: c.Groups}, crowd: newCrowd()}
	var faults []error
	for _, collector := range append(m.register(), newRegistry(&m.names), newLoads(m, c.Load)) {
		faults = append(faults, reg.Register(collector))
	}
	return m, errors.Join(faults...)
}

// Handler serves what g gathers in the text format of Prometheus. What could
// not be gathered is logged, and only there. Nil log discards.
func Handler(g prometheus.Gatherer, log *slog.Logger) http.Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError,
	})
}

// Refused counts a request that a door turned down, by the code of its
// refusal: nothing of it is committed, so no event tells of it.
func (m *Metrics) Refused(code errcode.Code) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused(code)
}

func (m *Metrics) refused(code errcode.Code) {
	if code == errcode.InsufficientPermissions {
		m.escalations.of("", "", "").Inc()
	}
}

// Observe counts what one committed event says. Events of one stream come in
// their order.
func (m *Metrics) Observe(e journal.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch b := e.Body.(type) {
	case journal.TaskStarted:
		m.started(b)
	case journal.AgentSpawned:
		m.spawned(e)
	case journal.AgentTerminated:
		m.terminated(e)
	case journal.MessageSent:
		m.sent(b)
	case journal.MessageReceived:
		m.taken(e)
	case journal.ModelAnswered:
		m.answered(e, b)
	case journal.ContextCompressed:
		m.spent(label(e.Role), b.Usage)
	case journal.ToolCall:
		m.called(e, b)
	case journal.ToolResult:
		m.returned(e, b.Call, "ok")
	case journal.ToolError:
		m.returned(e, b.Call, "error")
		m.refused(b.Code)
	case journal.StateTransition:
		m.moved(e, b)
	case journal.Failed:
		m.failed(e, b)
	case journal.Result:
		m.finished(e, b)
	}
}
