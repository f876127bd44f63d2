// Package notify tells receivers outside of this process about calls that wait for people, and what
// was decided about them, by HTTP requests. Those to receivers with a secret are signed.
//
//	e, err := notify.NewEngine(notify.Config{…})
//	e.ReplaceReceivers(ctx, list)  // when a configuration is applied
//	stop := e.Run(ctx)
//
// The journal is the queue: each receiver reads it from its own position, which is stored after
// each message. So a message is sent at least once, with the same id each time, also after a
// crash. A receiver that does not answer holds up neither the runtime nor other receivers. The
// package decides nothing about approvals.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/failurelog"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config configures an Engine. Journal and Store are required.
type Config struct {
	Journal journal.EventFollower
	Store   Store
	Redact  func() *redact.Redactor // secrets that no message has; nil redacts nothing
	Log     *slog.Logger            // nil discards
	Delays  backoff.Backoff         // between attempts; the zero value goes from 1 s to 5 min
	Timeout time.Duration           // of one attempt; 0 is 10 s
}

// Store keeps the positions of receivers. It is a runtime.OwnerStore.
type Store interface {
	ReadValue(ctx context.Context, owner toolgroups.GroupOwner) ([]byte, error)
	WriteValue(ctx context.Context, owner toolgroups.GroupOwner, value []byte) error
}

// The waits of a Config whose fields are zero.
const (
	defaultTimeout = 10 * time.Second
	firstDelay     = time.Second
	longestDelay   = 5 * time.Minute
)

// Engine sends messages to receivers. Its methods are safe for concurrent use.
type Engine struct {
	config    Config
	log       *failurelog.Log
	began     time.Time
	positions positions

	mu        sync.Mutex // guards the fields below
	receivers map[string]*receiver
	ctx       context.Context // of Run; nil while it does not run
	ended     bool
}

// NewEngine returns an Engine without receivers. The error names the field of Config that is
// missing.
func NewEngine(c Config) (*Engine, error) {
	if c.Journal == nil || c.Store == nil {
		return nil, errors.New("notify: Config.Journal or Config.Store is missing")
	}
	if c.Redact == nil {
		c.Redact = func() *redact.Redactor { return nil }
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Delays == (backoff.Backoff{}) {
		c.Delays = backoff.Backoff{Initial: firstDelay, Max: longestDelay, Jitter: true}
	}
	return &Engine{
		config: c, log: failurelog.New(c.Log), began: time.Now(), positions: positions{store: c.Store}, receivers: map[string]*receiver{},
	}, nil
}

// ReplaceReceivers replaces all receivers. One that is new is told about what happens from now
// on. The positions of receivers that are left out are forgotten. The error says that positions
// could not be stored.
func (e *Engine) ReplaceReceivers(ctx context.Context, list []config.Notification) error {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = n.Name
	}
	err := e.positions.replace(ctx, names, e.config.Journal.LastSeq())
	e.replaceRunning(list)
	return err
}

// SuspendReceivers stops all receivers and keeps their positions. After ReplaceReceivers they are told
// what happened meanwhile.
func (e *Engine) SuspendReceivers() { e.replaceRunning(nil) }

// replaceRunning stops the receivers that are not in list and starts those that are new in it or have
// changed. A changed one takes over the counts.
func (e *Engine) replaceRunning(list []config.Notification) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.receivers
	e.receivers = map[string]*receiver{}
	for _, n := range list {
		known := old[n.Name]
		if known != nil && reflect.DeepEqual(known.withoutPlace(), withoutPlace(n)) {
			e.receivers[n.Name] = known
			delete(old, n.Name)
			continue
		}
		e.receivers[n.Name] = newReceiver(e, n, known)
	}
	for _, r := range old {
		r.stop()
	}
	e.startAll()
}

// startAll starts the receivers that do not run. It must be called with mu held.
func (e *Engine) startAll() {
	if e.ctx == nil || e.ended {
		return
	}
	for _, r := range e.receivers {
		r.start(e.ctx)
	}
}

// Run sends messages until ctx ends or stop is called. stop ends the attempts in progress of the
// present receivers and waits for them.
func (e *Engine) Run(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ctx = ctx
	e.startAll()
	return func() {
		cancel()
		for _, r := range e.stopAll() {
			r.wait()
		}
	}
}

// stopAll stops all receivers, for ever, and returns them.
func (e *Engine) stopAll() map[string]*receiver {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	for _, r := range e.receivers {
		r.stop()
	}
	return e.receivers
}

// Deliveries returns what was sent to each receiver since it was added. A changed receiver keeps its
// counts; SuspendReceivers ends them.
func (e *Engine) Deliveries() map[string]metrics.DeliveryCounts {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]metrics.DeliveryCounts{}
	for name, r := range e.receivers {
		all[name] = r.count.read()
	}
	return all
}
