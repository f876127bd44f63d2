package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/announced"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/toolgroups"
)

// announcements brings the services that announce themselves into service, as far as the
// configuration in service admits them.
type announcements struct {
	app      *App
	registry *announced.Registry
	policy   atomic.Pointer[announcePolicy] // nil admits nothing

	ctx        context.Context // ends with the App
	cancel     context.CancelFunc
	background sync.WaitGroup

	open map[string]openAnnouncements // by the fingerprint of the broker; guarded by App.configMu
}

// openAnnouncements receives the announcements at one broker until stop is called, which waits.
type openAnnouncements struct{ stop func() }

// announcePolicy is what a configuration says about services that announce themselves.
type announcePolicy struct {
	brokers []config.Broker         // at which services may announce themselves
	modules map[string]bool         // names of the modules that the configuration has
	queues  map[protocol.Topic]bool // request queues of declared services
}

// newAnnouncePolicy returns the policy of a configuration.
func newAnnouncePolicy(cfg *config.Config) *announcePolicy {
	p := &announcePolicy{modules: map[string]bool{}, queues: map[protocol.Topic]bool{}}
	for _, b := range cfg.Brokers {
		if !b.Announce.IsOff() {
			p.brokers = append(p.brokers, b)
		}
	}
	if len(p.brokers) == 0 {
		return p
	}
	for _, m := range ModulesOf(cfg) {
		p.modules[m.Name] = true
	}
	for _, s := range cfg.ToolServices {
		p.queues[s.Request] = true
	}
	return p
}

// find returns the decision about a service, and the only broker at which the service may
// announce itself. That is the first broker that allows the service by name, else the first one
// with quarantine. A service is rejected if a module of the configuration has its name, or if a
// declared service has its queue.
func (p *announcePolicy) find(service string) (config.Broker, announced.Admission) {
	request, _, valid := protocol.AnnouncedQueues(service)
	if p == nil || !valid || modules.CheckName(service) != nil || p.modules[service] || p.queues[request] {
		return config.Broker{}, announced.Rejected
	}
	for _, b := range p.brokers {
		if slices.Contains(b.Announce.Allow, service) {
			return b, announced.Accept
		}
	}
	for _, b := range p.brokers {
		if b.Announce.Quarantine {
			return b, announced.Quarantine
		}
	}
	return config.Broker{}, announced.Rejected
}

// admit returns the decision about a service.
func (p *announcePolicy) admit(service string) announced.Admission {
	_, admission := p.find(service)
	return admission
}

// findGroup returns the owner of the group of an admitted service, "" for another id.
func (p *announcePolicy) findGroup(id string) toolgroups.GroupOwner {
	service, ok := strings.CutPrefix(id, string(toolservice.GroupID("")))
	if !ok || p.admit(service) == announced.Rejected {
		return ""
	}
	return modules.OwnerOf(service)
}

// openAnnouncements starts the registry of announced services. No service is admitted yet.
func (a *App) openAnnouncements() error {
	n := &a.announcements
	n.app, n.open = a, map[string]openAnnouncements{}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.registry = announced.NewRegistry(announced.Config{
		Admit: func(service string) announced.Admission { return n.policy.Load().admit(service) },
		Keys:  func(service string) ([]string, error) { return a.serviceKeys(service)() },
		Load:  n.load, NewCaller: n.newServiceModule, Pins: a.pins, Log: a.options.Warn,
		Changed:   func(service string) { a.loader.NotifyChanged(service) },
		NameTaken: func(service, tool string) bool { return a.nameTaken(service)(tool) },
	})
	n.background.Go(func() { n.registry.Run(n.ctx) })
	n.background.Go(func() { a.brokers.watchAccounts(n.ctx) })
	return nil
}

// close stops receiving announcements. The modules stay in service.
func (n *announcements) close() {
	if n.cancel == nil {
		return
	}
	n.cancel()
	n.app.configMu.Lock()
	n.stopExcept(nil)
	n.app.configMu.Unlock()
	n.background.Wait()
}

// newServiceModule returns the module that calls an announced service.
func (n *announcements) newServiceModule(service string) (*toolservice.Module, error) {
	a := n.app
	request, response, _ := protocol.AnnouncedQueues(service)
	return toolservice.New(toolservice.Config{
		Service: toolservice.Service{ID: service, Request: request, Response: response},
		Keys:    a.serviceKeys(service), RoleOf: a.roleOf, Organization: a.organizationID,
		Broker: func() (broker.Driver, func() error, error) {
			b, admission := n.policy.Load().find(service)
			if admission == announced.Rejected {
				return nil, nil, errNotAdmitted(service)
			}
			return a.brokers.acquire(b)
		},
	})
}

// errNotAdmitted is the error for a service that the configuration does not admit any more.
func errNotAdmitted(service string) error {
	return errcode.New(errcode.ToolUnavailable, "the service %q may not announce itself; see the field announce of the broker", service)
}

// load brings the module of an announced service into service, unless the configuration has
// changed meanwhile.
func (n *announcements) load(ctx context.Context, m *announced.Module) error {
	n.app.configMu.Lock()
	defer n.app.configMu.Unlock()
	if n.policy.Load().admit(m.Name()) == announced.Rejected || !n.registry.Holds(m) {
		return errNotAdmitted(m.Name())
	}
	return n.app.loader.LoadModule(ctx, m)
}

// conflictingServices returns the services with a tool whose name the configuration adds. They go out of
// service, and come back without this tool.
func (n *announcements) conflictingServices(ch *configChange) (services []string) {
	snapshot := n.app.groups.CurrentSnapshot()
	for _, service := range n.registry.Services() {
		info, ok := snapshot.LookupGroup(toolservice.GroupID(service))
		if ok && slices.ContainsFunc(info.Tools, ch.addsTool) && !slices.ContainsFunc(ch.staged, func(m stagedModule) bool { return m.Name == service }) {
			services = append(services, service)
		}
	}
	return services
}

// addsTool reports whether a new or changed module has a tool of this name.
func (ch *configChange) addsTool(name string) bool {
	return slices.ContainsFunc(ch.staged, func(m stagedModule) bool { return m.ready.HasTool(name) })
}

// update applies what a new configuration says about announcements. It must be called with
// configMu held.
func (n *announcements) update(ctx context.Context, ch *configChange) error {
	if n.app.neverConnects || n.ctx.Err() != nil {
		return nil
	}
	for _, name := range ch.removed { // with the change
		n.registry.Forget(name)
	}
	old, now := n.policy.Load(), newAnnouncePolicy(ch.cfg)
	n.policy.Store(now)
	keep := map[string]bool{}
	for _, b := range now.brokers {
		keep[brokerFingerprint(b)] = true
	}
	err := n.unload(ctx, old, now)
	n.stopExcept(keep)
	for _, b := range now.brokers {
		err = errors.Join(err, n.receiveFrom(b))
	}
	if len(now.brokers) > 0 {
		n.background.Go(n.restore)
	}
	return err
}

// unload takes the services out of service that are not admitted any more, or have another broker.
// The loader has replaced services that the configuration declares now.
func (n *announcements) unload(ctx context.Context, old, now *announcePolicy) (err error) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for _, service := range n.registry.Services() {
		before, _ := old.find(service)
		after, admission := now.find(service)
		if admission != announced.Rejected && brokerFingerprint(before) == brokerFingerprint(after) {
			continue
		}
		n.registry.Forget(service)
		if _, loaded := n.app.loader.GroupsOf(service); loaded && !now.modules[service] {
			err = errors.Join(err, n.app.ignoreSlowClose(n.app.loader.UnloadModule(ctx, service)))
		}
	}
	return err
}

// stopExcept stops receiving announcements at the other brokers.
func (n *announcements) stopExcept(keep map[string]bool) {
	for fingerprint, one := range n.open {
		if !keep[fingerprint] {
			one.stop()
			delete(n.open, fingerprint)
		}
	}
}

// receiveFrom receives the announcements at a broker, unless it does already. It does not wait for
// a broker that is not embedded.
func (n *announcements) receiveFrom(b config.Broker) error {
	fingerprint := brokerFingerprint(b)
	if _, ok := n.open[fingerprint]; ok {
		return nil
	}
	driver, release, err := n.app.brokers.acquire(b)
	if err != nil {
		return err
	}
	announcer, ok := driver.(broker.Announcer)
	if !ok {
		return errors.Join(errcode.New(errcode.InvalidConfig, "a broker of type %q receives no announcements", b.Type), release())
	}
	ctx, cancel := context.WithCancel(n.ctx)
	done, tried := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		n.receive(ctx, announcer, b.Name, sync.OnceFunc(func() { close(tried) }))
		if err := release(); err != nil {
			n.app.options.Warn.Error("broker not closed", "broker", b.Name, "error", err)
		}
	}()
	n.open[fingerprint] = openAnnouncements{stop: func() { cancel(); <-done }}
	if b.URL == "" {
		<-tried
	}
	return nil
}

// receive receives the announcements at a broker until ctx ends. It tries again while the broker
// cannot be reached, and calls tried after each attempt.
func (n *announcements) receive(ctx context.Context, at broker.Announcer, name string, tried func()) {
	delays := backoff.Backoff{Initial: time.Second, Max: time.Minute, Jitter: true}
	for {
		stop, err := at.OpenAnnouncements(ctx, func(service, text string) { n.forward(name, service, text) })
		tried()
		if err == nil {
			<-ctx.Done()
			stop()
			return
		}
		n.app.options.Warn.Warn("announcements are not received; trying again", "broker", name, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delays.Next()):
		}
	}
}

// forward passes on an announcement that was received at the broker of its service.
func (n *announcements) forward(at, service, text string) {
	if b, admission := n.policy.Load().find(service); admission != announced.Rejected && b.Name == at {
		n.registry.Receive(service, text)
	}
}

// restore brings the services into service that have announced themselves before.
func (n *announcements) restore() {
	keys, err := n.app.keys.ListKeys()
	for _, k := range keys {
		if k.Use == keystore.Service {
			err = errors.Join(err, n.registry.Restore(n.ctx, k.Name))
		}
	}
	if err != nil && n.ctx.Err() == nil {
		n.app.options.Warn.Error("announced services not restored", "error", err)
	}
}
