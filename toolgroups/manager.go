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

	commit atomic.Pointer[func(Change) error]

	updating sync.Mutex // held while a change is checked, committed and published; guards free and width
	free     []uint32   // indexes of removed ToolHandles, to be used again
	width    uint32     // number of indexes in use or free

	mu       sync.Mutex // held while a change is published, including its watchers; guards the fields below
	watchers []func(changed []GroupID)
	claims   map[GroupOwner]*Owner
}

// NewManager returns an empty registry. Only the owner Builtin may register the
// reserved ids.
func NewManager(reserved ...GroupID) *Manager {
	m := &Manager{now: time.Now, reserved: make(map[GroupID]bool, len(reserved)), claims: map[GroupOwner]*Owner{}}
	m.SetCommit(publishOnly)
	for _, id := range reserved {
		m.reserved[id] = true
	}
	m.snapshot.Store(&Snapshot{})
	return m
}

// isReserved reports whether an id is reserved, or below a reserved id. An example is
// workspace/extra: people would take such a group for a part of the built-in group.
func (m *Manager) isReserved(id GroupID) bool {
	for at := range len(id) {
		if id[at] == '/' && m.reserved[id[:at]] {
			return true
		}
	}
	return m.reserved[id]
}

// CurrentSnapshot returns the current state of the registry. It does not block.
func (m *Manager) CurrentSnapshot() *Snapshot { return m.snapshot.Load() }

// WatchGroups registers fn. The Manager calls it after each change of the registry with
// the ids of the changed groups. These include toolsets that reference a tool of a changed
// group, and the groups above these (Group.Children). The new Snapshot is published before
// fn is called. The call that made the change returns after fn has returned. fn must not
// change the registry and must not call WaitIdle. Earlier changes are not reported.
func (m *Manager) WatchGroups(fn func(changed []GroupID)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers = append(m.watchers, fn)
}

// Update calls fn with a change of the registry in progress. If fn returns nil, the change
// becomes visible as a whole. If fn or a check of the whole fails, nothing has changed.
//
// fn runs without a lock, because it calls the tools' methods. If the registry changes
// meanwhile, the change is checked against the registry as it is then.
//
// An error of the commit function may come after the change is visible, see SetCommit.
func (m *Manager) Update(fn func(*Tx) error) error {
	return m.UpdateWith(func(c Change) error {
		if len(c.Groups) == 0 {
			return nil
		}
		return (*m.commit.Load())(c)
	}, fn)
}

// UpdateWith is Update with another commit function, which is also called when fn has
// changed no group.
func (m *Manager) UpdateWith(commit func(Change) error, fn func(*Tx) error) error {
	tx := &Tx{manager: m, base: m.CurrentSnapshot(), edits: map[GroupID]*groupEdit{}, tools: map[string]*ToolHandle{}}
	if err := fn(tx); err != nil {
		return err
	}
	m.updating.Lock()
	defer m.updating.Unlock()
	edits := tx.sortedEdits()
	if err := tx.rebase(m.CurrentSnapshot(), edits); err != nil {
		return err
	}
	if err := tx.check(edits); err != nil {
		return err
	}
	next := m.prepare(tx, edits)
	published := false
	err := commit(Change{Groups: groupChanges(tx.base, next, edits), Next: next, Publish: func() {
		published = true
		m.publish(next, edits)
	}})
	m.freeIndexes(edits, published)
	return err
}

// SetCommit sets the function that commits changes: it calls Change.Publish and records
// the change. Without one a change is published only. The function must not call Update,
// directly or not.
func (m *Manager) SetCommit(commit func(Change) error) { m.commit.Store(&commit) }

// publishOnly is the commit function of a Manager without another.
func publishOnly(c Change) error {
	c.Publish()
	return nil
}

// WaitIdle blocks until a change in progress is published and its watchers have
// returned. A reader may see a new Snapshot before org has compiled the Views for it;
// after WaitIdle the Views are at least as new. A watcher must not call it.
func (m *Manager) WaitIdle() {
	m.mu.Lock()
	defer m.mu.Unlock()
}

// prepare returns the Snapshot in which the edits of tx are made.
func (m *Manager) prepare(tx *Tx, edits []*groupEdit) *Snapshot {
	if len(edits) == 0 && !tx.declares {
		return tx.base
	}
	tx.bindRefs(edits)
	next := tx.base.withEdits(edits)
	if tx.declares {
		next.declared = tx.declared
	}
	for _, e := range edits {
		if e.after == nil {
			continue
		}
		for _, h := range e.after.allHandles() {
			h.index, h.since = m.allocIndex(), next.revision
		}
	}
	next.width = m.width
	return next
}

// publish makes next current and calls the watchers.
func (m *Manager) publish(next *Snapshot, edits []*groupEdit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	base := m.CurrentSnapshot()
	m.snapshot.Store(next)
	changed := next.affected(base, edits)
	for _, watch := range m.watchers {
		watch(changed)
	}
}

// freeIndexes makes indexes available again. It frees the indexes of the tools that were
// replaced. If the change was dropped, it frees the indexes of the new tools. It is called
// after the watchers have returned: by then every current View is compiled without the
// replaced tools.
func (m *Manager) freeIndexes(edits []*groupEdit, published bool) {
	for _, e := range edits {
		g := e.after
		if published {
			g = e.before
		}
		if g == nil {
			continue
		}
		for _, h := range g.allHandles() {
			m.free = append(m.free, h.index)
		}
	}
}

// groupChanges describes edits for Change.
func groupChanges(base, next *Snapshot, edits []*groupEdit) []GroupChange {
	list := make([]GroupChange, len(edits))
	for i, e := range edits {
		if e.after != nil {
			list[i] = GroupChange{Group: next.info(e.after), Switched: e.switches}
		} else {
			list[i] = GroupChange{Group: base.info(e.before), Removed: true}
		}
	}
	return list
}

// allocIndex returns an unused index. It must be called with updating held.
func (m *Manager) allocIndex() uint32 {
	if n := len(m.free); n > 0 {
		i := m.free[n-1]
		m.free = m.free[:n-1]
		return i
	}
	m.width++
	return m.width - 1
}

// newHandles checks the definition of a group and returns a ToolHandle for each tool.
func (tx *Tx) newHandles(owner GroupOwner, g Group) ([]*ToolHandle, error) {
	if err := CheckID(g.ID); err != nil {
		return nil, errcode.Wrap(errcode.InvalidGroupDef, err, "register tool group for %s: %s", owner, errcode.Message(err))
	}
	seen := make(map[string]bool, len(g.Tools))
	handles, current := make([]*ToolHandle, 0, len(g.Tools)), tx.base
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

// newHandle returns a ToolHandle for a tool, without an index. If s has a tool of the same
// name with the same schema, the compiled schema is shared.
func (s *Snapshot) newHandle(owner GroupOwner, id GroupID, t tool.Tool) (*ToolHandle, error) {
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
	d.Input, d.Shown, d.States = bytes.Clone(d.Input), bytes.Clone(d.Shown), slices.Clone(d.States)
	return &ToolHandle{Tool: t, Definition: d, Schema: schema, Group: id, Owner: owner}, nil
}
