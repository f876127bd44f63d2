// Package toolbox runs declared tools: tools that a configuration defines as SQL
// statements or HTTP requests. Each source, a database or a service, is a module with
// one group of tools.
//
//	var pools toolbox.Pools
//	m, err := toolbox.New(toolbox.Config{Source: source, Tools: tools, Pools: &pools, Host: host})
//	err = loader.LoadModule(ctx, m)
//
// Arguments are checked by package parameter, and bound to the statement or escaped, so
// they never change its structure. Results are rows as JSON, or the response of a
// service. Loading does not connect; while a source is unreachable its calls fail with
// tool_unavailable, and later calls retry with backoff.
//
// The package does not read files, verify tokens or decide permissions: packages
// toolboxfile, internal/oidc and gate do.
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

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config describes one source with its tools. Source and Pools are required.
type Config struct {
	Source toolboxfile.Source
	Tools  []toolboxfile.DeclaredTool // of this source, in order
	Host   modules.ModuleHost
	Pools  *Pools // shared by all sources of a process, so that connections survive a reload

	// ScopesOf is the auth service whose tokens carry the scopes that tools
	// require. If it is "", New rejects such tools.
	ScopesOf string
	// Network returns what a source of type http may dial; nil is public addresses.
	Network func() Network
	// CloudSQL connects to an instance, "project:region:instance"; nil is Google's
	// connector, in a build that includes it.
	CloudSQL func(ctx context.Context, instance string) (net.Conn, error)
}

// Module is one source with its tools. It is safe for concurrent use.
type Module struct {
	config Config
	name   string
	log    *slog.Logger
	tools  []tool.Tool

	mu   sync.Mutex // guards pool
	pool *pool      // from Provision to Close
}

// New returns the module of a source. It does not connect. Errors: InvalidConfig.
func New(c Config) (*Module, error) {
	if c.Source.Name == "" || c.Pools == nil {
		return nil, errcode.New(errcode.InvalidConfig, "create a source: name and pools are required")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Module{config: c, name: ModuleName(c.Source.Name), log: c.Host.Log}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.tools = make([]tool.Tool, 0, len(c.Tools))
	for i := range c.Tools {
		t := &c.Tools[i]
		built, err := m.declare(t)
		if err != nil {
			return nil, errcode.Wrap(errcode.InvalidConfig, err, "tool %q of source %q: %s", t.Name, c.Source.Name, errcode.Message(err))
		}
		m.tools = append(m.tools, built)
	}
	return m, nil
}

// ModuleName returns the name of a source's module, which is also the server name that
// a role may be restricted to. It is the source's own name if that is valid, else one
// derived from it with a hash.
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

// GroupID returns the id of a source's group.
func GroupID(source string) toolgroups.GroupID {
	name := ModuleName(source)
	return toolgroups.GroupID("source/" + name[:min(len(name), 120)])
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.name }

// ToolGroups implements modules.Module: one group with all tools.
func (m *Module) ToolGroups() []toolgroups.Group {
	name := m.config.Source.Name
	g := toolgroups.Group{ID: GroupID(name), Description: "Tools of the source " + name, Tools: slices.Clone(m.tools), APIs: make(map[string]string, len(m.tools))}
	for _, t := range m.tools {
		api := t.Definition().Name
		g.APIs[api] = api
	}
	return []toolgroups.Group{g}
}

// Provision implements modules.Provisioner. It acquires the source's pool, which
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

// Close implements io.Closer. It releases the pool, which closes after its last use.
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

// acquirePool returns the pool between Provision and Close.
func (m *Module) acquirePool() (*pool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pool == nil {
		return nil, errcode.New(errcode.ToolUnavailable, "source %s is closed; check whether the tool is still available and retry", m.config.Source.Name)
	}
	return m.pool, nil
}
