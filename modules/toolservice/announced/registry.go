// Package announced makes modules of the services that announce themselves
// (protocol.Announcement). The operator decides which of them count:
//
//	registry := announced.NewRegistry(announced.Config{Admit: admit, Keys: keys, ...})
//	go registry.Run(ctx)
//	stop, err := announcer.OpenAnnouncements(ctx, registry.Receive)
//
// What a service says is not trusted. An announcement counts only if it is signed with the key
// that the operator made for its id. Its tools are pinned as the tools of MCP servers are
// (modules.PinStore). Its hints about effects change nothing.
package announced

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Admission is what the operator has decided about a service. The zero value rejects it.
type Admission int

// The decisions.
const (
	Rejected   Admission = iota
	Quarantine           // no tool is active before the operator has accepted it
	Accept               // the tools of the first announcement are accepted
)

// Config is what a Registry needs of the process. All but Log are required. The functions are
// safe for concurrent use.
type Config struct {
	// Admit returns the decision about a service. It returns at once.
	Admit func(service string) Admission
	// Keys returns the valid keys of a service. A service without a key cannot announce itself.
	Keys func(service string) ([]string, error)
	// NewCaller returns a module without tools that calls a service on its announced queues.
	NewCaller func(service string) (*toolservice.Module, error)
	// Load brings a module into service. It returns an error if the service is not admitted any
	// more, or the registry does not hold the module any more.
	Load func(ctx context.Context, m *Module) error
	// Changed notifies the process that the tools of a service have changed.
	Changed func(service string)
	// NameTaken reports whether the name of a tool belongs to another owner than this service.
	NameTaken func(service, tool string) bool
	Pins      *modules.PinStore
	Log       *slog.Logger // nil discards
}

// Limits of a Registry.
const (
	maxServices  = 128
	maxInstances = 32                       // of one service
	maxPending   = 2                        // announcements of one service that wait
	maxQueued    = maxServices * maxPending // of all services
	burst        = 20                       // announcements of one service at once, and then one in each interval
	interval     = 2 * time.Second
	reportEvery  = time.Minute // a repeated problem of one service
)

// Registry keeps the services that announce themselves. It is safe for concurrent use.
type Registry struct {
	config Config
	rate   *fair.RateTable[string] // of announcements
	report *fair.RateTable[string] // of problems in the log
	wake   chan struct{}           // has an entry when queue may have one

	workMu sync.Mutex // held while a service is added or changed

	mu       sync.Mutex // guards what follows
	queue    []message
	pending  map[string]int // entries of queue, by service
	services map[string]*Module
}

// message is an announcement that waits.
type message struct{ service, text string }

// NewRegistry returns a registry without services.
func NewRegistry(c Config) *Registry {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	r := &Registry{
		config: c, rate: fair.NewRateTable[string](maxServices), report: fair.NewRateTable[string](maxServices),
		wake: make(chan struct{}, 1), pending: map[string]int{}, services: map[string]*Module{},
	}
	r.rate.SetRate(interval, burst)
	r.report.SetRate(reportEvery, 1)
	return r
}

// Receive takes an announcement. It returns at once. It drops announcements of services that are
// not admitted or have no key. It also drops announcements that a service sends too often.
func (r *Registry) Receive(service, text string) {
	if !r.isKnown(service) {
		return
	}
	if r.rate.Take(service) > 0 {
		r.warn(service, "announcements dropped: the service sends too many", nil)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) >= maxQueued || r.pending[service] >= maxPending {
		return // the service announces itself again
	}
	r.queue, r.pending[service] = append(r.queue, message{service, text}), r.pending[service]+1
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// isKnown reports whether a service is admitted and has a key. The operator has made the keys, so
// the number of known services is bounded.
func (r *Registry) isKnown(service string) bool {
	_, _, valid := protocol.AnnouncedQueues(service)
	if !valid || r.config.Admit(service) == Rejected {
		return false
	}
	keys, err := r.config.Keys(service)
	if err != nil {
		r.warn(service, "announcements dropped: the keys cannot be read", err)
	}
	return err == nil && len(keys) > 0
}

// warn logs a problem of a service, at most once in reportEvery.
func (r *Registry) warn(service, text string, err error) {
	if r.report.Take(service) > 0 {
		return
	}
	list := []any{"service", service}
	if err != nil {
		list = append(list, "error", err)
	}
	r.config.Log.Warn(text, list...)
}

// Run handles the announcements, one at a time, until ctx ends.
func (r *Registry) Run(ctx context.Context) {
	for {
		m, ok := r.next()
		if ok && ctx.Err() == nil {
			if err := r.handle(ctx, m); err != nil && ctx.Err() == nil {
				r.warn(m.service, "announcement rejected", err)
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
	}
}

// next takes the first entry of the queue.
func (r *Registry) next() (message, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return message{}, false
	}
	m := r.queue[0]
	r.queue = slices.Delete(r.queue, 0, 1)
	if r.pending[m.service]--; r.pending[m.service] == 0 {
		delete(r.pending, m.service)
	}
	return m, true
}

// handle verifies an announcement and applies it.
func (r *Registry) handle(ctx context.Context, m message) error {
	r.workMu.Lock()
	defer r.workMu.Unlock()
	keys, err := r.config.Keys(m.service)
	if err != nil {
		return err
	}
	a, err := protocol.VerifyAnnouncement(m.text, m.service, time.Now(), keys...)
	if err != nil {
		return err
	}
	admission := r.config.Admit(m.service)
	if admission == Rejected {
		return errors.New("the service is not admitted any more")
	}
	one, ok := r.find(m.service)
	if !ok && a.End {
		return nil
	}
	if !ok {
		return r.add(ctx, a, admission)
	}
	return one.apply(ctx, a, admission)
}

// find returns the module of a service.
func (r *Registry) find(service string) (*Module, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.services[service]
	return m, ok
}

// add makes the module of a service that announces itself for the first time.
func (r *Registry) add(ctx context.Context, a protocol.Announcement, admission Admission) error {
	m, err := r.newModule(a.Service)
	if err != nil {
		return err
	}
	if err := m.apply(ctx, a, admission); err != nil {
		return errors.Join(err, r.drop(m))
	}
	return r.load(ctx, m)
}

// Restore brings a service into service that has announced itself before, in this process or an
// earlier one. Its tools answer ToolUnavailable until it announces itself again. It does nothing
// for other services.
func (r *Registry) Restore(ctx context.Context, service string) error {
	r.workMu.Lock()
	defer r.workMu.Unlock()
	if _, ok := r.find(service); ok || !r.isKnown(service) {
		return nil
	}
	p, err := r.config.Pins.ReadPins(ctx, modules.OwnerOf(service))
	if err != nil || !p.Seen {
		return err
	}
	m, err := r.newModule(service)
	if err != nil {
		return err
	}
	return r.load(ctx, m)
}

// load brings a new module into service.
func (r *Registry) load(ctx context.Context, m *Module) error {
	if err := r.config.Load(ctx, m); err != nil {
		return errors.Join(err, r.drop(m))
	}
	return nil
}

// drop forgets and closes a module that is not in service. The loader may have closed it already.
func (r *Registry) drop(m *Module) error {
	r.mu.Lock()
	if r.services[m.id] == m {
		delete(r.services, m.id)
	}
	r.mu.Unlock()
	return m.Close()
}

// Holds reports whether m is the module of its service, which was not forgotten.
func (r *Registry) Holds(m *Module) bool {
	held, ok := r.find(m.id)
	return ok && held == m
}

// newModule makes the module of a service and remembers it.
func (r *Registry) newModule(service string) (*Module, error) {
	caller, err := r.config.NewCaller(service)
	if err != nil {
		return nil, err
	}
	m := newModule(r, service, caller)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.services) >= maxServices {
		m.stopWatch()
		return nil, errcode.New(errcode.ToolUnavailable, "there are %d announced services already; admit fewer", maxServices)
	}
	r.services[service] = m
	return m, nil
}

// Services returns the ids of the services that have modules, sorted.
func (r *Registry) Services() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.services))
}

// IsAlive reports whether a lease of a service has not ended.
func (r *Registry) IsAlive(service string) bool {
	m, ok := r.find(service)
	return ok && m.isAlive(time.Now())
}

// Forget forgets a service. The caller takes its module out of service.
func (r *Registry) Forget(service string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.services, service)
}
