package toolgroups

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/tool"
)

// Manager is the registry of tool groups. Readers take a Snapshot, which never
// blocks. Changes are serialized. All methods are safe for concurrent use.
type Manager struct {
	now      func() time.Time
	reserved map[GroupID]bool
	snapshot atomic.Pointer[Snapshot]

	mu       sync.Mutex // held during a change, including its watchers; guards the fields below
	watchers []func(changed []GroupID)
	free     []uint32 // indexes of removed Handles, to be used again
	width    uint32   // number of indexes in use or free
}

// NewManager returns an empty registry. Only the owner Builtin may register the
// reserved ids.
func NewManager(reserved ...GroupID) *Manager {
	m := &Manager{now: time.Now, reserved: make(map[GroupID]bool, len(reserved))}
	for _, id := range reserved {
		m.reserved[id] = true
	}
	m.snapshot.Store(&Snapshot{})
	return m
}

// Snapshot returns the current state of the registry. It does not block.
func (m *Manager) Snapshot() *Snapshot { return m.snapshot.Load() }

// Watch registers fn. It is called after each change of the registry with the ids of
// the changed groups, including toolsets that reference one of their tools. The new
// Snapshot is published before fn is called, and the call that made the change
// returns after fn has returned. fn must not change the registry and must not call
// WaitIdle. Earlier changes are not reported.
func (m *Manager) Watch(fn func(changed []GroupID)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers = append(m.watchers, fn)
}

// RegisterGroup adds a group. If owner has a group with this id already, Register replaces
// it atomically and returns the Warning DuplicateGroupID. It copies the definitions
// of the tools. On an error nothing has changed.
//
// Errors have one of these codes:
//   - ReservedGroupID: the id is reserved and owner is not Builtin.
//   - DuplicateGroupID: the id belongs to another owner.
//   - DuplicateToolName: another group has a tool of this name, or the group has two.
//   - InvalidGroupDef: the id, the owner, a tool's name, effect or schema is invalid.
func (m *Manager) RegisterGroup(owner Owner, g Group) (Warning, error) {
	if m.reserved[g.ID] && owner != Builtin {
		return "", errcode.New(errcode.ReservedGroupID, "register tool group %q for %s: the id is reserved; choose another", g.ID, owner)
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

// publish replaces the group before, which may be nil, by g with the given handles
// and refs. It must be called with mu held.
func (m *Manager) publish(before *group, owner Owner, g Group, handles []*Handle, refs []toolRef) error {
	if err := m.Snapshot().checkNames(g.ID, handles); err != nil {
		return err
	}
	m.replace(before, &group{
		GroupInfo: GroupInfo{ID: g.ID, Description: g.Description, Owner: owner, Reserved: m.reserved[g.ID], RegisteredAt: m.now().UTC()},
		tools:     handles, refs: refs, prompts: slices.Clone(g.Prompts),
	})
	return nil
}

// UnregisterGroup removes a group and all of its tools. The error has the code
// CannotUnregisterReserved for a reserved id, and GroupNotFound if owner has no group
// of this id.
func (m *Manager) UnregisterGroup(owner Owner, id GroupID) error {
	if m.reserved[id] {
		return errcode.New(errcode.CannotUnregisterReserved, "unregister tool group %q: built-in groups cannot be unregistered", id)
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

// Update replaces the tools of a group and keeps its description, references and
// prompts. The error has the code GroupNotFound, InvalidGroupDef or
// DuplicateToolName; nothing has changed then.
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

// WaitIdle blocks until a change in progress is published and its watchers have
// returned. A reader may see a new Snapshot before org has compiled the Views for it;
// after WaitIdle the Views are at least as new. A watcher must not call it.
func (m *Manager) WaitIdle() {
	m.mu.Lock()
	defer m.mu.Unlock()
}

// replace publishes a Snapshot in which after takes the place of before, either of
// which may be nil, and calls the watchers. It must be called with mu held.
//
// The indexes of before become free only after the watchers have returned. By then
// every current View is compiled without them.
func (m *Manager) replace(before, after *group) {
	old := m.Snapshot()
	next := old.with(before, after)
	if after != nil {
		for _, h := range after.tools {
			h.index, h.since = m.allocIndex(), next.revision
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

// allocIndex returns an unused index. It must be called with mu held.
func (m *Manager) allocIndex() uint32 {
	if n := len(m.free); n > 0 {
		i := m.free[n-1]
		m.free = m.free[:n-1]
		return i
	}
	m.width++
	return m.width - 1
}

// newHandles checks the definition of a group and returns a Handle for each tool. It
// compiles schemas and is therefore called without mu.
func (m *Manager) newHandles(owner Owner, g Group) ([]*Handle, error) {
	if owner == "" {
		return nil, errcode.New(errcode.InvalidGroupDef, "register tool group %q: owner is missing", g.ID)
	}
	if err := CheckID(g.ID); err != nil {
		return nil, errcode.Wrap(errcode.InvalidGroupDef, err, "register tool group for %s: %s", owner, errcode.Message(err))
	}
	seen := make(map[string]bool, len(g.Tools))
	handles, current := make([]*Handle, 0, len(g.Tools)), m.Snapshot()
	for i, t := range g.Tools {
		h, err := current.newHandle(owner, g.ID, t)
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

// newHandle returns a Handle for a tool, without an index. If s has a tool of the same
// name with the same schema, the compiled schema is shared.
func (s *Snapshot) newHandle(owner Owner, id GroupID, t tool.Tool) (*Handle, error) {
	if t == nil {
		return nil, errcode.New(errcode.InvalidGroupDef, "tool is nil")
	}
	d := t.Definition()
	if err := tool.CheckName(d.Name); err != nil {
		return nil, errcode.New(errcode.InvalidGroupDef, "%v", err)
	}
	if !d.Effect.IsValid() {
		return nil, errcode.New(errcode.InvalidGroupDef, "effect %d of %q is not Mutating, Idempotent or ReadOnly", d.Effect, d.Name)
	}
	var schema *argschema.Schema
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
