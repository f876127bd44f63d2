package toolgroups

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// Manager is the registry: the ToolGroupManager of seed 002. Reading is
// wait-free through Snapshot; changes are serialised. All methods are safe
// for concurrent use.
type Manager struct {
	now      func() time.Time
	reserved map[GroupID]bool
	snapshot atomic.Pointer[Snapshot]

	mu       sync.Mutex // serialises changes; guards what follows
	watchers []func(changed []GroupID)
	free     []uint32 // indexes no current view holds
	width    uint32   // indexes handed out so far
}

// NewManager makes an empty registry in which only Builtin may register the
// reserved ids.
func NewManager(reserved ...GroupID) *Manager {
	m := &Manager{now: time.Now, reserved: make(map[GroupID]bool, len(reserved))}
	for _, id := range reserved {
		m.reserved[id] = true
	}
	m.snapshot.Store(&Snapshot{})
	return m
}

// Snapshot gives the registry as it is now.
func (m *Manager) Snapshot() *Snapshot { return m.snapshot.Load() }

// Watch has fn called with the ids of changed groups after each change is
// published and before the call that made it returns; fn must not change the
// registry. Call it before the first change that matters.
func (m *Manager) Watch(fn func(changed []GroupID)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers = append(m.watchers, fn)
}

// Register adds a group, or replaces, atomically, the one the same owner has
// under this id; that is the Warning DuplicateGroupID.
//
// Errors: ReservedGroupID, DuplicateGroupID (another owner's id),
// InvalidGroupDef, DuplicateToolName.
func (m *Manager) Register(owner Owner, g Group) (Warning, error) {
	if m.reserved[g.ID] && owner != Builtin {
		return "", errcode.New(errcode.ReservedGroupID, "register tool group %q for %s: the id belongs to the runtime; choose another", g.ID, owner)
	}
	handles, err := m.newHandles(owner, g)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, replaced := m.Snapshot().groups.get(string(g.ID))
	if replaced && before.Owner != owner {
		return "", errcode.New(errcode.DuplicateGroupID, "register tool group %q for %s: it belongs to %s", g.ID, owner, before.Owner)
	}
	if err := m.publish(before, owner, g, handles, m.Snapshot().resolveRefs(g.Refs)); err != nil {
		return "", err
	}
	if replaced {
		return errcode.DuplicateGroupID, nil
	}
	return "", nil
}

// publish publishes a group with its handles in the place of before.
func (m *Manager) publish(before *group, owner Owner, g Group, handles []*Handle, refs []ref) error {
	if err := m.Snapshot().checkNames(g.ID, handles); err != nil {
		return err
	}
	m.replace(before, &group{
		Info:  Info{ID: g.ID, Description: g.Description, Owner: owner, Reserved: m.reserved[g.ID], RegisteredAt: m.now().UTC()},
		tools: handles, refs: refs, prompts: slices.Clone(g.Prompts),
	})
	return nil
}

// Unregister removes a group with all its tools.
//
// Errors: CannotUnregisterReserved; GroupNotFound, also for another owner's.
func (m *Manager) Unregister(owner Owner, id GroupID) error {
	if m.reserved[id] {
		return errcode.New(errcode.CannotUnregisterReserved, "unregister tool group %q: built-in groups stay", id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.Snapshot().groups.get(string(id))
	if !ok || before.Owner != owner {
		return errcode.New(errcode.GroupNotFound, "unregister tool group %q: %s has no group of this id", id, owner)
	}
	m.replace(before, nil)
	return nil
}

// Update replaces the tools of a group, keeping its description, references and
// prompts. Errors: GroupNotFound, InvalidGroupDef, DuplicateToolName.
func (m *Manager) Update(owner Owner, id GroupID, tools []tool.Tool) error {
	handles, err := m.newHandles(owner, Group{ID: id, Tools: tools})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, ok := m.Snapshot().groups.get(string(id))
	if !ok || g.Owner != owner {
		return errcode.New(errcode.GroupNotFound, "update tool group %q: %s has no group of this id", id, owner)
	}
	return m.publish(g, owner, Group{ID: id, Description: g.Description, Prompts: g.prompts}, handles, g.refs)
}

// WaitIdle returns when the change that is under way, if there is one, is
// published and its watchers were told: who met a new Snapshot beside an older
// View finds both of one age after that. A watcher must not call it.
func (m *Manager) WaitIdle() {
	m.mu.Lock()
	defer m.mu.Unlock()
}

// replace publishes the registry with after in the place of before, either of
// which may be nil, and tells the watchers. Indexes of before are free only
// then: no view that anybody asks knows them any more.
func (m *Manager) replace(before, after *group) {
	old := m.Snapshot()
	next := old.with(before, after)
	if after != nil {
		for _, h := range after.tools {
			h.index, h.since = m.index(), next.revision
		}
	}
	next.width = m.width
	m.snapshot.Store(next)
	changed := next.affected(before, after)
	for _, watch := range m.watchers {
		watch(changed)
	}
	if before != nil {
		for _, h := range before.tools {
			m.free = append(m.free, h.index)
		}
	}
}

func (m *Manager) index() uint32 {
	if n := len(m.free); n > 0 {
		i := m.free[n-1]
		m.free = m.free[:n-1]
		return i
	}
	m.width++
	return m.width - 1
}

// newHandles checks a group's definition and compiles its schemas.
func (m *Manager) newHandles(owner Owner, g Group) ([]*Handle, error) {
	if owner == "" {
		return nil, errcode.New(errcode.InvalidGroupDef, "register tool group %q: it needs an owner", g.ID)
	}
	if err := CheckID(g.ID); err != nil {
		return nil, errcode.Wrap(errcode.InvalidGroupDef, err, "register tool group for %s: %s", owner, errcode.Message(err))
	}
	seen := make(map[string]bool, len(g.Tools))
	handles, known := make([]*Handle, 0, len(g.Tools)), m.Snapshot()
	for i, t := range g.Tools {
		h, err := known.newHandle(owner, g.ID, t)
		if err != nil {
			return nil, errcode.Wrap(errcode.InvalidGroupDef, err, "register tool group %q: tool %d: %s", g.ID, i, errcode.Message(err))
		}
		if seen[h.Definition.Name] {
			return nil, errcode.New(errcode.DuplicateToolName, "register tool group %q: it has two tools named %q", g.ID, h.Definition.Name)
		}
		seen[h.Definition.Name] = true
		handles = append(handles, h)
	}
	return handles, nil
}

// newHandle makes the handle of a tool. A schema that a tool of the same name has
// already is not compiled again.
func (s *Snapshot) newHandle(owner Owner, id GroupID, t tool.Tool) (*Handle, error) {
	if t == nil {
		return nil, errcode.New(errcode.InvalidGroupDef, "there is no tool")
	}
	d := t.Definition()
	if err := tool.CheckName(d.Name); err != nil {
		return nil, errcode.New(errcode.InvalidGroupDef, "%v", err)
	}
	if !d.Effect.Valid() {
		return nil, errcode.New(errcode.InvalidGroupDef, "effect %d of %q is none of Mutating, Idempotent and ReadOnly", d.Effect, d.Name)
	}
	var schema *tool.Schema
	if old, ok := s.tools.get(d.Name); ok && bytes.Equal(old.Definition.Input, d.Input) {
		schema = old.Schema
	} else {
		var err error
		if schema, err = tool.SchemaOf(t, d); err != nil {
			return nil, errcode.Wrap(errcode.InvalidGroupDef, err, "input schema of %q: %v", d.Name, err)
		}
	}
	d.Input, d.States = bytes.Clone(d.Input), slices.Clone(d.States)
	return &Handle{Tool: t, Definition: d, Schema: schema, Group: id, Owner: owner}, nil
}
