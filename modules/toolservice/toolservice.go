// Package toolservice runs tools that are services behind a broker. A service declares its
// queues, and a tool names the service and the values it is called with. Both are documents of
// TrustGraph:
//
//	service := toolservice.Service{ID: "joke-service", Request: request, Response: response}
//	joke := toolservice.Tool{Definition: definition, Config: json.RawMessage(`{"style": "pun"}`)}
//	m, err := toolservice.New(toolservice.Config{Service: service, Tools: []toolservice.Tool{joke}, Broker: connect})
//	err = loader.LoadModule(ctx, m)
//
// A call is one request. Its responses are matched by id and joined until the end of the stream;
// late, repeated and foreign responses are dropped. A call never waits longer than the timeout
// of its service. What a lost connection means for it depends on the effect class of the tool.
//
// The package connects to no broker: a broker.Driver does. Services are written with package
// service, or without anything of this module.
package toolservice

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Service is a tool service.
type Service struct {
	ID                string // valid as the name of a module
	Request, Response protocol.Topic

	Timeout          time.Duration // of one call; 0 is 10 minutes, as in TrustGraph
	MaxResponseBytes int           // of one response, all pieces together; 0 is 1 MiB
	MaxConcurrent    int           // calls at a time; 0 is 64
}

// Defaults of a Service.
const (
	defaultTimeout     = 10 * time.Minute
	defaultMaxResponse = 1 << 20
	defaultConcurrent  = 64
	maxWaiting         = 4096 // calls that wait for their turn
)

// Tool is a tool of a service.
type Tool struct {
	Definition tool.Definition
	Config     json.RawMessage // a JSON object: the values that the service is called with; nil has no members
}

// values returns the JSON object of the tool's values.
func (t Tool) values() string { return cmp.Or(string(t.Config), "{}") }

// Config describes one service with its tools. Service and Broker are required.
type Config struct {
	Service Service
	Tools   []Tool
	// Broker returns the driver of the service's broker, and what releases it. Provision calls it.
	Broker func() (driver broker.Driver, release func() error, err error)

	// For call tokens. Keys returns the valid keys of the service; without any, calls have no
	// token.
	Keys         func() ([]string, error)
	Organization func() string                   // id of the organization; nil is ""
	RoleOf       func(identity.Principal) string // name of the role of an agent or a caller; nil is ""
}

// Module is one service with its tools. It is safe for concurrent use.
type Module struct {
	config Config
	tools  []tool.Tool
	slots  *fair.Semaphore

	signing atomic.Pointer[keySigner] // of the last call; nil before the first

	opening chan struct{} // has one place: the right to change link
	mu      sync.Mutex    // guards what follows
	driver  broker.Driver // from Provision to Close
	release func() error  // of driver
	link    *linkInbox
	failed  error // of the last attempt to open a link; nil after a success
}

// linkInbox is an open link with its inbox.
type linkInbox struct {
	link     broker.Link
	inbox    *inbox
	maxBytes func() int // of a request
}

// New returns the module of a service. It does not connect. Errors: InvalidConfig.
func New(c Config) (*Module, error) {
	if err := modules.CheckName(c.Service.ID); err != nil {
		return nil, err
	}
	if c.Broker == nil || c.Service.Request.Name == "" {
		return nil, errcode.New(errcode.InvalidConfig, "create the tool service %q: a broker and the request queue are required", c.Service.ID)
	}
	m := &Module{config: c, slots: fair.NewSemaphore(cmp.Or(c.Service.MaxConcurrent, defaultConcurrent)), opening: make(chan struct{}, 1)}
	m.slots.LimitQueue(maxWaiting, maxWaiting/2, maxWaiting/4)
	for _, t := range c.Tools {
		made, err := m.MakeTool(t)
		if err != nil {
			return nil, err
		}
		m.tools = append(m.tools, made)
	}
	return m, nil
}

// MakeTool returns a tool that calls the service, without adding it to the module. It is for
// modules whose tools change. Errors: InvalidConfig.
func (m *Module) MakeTool(t Tool) (tool.Tool, error) {
	if err := tool.CheckName(t.Definition.Name); err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "tool of the service %q: %v", m.Name(), err)
	}
	return &serviceTool{module: m, values: t.values(), definition: t.Definition}, nil
}

// GroupID returns the id of the group of a service.
func GroupID(service string) toolgroups.GroupID {
	return toolgroups.GroupID("service/" + service[:min(len(service), 120)])
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.config.Service.ID }

// ToolGroups implements modules.Module: one group with all tools.
func (m *Module) ToolGroups() []toolgroups.Group {
	id := m.config.Service.ID
	g := toolgroups.Group{ID: GroupID(id), Description: "Tools of the service " + id, Tools: m.tools, APIs: make(map[string]string, len(m.tools))}
	for _, t := range m.tools {
		name := t.Definition().Name
		g.APIs[name] = name
	}
	return []toolgroups.Group{g}
}

// Provision implements modules.Provisioner. It acquires the driver, which connects with the first
// call.
func (m *Module) Provision(context.Context) error {
	driver, release, err := m.config.Broker()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.driver, m.release = driver, release
	return nil
}

// Close implements io.Closer. It closes the link and releases the driver.
func (m *Module) Close() error {
	m.mu.Lock()
	l, release := m.link, m.release
	m.link, m.driver, m.release = nil, nil, nil
	m.mu.Unlock()
	var err error
	if l != nil {
		err = l.link.Close()
	}
	if release != nil {
		err = errors.Join(err, release())
	}
	return err
}

func (m *Module) timeout() time.Duration { return cmp.Or(m.config.Service.Timeout, defaultTimeout) }
func (m *Module) maxResponse() int {
	return cmp.Or(m.config.Service.MaxResponseBytes, defaultMaxResponse)
}

// errClosed is the error of a call to a service that has been removed.
var errClosed = errcode.New(errcode.ToolUnavailable, "the tool service is closed; check whether the tool is still available and retry")

// openLink returns the link of the service. The first call opens it.
func (m *Module) openLink(ctx context.Context) (*linkInbox, error) {
	l, _, err := m.currentLink()
	if l != nil || err != nil {
		return l, err
	}
	select {
	case m.opening <- struct{}{}:
		defer func() { <-m.opening }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l, driver, err := m.currentLink()
	if l != nil || err != nil {
		return l, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, broker.ErrUnavailable)
	defer cancel()
	l = &linkInbox{inbox: &inbox{}, maxBytes: driver.MaxBytes}
	s := m.config.Service
	if l.link, err = driver.Open(ctx, broker.Queues{Service: s.ID, Request: s.Request, Response: s.Response}, l.inbox.receive); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.failed = err
		return nil, err
	}
	return l, m.keepLink(l)
}

// openTimeout limits how long a call waits for the connection to a broker.
const openTimeout = 10 * time.Second

// currentLink returns the open link, nil if there is none, and the driver.
func (m *Module) currentLink() (*linkInbox, broker.Driver, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.driver == nil {
		return nil, nil, errClosed
	}
	return m.link, m.driver, nil
}

// keepLink makes l the link of the module, unless the module was closed meanwhile.
func (m *Module) keepLink(l *linkInbox) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.driver == nil {
		return errors.Join(errClosed, l.link.Close())
	}
	m.link, m.failed = l, nil
	return nil
}

// CheckHealth implements modules.HealthChecker. The error is broker.ErrUnavailable while the broker
// cannot be reached, as far as the last call and the connection show.
func (m *Module) CheckHealth() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.link == nil {
		return m.failed
	}
	if l, ok := m.link.link.(broker.ConnectedLink); ok && !l.IsConnected() {
		return broker.ErrUnavailable
	}
	return nil
}
