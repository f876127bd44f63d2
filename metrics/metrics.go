// Package metrics exports Prometheus metrics of an organization.
// docs/metrics.md lists them.
//
//	reg := prometheus.NewRegistry()
//	m, err := metrics.New(reg, metrics.Config{Groups: groups, Load: load})
//	rt, err := runtime.New(runtime.Config{Observe: m.ObserveEvent, …})
//	handler, err := gateway.New(gateway.Config{Metrics: metrics.Handler(reg, log), …})
//
// All metrics of agents are derived from committed events, so every working
// pattern and every protocol is counted in the same way. Of private events only
// the fact and time of a received message are used. The number of series is
// limited: names that are not registered are counted under the label other. The
// package makes no decisions, stores nothing and does no I/O.
package metrics

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config configures Metrics. Groups and Load are required.
type Config struct {
	Groups *toolgroups.Manager // the registry whose tools, groups and states have labels of their own
	Load   func() Load         // called at each scrape

	// Unready returns why the process is not ready, as codes of /readyz; nil for none. It is
	// called at each scrape.
	Unready func() []string

	// Services returns the tool services whose state is known, and whether each one is there now;
	// nil for none. It is called at each scrape.
	Services func() map[string]bool

	// Notifications returns what was sent to the receivers of notifications, by their names; nil
	// for none. It is called at each scrape.
	Notifications func() map[string]DeliveryCounts
}

// DeliveryCounts counts what was sent to one receiver of notifications since the process started.
type DeliveryCounts struct {
	Delivered, Retried, Dropped uint64
	Delay                       time.Duration // age of the notification that is being sent; 0 for none
}

// Load is the current load of the process, which events do not show.
type Load struct {
	RunningTasks int    // that this process works on
	WaitingTasks int    // of which only delayed messages are left
	PausedTasks  int    // of the organization that wait for the operator, at most 1,000
	Starting     int    // agents in a turn whose model was not asked yet
	Thinking     int    // agents whose model is asked
	Calling      int    // agents whose tool calls run
	Delayed      int    // messages that are not due yet
	Commits      uint64 // since the process started

	DiskFree, DiskReserve int64 // bytes; both 0 if the free space of the disk is unknown
	Recorded              int64 // bytes that the organization has recorded

	WaitingApprovals int           // calls that wait for people
	OldestApproval   time.Duration // how long the first of them has waited
}

// Metrics derives metrics from events. All methods are safe for concurrent use.
type Metrics struct {
	labels labelValues

	requests    *metricVec[prometheus.Counter]
	filtered    *metricVec[prometheus.Observer]
	transitions *metricVec[prometheus.Counter]
	stateTime   *metricVec[prometheus.Observer]
	denied      *metricVec[prometheus.Counter]
	wrongState  *metricVec[prometheus.Counter]
	escalations *metricVec[prometheus.Counter]

	tasks     *metricVec[prometheus.Counter]
	agents    *metricVec[prometheus.Counter]
	turns     *metricVec[prometheus.Observer]
	calls     *metricVec[prometheus.Observer]
	tokens    *metricVec[prometheus.Counter]
	cost      *metricVec[prometheus.Counter]
	decisions *metricVec[prometheus.Counter]

	approvals    *metricVec[prometheus.Counter]
	approvalTime *metricVec[prometheus.Observer]

	mu      sync.Mutex // guards tracker and the caches of the metricVecs
	tracker agentTracker
}

// New returns Metrics registered with reg. The error names the field of Config
// that is missing, or reports metrics that reg already has.
func New(reg prometheus.Registerer, c Config) (*Metrics, error) {
	switch {
	case c.Groups == nil:
		return nil, errors.New("metrics: Config.Groups is missing")
	case c.Load == nil:
		return nil, errors.New("metrics: Config.Load is missing")
	}
	m := &Metrics{labels: labelValues{groups: c.Groups}, tracker: newAgentTracker()}
	var errs []error
	for _, collector := range append(m.newCollectors(), newRegistryCollector(&m.labels), newLoadCollector(m, c)) {
		errs = append(errs, reg.Register(collector))
	}
	return m, errors.Join(errs...)
}

// Handler returns an HTTP handler that serves what g gathers in the text format
// of Prometheus. Errors while gathering are logged and not shown to the client.
// A nil log discards them.
func Handler(g prometheus.Gatherer, log *slog.Logger) http.Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError,
	})
}

// CountRefused counts a request that the gateway rejected with this code. Rejected
// requests are not committed, so there is no event for them.
func (m *Metrics) CountRefused(code errcode.Code) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.countEscalation(code)
}

// countEscalation counts an attempt to exceed permissions. It must be called
// with mu held.
func (m *Metrics) countEscalation(code errcode.Code) {
	if code == errcode.InsufficientPermissions {
		m.escalations.series("", "", "").Inc()
	}
}

// ObserveEvent updates the metrics for one committed event. Events of one stream
// must be observed in their order; streams may be interleaved.
func (m *Metrics) ObserveEvent(e journal.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch b := e.Body.(type) {
	case journal.TaskStarted:
		m.taskStarted(b)
	case journal.TaskDenied:
		m.taskDenied(b)
	case journal.AgentSpawned:
		m.agentSpawned(e)
	case journal.AgentTerminated:
		m.agentTerminated(e)
	case journal.MessageSent:
		m.messageSent(b)
	case journal.MessageReceived:
		m.messageReceived(e)
	case journal.ModelAnswered:
		m.modelAnswered(e, b)
	case journal.ContextCompressed:
		m.addUsage(cleanLabel(e.Role), b.Usage)
	case journal.ToolCall:
		m.toolCalled(e, b)
	case journal.ToolResult:
		m.toolReturned(e, b.Call, "ok")
	case journal.ToolError:
		m.toolReturned(e, b.Call, "error")
		m.countEscalation(b.Code)
	case journal.StateTransition:
		m.stateChanged(e, b)
	case journal.TurnFailed:
		m.turnFailed(e, b)
	case journal.ApprovalDecided:
		m.approvalDecided(b)
	case journal.TaskEnded:
		m.taskFinished(e, b)
	}
}
