// Package mcpclient owns the client side of the Model Context Protocol: any MCP
// server becomes a module that brings one group with the server's tools.
//
//	m, err := mcp.New(mcp.Config{Name: "fs", Command: mcp.Command{Path: "mcp-server-filesystem"}, Pins: pins})
//	err = loader.Load(ctx, m)
//
// A server is a stranger. Its definitions are in force only as the operator
// accepted them (modules.Pins); its hints count only if it is trusted; what it
// sends is capped, and a server that breaks the protocol loses its connection
// and nothing else. A call that may have acted is never sent twice. The package
// checks no arguments and decides no permission (gate).
package mcpclient

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Module is a module that brings the tools of one server. Its methods are
// safe for concurrent use.
type Module struct {
	config Config
	owner  toolgroups.Owner
	log    *slog.Logger
	link   *reconnector
	unpin  func() // ends watching the pins

	record sync.Mutex // held from reading the record until what it says is in force

	mu             sync.Mutex // guards what follows
	offers         []modules.Pin
	digests        map[string]string      // of offers in force, by their tool
	offeredDigests map[string]string      // of all that this server offered, by their tool; nil before it did
	tools          map[string]*remoteTool // by digest: a definition that stays is the same tool
	listed         bool
}

// New makes a module. It starts nothing. Errors have the code invalid_config.
func New(c Config) (*Module, error) {
	c, err := c.check()
	if err != nil {
		return nil, err
	}
	log := cmp.Or(c.Host.Log, slog.New(slog.DiscardHandler))
	m := &Module{config: c, owner: modules.Owner(c.Name), log: log, tools: map[string]*remoteTool{}, unpin: func() {}}
	m.link = newLink(c, log, m.updateTools)
	if !c.DisablePinning {
		m.unpin = c.Pins.Watch(m.owner, m.changed)
	}
	return m, nil
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.config.Name }

// CachedGroups implements modules.Lazy: what was accepted is known without a
// connection. False for a server that was never seen.
func (m *Module) CachedGroups() ([]toolgroups.Group, bool) {
	if !m.config.DisablePinning {
		if p, err := m.config.Pins.Get(context.Background(), m.owner); err == nil && p.Seen {
			return m.groups(p.Active), true
		}
	}
	return m.groups(nil), m.config.NoConnect
}

// Provision implements modules.Provisioner: it connects and lists.
func (m *Module) Provision(ctx context.Context) error {
	if m.config.NoConnect {
		return errcode.New(errcode.ToolUnavailable, "MCP server %q is not reached by a command that only looks", m.config.Name)
	}
	_, err := m.link.ready(ctx)
	return err
}

// Groups implements modules.Module. A record that cannot be read brings no
// tool.
func (m *Module) Groups() []toolgroups.Group {
	if m.config.DisablePinning {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.build(m.offers)
	}
	m.record.Lock()
	defer m.record.Unlock()
	p, err := m.config.Pins.Get(context.Background(), m.owner)
	force := m.offered(p.Active)
	m.setActive(force)
	if err != nil {
		m.log.Error("what is accepted of an MCP server cannot be read", "error", err)
	}
	return m.groups(force)
}

// offered gives those of pins that this server offered, if it did: the record
// may be of an offer that another module of the same name had, beside this one.
func (m *Module) offered(pins []modules.Pin) []modules.Pin {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offeredDigests == nil {
		return pins
	}
	return slices.DeleteFunc(slices.Clone(pins), func(p modules.Pin) bool { return m.offeredDigests[p.Tool] != p.Digest() })
}

// Close implements io.Closer.
func (m *Module) Close() error {
	m.unpin()
	m.link.close()
	return nil
}

// updateTools takes what the server offers.
func (m *Module) updateTools(ctx context.Context, offered []modules.Pin) error {
	m.record.Lock()
	defer m.record.Unlock()
	m.noteOffered(offered)
	force := offered
	if !m.config.DisablePinning {
		p, err := m.config.Pins.Update(ctx, m.owner, *m.config.Prefix, offered)
		if err != nil {
			return err
		}
		if len(p.Pending) > 0 {
			m.log.Warn("definitions of an MCP server are in quarantine; see \"rolecall tool list --quarantined\"", "tools", len(p.Pending))
		}
		force = p.Active
	}
	if m.setActive(force) {
		m.changed()
	}
	return nil
}

// noteOffered notes what the server offers.
func (m *Module) noteOffered(offered []modules.Pin) {
	own := digestsOf(offered)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offeredDigests = own
}

func digestsOf(pins []modules.Pin) map[string]string {
	digests := make(map[string]string, len(pins))
	for _, p := range pins {
		digests[p.Tool] = p.Digest()
	}
	return digests
}

// setActive notes what is in force and says whether that is something else than
// before.
func (m *Module) setActive(pins []modules.Pin) (changed bool) {
	digests := digestsOf(pins)
	m.mu.Lock()
	defer m.mu.Unlock()
	changed = !m.listed || len(digests) != len(m.digests)
	for name, digest := range digests {
		changed = changed || m.digests[name] != digest
	}
	m.offers, m.digests, m.listed = pins, digests, true
	return changed
}

// isActive says whether the definition of this digest is in force, as far as the
// server has told.
func (m *Module) isActive(name, digest string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.digests[name] == digest
}

func (m *Module) changed() {
	if m.config.Host.Changed != nil {
		m.config.Host.Changed()
	}
}

func (m *Module) groups(pins []modules.Pin) []toolgroups.Group {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.build(pins)
}

// build wants mu held. It makes the group of what is in force.
func (m *Module) build(pins []modules.Pin) []toolgroups.Group {
	g := toolgroups.Group{ID: toolgroups.GroupID(m.config.Name), Description: m.config.Description}
	tools := make(map[string]*remoteTool, len(pins))
	for _, p := range pins {
		t, err := m.remote(p)
		if err != nil {
			m.log.Warn("a tool of an MCP server is left out", "tool", *m.config.Prefix+p.Tool, "reason", err)
			continue
		}
		tools[t.digest] = t
		g.Tools = append(g.Tools, t)
	}
	m.tools = tools
	return []toolgroups.Group{g}
}

// remote wants mu held. What is on record is checked as what a server says.
func (m *Module) remote(p modules.Pin) (*remoteTool, error) {
	d := tool.Definition{Name: *m.config.Prefix + p.Tool, Description: p.Description, Input: p.Input, Effect: effectOf(m.config.Trusted, p.Annotations)}
	r := &remoteTool{module: m, pin: p, digest: p.Digest()}
	if p.Kind != "" {
		e, ok := findExtra(p.Tool)
		if p.Kind != kindExtra || !ok {
			return nil, errcode.New(errcode.InvalidGroupDef, "this version knows no such tool")
		}
		r.extra, d.Description, d.Input, d.Effect = &e, e.description, []byte(e.input), extraEffect(m.config.Trusted)
	}
	if m.config.NameTaken != nil && m.config.NameTaken(d.Name) {
		return nil, errcode.New(errcode.DuplicateToolName, "the name belongs to somebody else")
	}
	if err := tool.CheckName(d.Name); err != nil {
		return nil, err
	}
	if before, ok := m.tools[r.digest]; ok {
		return before, nil
	}
	if _, err := tool.Compile(d.Input); err != nil {
		return nil, err
	}
	r.definition = d
	return r, nil
}

// extraEffect is what reading and listing does, if the server is trusted to
// keep to that.
func extraEffect(trusted bool) tool.Effect {
	if trusted {
		return tool.ReadOnly
	}
	return tool.Mutating
}
