package announced

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Module is one service that announces itself, with one group, toolservice.GroupID. It is safe
// for concurrent use.
type Module struct {
	registry  *Registry
	id        string
	owner     toolgroups.GroupOwner
	caller    *toolservice.Module // calls the service
	stopWatch func()              // stops watching the pins

	mu         sync.Mutex // guards what follows
	instances  map[string]instance
	forgotten  time.Time                 // what instances said until then is not believed, if they are not known
	offeredSum [sha256.Size]byte         // of the tools of the last offer, as announced
	offered    map[string]string         // digests of the last offer, by tool; nil before the first
	tools      map[string]*announcedTool // by digest: an unchanged definition keeps its tool
	leftOut    bool                      // a tool was left out, since its name belongs to another owner
}

// instance is one process of a service.
type instance struct {
	started, announcedAt time.Time // as it says itself
	ends                 time.Time // of its lease, by the clock of this process
	gone                 bool      // it has said that it stops
}

// newModule returns the module of a service without tools.
func newModule(r *Registry, service string, caller *toolservice.Module) *Module {
	m := &Module{registry: r, id: service, owner: modules.OwnerOf(service), caller: caller, instances: map[string]instance{}, tools: map[string]*announcedTool{}}
	m.stopWatch = r.config.Pins.WatchOwner(m.owner, func() { r.config.Changed(service) })
	return m
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.id }

// Provision implements modules.Provisioner.
func (m *Module) Provision(ctx context.Context) error { return m.caller.Provision(ctx) }

// CheckHealth implements modules.HealthChecker. A lease that has ended is no failure of rolecall.
func (m *Module) CheckHealth() error { return m.caller.CheckHealth() }

// Close implements io.Closer.
func (m *Module) Close() error {
	m.stopWatch()
	return m.caller.Close()
}

// apply applies a verified announcement.
func (m *Module) apply(ctx context.Context, a protocol.Announcement, admission Admission) error {
	news, leads := m.renew(a, time.Now())
	if !news || !leads || a.End {
		return nil
	}
	return m.offer(ctx, a, admission)
}

// renew renews or ends the lease of an instance. news is false for an announcement that is not
// later than the last one of its instance, such as a copy of it. leads reports whether the
// instance determines the tools. This is the instance that was started last.
func (m *Module) renew(a protocol.Announcement, now time.Time) (news, leads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.instances[a.Instance]
	if known && !a.Time.After(before.announcedAt) || !known && !a.Time.After(m.forgotten) {
		return false, false
	}
	if !known && len(m.instances) >= maxInstances {
		m.forgetOldest()
	}
	ends := now.Add(a.LeaseTime())
	if a.End {
		ends = now
	}
	m.instances[a.Instance] = instance{started: a.Started, announcedAt: a.Time, ends: ends, gone: a.End}
	for id, other := range m.instances {
		if id != a.Instance && !other.gone && now.Before(other.ends) && other.started.After(a.Started) {
			return true, false
		}
	}
	return true, true
}

// forgetOldest forgets the instance that has been silent the longest. It must be called with mu held.
func (m *Module) forgetOldest() {
	oldest := ""
	for id, i := range m.instances {
		if oldest == "" || i.announcedAt.Before(m.instances[oldest].announcedAt) {
			oldest = id
		}
	}
	m.forgotten = m.instances[oldest].announcedAt
	delete(m.instances, oldest)
}

// isAlive reports whether a lease of the service has not ended.
func (m *Module) isAlive(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.instances {
		if !i.gone && now.Before(i.ends) {
			return true
		}
	}
	return false
}

// offer records the tools of an announcement, if they differ from the tools before. It activates
// accepted tools.
func (m *Module) offer(ctx context.Context, a protocol.Announcement, admission Admission) error {
	text, _ := json.Marshal(a.Tools) // it was JSON
	said := sha256.Sum256(text)
	if same, leftOut := m.compareOffer(said); same {
		if leftOut { // the other owner may have gone
			m.registry.config.Changed(m.id)
		}
		return nil
	}
	pins, digests := m.pinsOf(a.Tools), map[string]string{}
	for _, p := range pins {
		digests[p.Tool] = p.Digest()
	}
	record := m.registry.config.Pins.QuarantineTools
	if admission == Accept {
		record = m.registry.config.Pins.UpdateTools
	}
	p, err := record(ctx, m.owner, "", pins)
	if err != nil {
		return err
	}
	if len(p.Pending) > 0 {
		m.registry.config.Log.Warn("tools of an announced service in quarantine; see \"rolecall tool list --quarantined\"", "service", m.id, "tools", len(p.Pending))
	}
	m.mu.Lock()
	m.offeredSum, m.offered = said, digests
	m.mu.Unlock()
	m.registry.config.Changed(m.id)
	return nil
}

// compareOffer reports whether the tools are the same as in the last offer, and whether one of them was
// left out.
func (m *Module) compareOffer(said [sha256.Size]byte) (same, leftOut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.offered != nil && m.offeredSum == said, m.leftOut
}

// pinsOf returns the valid definitions of an announcement. It logs the first of the others.
func (m *Module) pinsOf(tools []protocol.AnnouncedTool) []modules.ToolPin {
	count := 0
	pins := pinsOf(tools, func(name string, err error) {
		if count++; count == 1 {
			m.registry.config.Log.Warn("announced tool left out", "service", m.id, "tool", name, "reason", err)
		}
	})
	if count > 1 {
		m.registry.config.Log.Warn("further announced tools left out", "service", m.id, "tools", count-1)
	}
	return pins
}

// ToolGroups implements modules.Module. If the pins cannot be read, no tool is active.
func (m *Module) ToolGroups() []toolgroups.Group {
	p, err := m.registry.config.Pins.ReadPins(context.Background(), m.owner)
	if err != nil {
		m.registry.config.Log.Error("accepted tools of an announced service not read", "service", m.id, "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := toolgroups.Group{
		ID: toolservice.GroupID(m.id), Description: "Tools of the service " + m.id + ", which announces itself",
		APIs: map[string]string{},
	}
	tools, leftOut := map[string]*announcedTool{}, false
	for _, pin := range m.onlyOffered(p.Active) {
		t, err := m.newTool(pin)
		if err != nil {
			if !leftOut && !m.leftOut {
				m.registry.config.Log.Warn("announced tool left out", "service", m.id, "tool", pin.Tool, "reason", err)
			}
			leftOut = true
			continue
		}
		tools[t.digest] = t
		g.Tools, g.APIs[pin.Tool] = append(g.Tools, t), pin.Tool
	}
	m.tools, m.leftOut = tools, leftOut
	return []toolgroups.Group{g}
}

// onlyOffered returns the pins that the service has offered; all of them before its first offer
// to this process. It must be called with mu held.
func (m *Module) onlyOffered(pins []modules.ToolPin) []modules.ToolPin {
	if m.offered == nil {
		return pins
	}
	return slices.DeleteFunc(slices.Clone(pins), func(p modules.ToolPin) bool { return m.offered[p.Tool] != p.Digest() })
}

// announcedTool is one tool of a service with one definition.
type announcedTool struct {
	tool.Tool
	module *Module
	name   string
	digest string
}

// newTool returns the tool of an accepted definition: the one it had before, or a new one. It must
// be called with mu held.
func (m *Module) newTool(p modules.ToolPin) (*announcedTool, error) {
	if err := checkPin(p); err != nil {
		return nil, err
	}
	if m.registry.config.NameTaken(m.id, p.Tool) {
		return nil, errcode.New(errcode.DuplicateToolName, "the name belongs to another owner")
	}
	digest := p.Digest()
	if before, ok := m.tools[digest]; ok {
		return before, nil
	}
	made, err := m.caller.MakeTool(toolservice.Tool{Definition: tool.Definition{Name: p.Tool, Description: p.Description, Input: p.Input, Effect: tool.Mutating}})
	if err != nil {
		return nil, err
	}
	return &announcedTool{Tool: made, module: m, name: p.Tool, digest: digest}, nil
}

// Call implements tool.Tool. It calls the service only while its lease lasts and it offers the
// accepted definition.
func (t *announcedTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := t.module.checkCall(t); err != nil {
		return tool.Failure(t.name, err), nil
	}
	return t.Tool.Call(ctx, c)
}

// checkCall returns why a tool cannot be called now.
func (m *Module) checkCall(t *announcedTool) error {
	if !m.isAlive(time.Now()) {
		return errcode.New(errcode.ToolUnavailable, "%s did not run: the service %q does not announce itself now; it may be called again when the service has returned", t.name, m.id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offered[t.name] != t.digest {
		return errcode.New(errcode.ToolUnavailable, "%s did not run: the service %q has changed its definition, and the operator has to accept the new one", t.name, m.id)
	}
	return nil
}
