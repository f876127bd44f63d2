// Package toolbox owns declared tools: those that a configuration makes of
// statements and requests, and the sources they ask. A source is a module that
// brings one group with its tools.
//
//	var pools toolbox.Pools
//	m, err := toolbox.New(toolbox.Config{Source: source, Tools: tools, Pools: &pools, Host: host})
//	err = loader.Load(ctx, m)
//
// Arguments are checked by their parameters, bound to the statement, and never
// change its structure; results are rows as JSON, or what a service answered.
// Loading connects to nothing: a source that cannot be reached makes its calls
// say so, and is tried again. The package reads no file, verifies no token and
// decides no permission (config, authn, gate).
package toolbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config is one source with its tools. Source and Pools are needed.
type Config struct {
	Source config.Source
	Tools  []config.DeclaredTool // of this source, in order
	Host   modules.Host
	Pools  *Pools // shared by all sources of a process, so that they outlive a reload

	// ScopesOf is the auth service whose tokens carry the scopes that tools
	// require; "" is none, and then such tools are refused.
	ScopesOf string
	// Network says what a source of type http may reach; nil is the public
	// addresses.
	Network func() Network
	// CloudSQL connects to an instance, "project:region:instance"; nil is
	// Google's connector, in a build that has it.
	CloudSQL func(ctx context.Context, instance string) (net.Conn, error)
}

// Module is one source. Its methods are safe for concurrent use.
type Module struct {
	config Config
	name   string
	log    *slog.Logger
	tools  []tool.Tool

	mu   sync.Mutex // guards pool
	pool *pool      // from Provision to Close
}

// New makes the module of a source. It reaches nothing. Errors: InvalidConfig.
func New(c Config) (*Module, error) {
	if c.Source.Name == "" || c.Pools == nil {
		return nil, errcode.New(errcode.InvalidConfig, "make a source: it needs a name and pools")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Module{config: c, name: ModuleName(c.Source.Name), log: c.Host.Log}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	for _, t := range c.Tools {
		built, err := m.declare(t)
		if err != nil {
			return nil, errcode.Wrap(errcode.InvalidConfig, err, "tool %q of source %q: %s", t.Name, c.Source.Name, errcode.Message(err))
		}
		m.tools = append(m.tools, built)
	}
	return m, nil
}

// ModuleName gives the name of a source's module, and of the server that roles
// are confined to by it: the source's own if that may name a module, else one
// made of it.
func ModuleName(source string) string {
	if modules.CheckName(source) == nil {
		return source
	}
	fits := func(r rune) rune {
		if r < 0x80 && tool.CheckName(string(r)) == nil {
			return r
		}
		return '-'
	}
	sum := sha256.Sum256([]byte(source))
	return strings.Map(fits, source[:min(len(source), 64)]) + "-" + hex.EncodeToString(sum[:4])
}

// GroupID gives the id of a source's group.
func GroupID(source string) toolgroups.GroupID {
	name := ModuleName(source)
	return toolgroups.GroupID("source/" + name[:min(len(name), 120)])
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.name }

// Groups implements modules.Module: one group with all tools.
func (m *Module) Groups() []toolgroups.Group {
	name := m.config.Source.Name
	return []toolgroups.Group{{ID: GroupID(name), Description: "Tools of the source " + name, Tools: slices.Clone(m.tools)}}
}

// Provision implements modules.Provisioner: it takes the source's pool, which
// connects with the first call.
func (m *Module) Provision(context.Context) error {
	p, err := m.config.Pools.acquire(m.config, m.log)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pool = p
	return nil
}

// Close implements io.Closer: it gives the pool back, which is closed with the
// last source that has it.
func (m *Module) Close() error {
	m.mu.Lock()
	p := m.pool
	m.pool = nil
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	return m.config.Pools.release(p)
}

// acquirePool gives the pool while the module serves.
func (m *Module) acquirePool() (*pool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pool == nil {
		return nil, errcode.New(errcode.ToolUnavailable, "source %s is closed; see whether you still have the tool and call it again", m.config.Source.Name)
	}
	return m.pool, nil
}
