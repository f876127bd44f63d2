// Package mcpclient is a client of the Model Context Protocol
// (https://modelcontextprotocol.io). It makes any MCP server a module with one tool group. The
// group has the server's tools, and tools that list and read its resources and prompts.
// Questions of the server during a call go to the caller (tool.RequestInput).
//
//	m, err := mcpclient.New(mcpclient.Config{Name: "fs", Command: mcpclient.Command{Path: "mcp-server-filesystem"}, Pins: pins})
//	err = loader.LoadModule(ctx, m)
//
// Servers are untrusted. Only definitions that the operator has accepted are active
// (modules.PinStore), and hints count only if the server is configured as trusted. What a
// server sends is limited in size and rate. A server that violates the protocol loses
// its connection; other modules are not affected. A call that may have had an effect is
// never sent twice.
//
// A server over HTTP may require OAuth (package mcpauth). With PerCaller, each caller has a
// connection of its own with its own token.
//
// The package does not check arguments or permissions; package gate does.
package mcpclient

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/failurelog"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Module is a module with the tools of one server. Its methods are safe for concurrent
// use.
type Module struct {
	config      Config
	owner       toolgroups.GroupOwner
	log         *slog.Logger
	reconnector *reconnector
	callers     *callerConns // of Config.Auth with PerCaller
	stopWatch   func()       // stops watching the pins
	stopLogins  func()       // stops watching the logins

	pinsMu sync.Mutex // held from reading the pins until setActive, so that no older record wins

	mu             sync.Mutex // guards what follows
	active         []modules.ToolPin
	activeDigests  map[string]string      // of active, by tool
	offeredDigests map[string]string      // of the server's last offer, by tool; nil before the first
	tools          map[string]*remoteTool // by digest: an unchanged definition keeps its tool
	named          []tool.Tool            // of Config.NamedTools, in order, as registered
	activeKnown    bool                   // setActive was called
}

// New returns a module. It does not contact the server. Errors have the code
// invalid_config.
func New(c Config) (*Module, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	log := failurelog.Bound(c.Host.Log)
	m := &Module{config: c, owner: modules.OwnerOf(c.Name), log: log, tools: map[string]*remoteTool{}, stopWatch: func() {}, stopLogins: func() {}}
	m.reconnector = newReconnector(c, log, m.updateTools)
	m.callers = newCallerConns(c, log)
	if c.Auth != nil {
		m.stopLogins = c.Auth.WatchLogins(m.loginChanged)
	}
	if !c.DisablePinning {
		m.stopWatch = c.Pins.WatchOwner(m.owner, m.notifyChanged)
	}
	return m, nil
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.config.Name }

// CachedGroups implements modules.LazyModule with the accepted definitions. It reports false
// for a server that was never contacted, unless NoConnect is set.
func (m *Module) CachedGroups() ([]toolgroups.Group, bool) {
	if !m.config.DisablePinning {
		if p, err := m.config.Pins.ReadPins(context.Background(), m.owner); err == nil && p.Seen {
			return m.groups(p.Active), true
		}
	}
	return m.groups(nil), m.config.NoConnect
}

// Provision implements modules.Provisioner: it connects and lists the tools.
func (m *Module) Provision(ctx context.Context) error {
	if m.config.NoConnect {
		return errcode.New(errcode.ToolUnavailable, "MCP server %q is not contacted by this command", m.config.Name)
	}
	if m.config.Auth != nil && m.config.Auth.NeedsLogin(ctx, mcpauth.Operator) { // its tools are listed when the operator has logged in
		m.log.Warn("MCP server needs a login of the operator; see \"rolecall mcp login\"", "server", m.config.Name)
		return nil
	}
	_, err := m.reconnector.connection(ctx)
	return err
}

// ToolGroups implements modules.Module. If the pins cannot be read, no tool is active.
func (m *Module) ToolGroups() []toolgroups.Group {
	if m.config.DisablePinning {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.buildGroup(m.active)
	}
	m.pinsMu.Lock()
	defer m.pinsMu.Unlock()
	p, err := m.config.Pins.ReadPins(context.Background(), m.owner)
	active := m.onlyOffered(p.Active)
	m.setActive(active)
	if err != nil {
		m.log.Error("accepted tools of MCP server not read", "error", err)
	}
	return m.groups(active)
}

// onlyOffered returns the pins that this server has offered; all of them before its first
// offer. The record may be of another module of the same name, which is replaced by this
// one or staged to replace it.
func (m *Module) onlyOffered(pins []modules.ToolPin) []modules.ToolPin {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offeredDigests == nil {
		return pins
	}
	return slices.DeleteFunc(slices.Clone(pins), func(p modules.ToolPin) bool { return m.offeredDigests[p.Tool] != p.Digest() })
}

// Close implements io.Closer.
func (m *Module) Close() error {
	m.stopWatch()
	m.stopLogins()
	m.callers.close()
	m.reconnector.close()
	return nil
}

// updateTools records the definitions that the server offers and activates the accepted
// definitions.
func (m *Module) updateTools(ctx context.Context, offered []modules.ToolPin) error {
	m.pinsMu.Lock()
	defer m.pinsMu.Unlock()
	m.setOffered(offered)
	active := offered
	if !m.config.DisablePinning {
		p, err := m.config.Pins.UpdateTools(ctx, m.owner, *m.config.Prefix, offered)
		if err != nil {
			return err
		}
		if len(p.Pending) > 0 {
			m.log.Warn("MCP server tools in quarantine; see \"rolecall tool list --quarantined\"", "tools", len(p.Pending))
		}
		active = p.Active
	}
	if m.setActive(active) {
		m.notifyChanged()
	}
	return nil
}

func (m *Module) setOffered(offered []modules.ToolPin) {
	digests := digestsOf(offered)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offeredDigests = digests
}

// digestsOf returns the digests of pins by tool.
func digestsOf(pins []modules.ToolPin) map[string]string {
	digests := make(map[string]string, len(pins))
	for _, p := range pins {
		digests[p.Tool] = p.Digest()
	}
	return digests
}

// setActive sets the active definitions and reports whether they have changed.
func (m *Module) setActive(pins []modules.ToolPin) (changed bool) {
	digests := digestsOf(pins)
	m.mu.Lock()
	defer m.mu.Unlock()
	changed = !m.activeKnown || len(digests) != len(m.activeDigests)
	for name, digest := range digests {
		changed = changed || m.activeDigests[name] != digest
	}
	m.active, m.activeDigests, m.activeKnown = pins, digests, true
	return changed
}

// isActive reports whether the definition with this digest is active.
func (m *Module) isActive(name, digest string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.activeDigests[name] == digest
}

func (m *Module) notifyChanged() {
	if m.config.Host.Changed != nil {
		m.config.Host.Changed()
	}
}

func (m *Module) groups(pins []modules.ToolPin) []toolgroups.Group {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buildGroup(pins)
}

// buildGroup returns the group of these definitions, and the group of the named tools. A tool that
// cannot be offered is left out and logged. It must be called with mu held.
func (m *Module) buildGroup(pins []modules.ToolPin) []toolgroups.Group {
	g := toolgroups.Group{ID: toolgroups.GroupID(m.config.Name), Description: m.config.Description, APIs: map[string]string{}, OpenAPIs: true}
	tools := make(map[string]*remoteTool, len(pins))
	for _, p := range pins {
		if !isTool(p) {
			continue
		}
		t, err := m.newTool(p)
		if err != nil {
			m.log.Warn("MCP server tool left out", "tool", *m.config.Prefix+p.Tool, "reason", err)
			continue
		}
		tools[t.digest] = t
		g.Tools, g.APIs[t.definition.Name] = append(g.Tools, t), p.Tool
	}
	m.tools = tools
	if len(m.config.NamedTools) == 0 {
		return []toolgroups.Group{g}
	}
	m.named = m.buildNamedTools(g.Tools)
	return []toolgroups.Group{g, {ID: NamedGroup(m.config.Name), Description: "Declared tools of the MCP server " + m.config.Name, Tools: m.named}}
}

// newTool returns the tool of a definition: the one it had before, or a new one. Stored
// definitions are checked like definitions that come from a server. It must be called
// with mu held.
func (m *Module) newTool(p modules.ToolPin) (*remoteTool, error) {
	d := tool.Definition{Name: *m.config.Prefix + p.Tool, Description: p.Description, Input: p.Input, Effect: effectOf(m.config.Trusted, p.Annotations), Listing: p.Listing, Asks: tool.AsksMidway}
	r := &remoteTool{module: m, pin: p, digest: p.Digest()}
	if p.Kind != "" {
		e, ok := findResourceTool(p.Tool)
		if p.Kind != kindResource || !ok {
			return nil, errcode.New(errcode.InvalidGroupDef, "this version has no such tool")
		}
		r.resource, d.Description, d.Input, d.Effect = &e, e.description, e.acceptedInput(), resourceEffect(m.config.Trusted)
		d.Catalog, d.Shown, d.Asks = catalog{m, e.name}, []byte(e.input), tool.AsksNothing
	}
	if m.config.NameTaken != nil && m.config.NameTaken(d.Name) || m.isNamed(d.Name) {
		return nil, errcode.New(errcode.DuplicateToolName, "the name belongs to another owner")
	}
	if err := tool.CheckName(d.Name); err != nil {
		return nil, err
	}
	if before, ok := m.tools[r.digest]; ok {
		return before, nil
	}
	if _, err := argschema.Compile(d.Input); err != nil {
		return nil, err
	}
	r.definition = m.config.Labels.Apply(p.Tool, d)
	return r, nil
}

// resourceEffect returns the effect of tools that read and list. An untrusted server may
// do anything in response.
func resourceEffect(trusted bool) tool.Effect {
	if trusted {
		return tool.ReadOnly
	}
	return tool.Mutating
}
