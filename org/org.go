// Package org holds the roles, agents, tasks and external callers of an
// organization. It enforces the rules for creating roles, granting tool groups,
// spawning and terminating agents, and sending messages.
//
// # Permissions
//
// A [Role] has two sets of tool groups. Use is what its agents may call. Grant is
// what its agents may put into roles that they create. What an agent may really call
// is the intersection of all of these, as they are now:
//
//   - the Use of its role,
//   - the Grant of the role that created its role, and so on up to a role that was
//     created by root, by the operator or by the configuration (the ceiling),
//   - the Grant of its parent's role, within the limits of the parent,
//   - the groups of its task and the permissions of the task's caller.
//
// Thus a role never has more permissions than its creators have now, and asking a
// more powerful agent does not help. The same limits apply to hosts (MayReach).
//
// Each task has a root agent unless it names a role. Root may use the group
// org_management only and may grant everything that the task's caller may use.
//
// # Views
//
// Agents with the same role and the same limits share a scope, which holds a
// [toolgroups.ViewRef]. [Org.Resolve] returns it; package gate describes how a
// decision follows from it. A change of permissions compiles and publishes the Views
// of all affected scopes before the changing method returns. It also increments the
// epoch, which is recorded with each decision.
//
// # State
//
// [Org] keeps everything in memory and does no I/O. A method that changes something
// validates, changes the memory and returns the [Change] records to be stored.
// Changing methods must be called from one goroutine, the committer of the store, so
// that the order in memory is the order on disk. Reading methods are safe for
// concurrent use. [Load] reads the records back.
//
// A record that is damaged or inconsistent removes permissions and never adds any.
package org

import (
	"encoding/json"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// Kind is the kind of a stored record.
type Kind string

// The kinds of records that package org writes.
const (
	KindRole       Kind = "role"
	KindAgent      Kind = "agent" // an active agent
	KindTerminated Kind = "ended" // a terminated agent; Load does not read these
	KindTask       Kind = "task"
	KindMeta       Kind = "meta"   // key "epoch"
	KindCaller     Kind = "caller" // the workflow state of an external caller
)

// Change is one record to be written. A nil Value removes the record.
type Change struct {
	Kind  Kind
	Key   string
	Value json.RawMessage
}

// Source is a store that Load reads from.
type Source interface {
	// Records returns the records of a kind. A damaged record comes with an error and
	// with the key if that is known. The sequence continues after it.
	Records(kind string) iter.Seq2[Record, error]
}

// Record is one stored record.
type Record struct {
	Key   string
	Value json.RawMessage
}

// Config holds the dependencies of an Org. All fields are required.
type Config struct {
	Groups *toolgroups.Manager
	Now    func() time.Time // the clock; a fixed one makes runs reproducible
	Log    *slog.Logger
}

// Org is the organization in memory. Methods that return Changes must not be called
// concurrently with each other; all other methods are safe for concurrent use.
type Org struct {
	config Config

	mu            sync.RWMutex // guards the fields below; never held during I/O
	roles         map[identity.RoleID]*Role
	rolesByName   map[string]*Role // active roles
	agents        map[identity.AgentID]*agentNode
	tasks         map[identity.TaskID]*Task
	scopes        scopeIndex
	epoch         uint64
	defaultGroups toolgroups.Set // Use of roles that are created without one

	callers callers
	changed chan struct{} // closed by the next change of the epoch; nil if Changed was not called since the last one
}

// Load returns the organization that source holds, an empty one if source is nil. It
// logs and ignores damaged and malformed records; what depends on such a record is
// denied. Load registers a watcher with config.Groups.
func Load(config Config, source Source) (*Org, error) {
	o := &Org{
		config:        config,
		roles:         map[identity.RoleID]*Role{},
		rolesByName:   map[string]*Role{},
		agents:        map[identity.AgentID]*agentNode{},
		tasks:         map[identity.TaskID]*Task{},
		scopes:        newScopeIndex(),
		defaultGroups: toolgroups.All(),

		callers: newCallers(),
	}
	if source != nil {
		o.load(source)
	}
	config.Groups.Watch(o.groupsChanged)
	return o, nil
}

// SetDefault sets the Use of roles that are created without one. It is All until
// SetDefault is called. Existing roles do not change.
func (o *Org) SetDefault(set toolgroups.Set) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.defaultGroups = set
}

// CurrentEpoch returns the number of changes of permissions so far. It is stored and grows
// over restarts.
func (o *Org) CurrentEpoch() uint64 {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.epoch
}

// Changed returns a channel that is closed after the next change of the epoch, once
// the new Views are published. Call it before reading what may change:
//
//	for {
//		changed := o.Changed()
//		read()
//		<-changed
//	}
func (o *Org) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.changed
}

// notifyChanged closes the channel that Changed returned. It must be called with mu
// held, after the new Views are published.
func (o *Org) notifyChanged() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// EpochRecord returns the record of the current epoch. Changes of the registry
// increment the epoch in memory only, so the caller stores this record after them.
func (o *Org) EpochRecord() []Change {
	return []Change{record(KindMeta, "epoch", o.CurrentEpoch())}
}

// Advance increments the epoch. A new process does so before it runs anything, so that
// its decisions differ from those of the process before.
func (o *Org) Advance() []Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.notifyChanged()
	return []Change{o.advance()}
}

// advance increments the epoch. It must be called with mu held.
func (o *Org) advance() Change {
	o.epoch++
	return record(KindMeta, "epoch", o.epoch)
}

// record returns the Change that writes v, which must be a type that always marshals.
func record(kind Kind, key string, v any) Change {
	value, err := json.Marshal(v)
	if err != nil {
		panic("org: marshal " + string(kind) + " " + key + ": " + err.Error())
	}
	return Change{Kind: kind, Key: key, Value: value}
}

// groupsChanged is the watcher of the registry. It publishes the Views of the affected
// scopes before the change of the registry returns.
func (o *Org) groupsChanged(changed []toolgroups.GroupID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.epoch++
	o.recompile(o.scopes.byGroups(changed))
	o.notifyChanged()
}

// bind binds a set to the current owners of its groups.
func (o *Org) bind(set toolgroups.Set) toolgroups.BoundSet {
	return o.config.Groups.Snapshot().BindSet(set)
}

func notFound(code errcode.Code, what, id string) error {
	return errcode.New(code, "there is no %s %q", what, id)
}
