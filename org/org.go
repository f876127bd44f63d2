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
// org_management only. It may grant what the configuration lets it, by default
// everything, and what the task's caller may use. It may also spawn agents of the roles
// of the operator and of the configuration. This does not count as granting.
//
// # Views
//
// Agents with the same role and the same limits share a scope. The scope holds a
// [toolgroups.ViewRef], which [Org.ResolveView] returns. Package gate describes how a
// decision follows from it. A change of permissions compiles and publishes the Views of
// all affected scopes before the changing method returns. It also increments the epoch,
// which is recorded with each decision.
//
// # State
//
// [Org] keeps everything in memory and does no I/O. A method that changes something
// validates, changes the memory and returns the [RecordChange] records to be stored.
// Changing methods must be called from one goroutine, the committer of the store, so
// that the order in memory is the order on disk. Reading methods are safe for
// concurrent use. [LoadOrg] reads the records back.
//
// A record that is damaged or inconsistent removes permissions and never adds any.
//
// The package has more than sixty exported names. Roles, agents, tasks and callers limit
// each other's permissions under one lock; packages of their own would share that lock.
package org

import (
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// RecordKind is the kind of a stored record.
type RecordKind string

// The kinds of records that package org writes.
const (
	KindRole       RecordKind = "role"
	KindAgent      RecordKind = "agent" // an active agent
	KindTerminated RecordKind = "ended" // a terminated agent; LoadOrg does not read these
	KindTask       RecordKind = "task"
	KindMeta       RecordKind = "meta"   // keys "epoch", "rootGrant", "approval", "observed" and "pause"
	KindCaller     RecordKind = "caller" // the workflow state of an external caller

	KindToolHistory RecordKind = "tools" // the tools that a role had
	KindNames       RecordKind = "names" // the highest number of the terminated agents of a name
)

// RecordChange is one record to be written. A nil Value removes the record.
type RecordChange struct {
	Kind  RecordKind
	Key   string
	Value json.RawMessage
}

// RecordSource is a store that LoadOrg reads from.
type RecordSource interface {
	// Records returns the records of a kind. A damaged record comes with an error and
	// with the key if that is known. The sequence continues after it.
	Records(kind string) iter.Seq2[StoredRecord, error]
}

// StoredRecord is one stored record.
type StoredRecord struct {
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

	mu sync.RWMutex // guards the fields below; never held during I/O
	roleIndex
	agentCounts
	agentNames
	agents     map[identity.AgentID]*agentNode
	tasks      map[identity.TaskID]*Task
	tasksByAge []*Task                     // the same, oldest first
	tasksByKey map[taskKey]identity.TaskID // the tasks that have a key
	scopes     scopeIndex
	limits     TaskLimits
	epoch      uint64
	pause      orgPause
	planned    *rolePlan // takes effect with the next change of the registry; nil if there is none

	callers callers
	tools   toolRecorder
	changed chan struct{} // closed by the next change of the epoch; nil if EpochChanged was not called since the last one
}

// LoadOrg returns the organization that source holds, an empty one if source is nil. It
// logs and ignores damaged and malformed records; what depends on such a record is
// denied. LoadOrg registers a watcher with config.Groups.
func LoadOrg(config Config, source RecordSource) (*Org, error) {
	o := &Org{
		config:    config,
		roleIndex: newRoleIndex(),
		agents:    map[identity.AgentID]*agentNode{},

		agentCounts: agentCounts{taskAgents: map[identity.TaskID]int{}, callerAgents: map[string]int{}},
		tasks:       map[identity.TaskID]*Task{},
		tasksByKey:  map[taskKey]identity.TaskID{},
		scopes:      newScopeIndex(),
		callers:     newCallers(),
		tools:       newToolRecorder(),
	}
	if source != nil {
		o.load(source)
	}
	config.Groups.WatchGroups(o.groupsChanged)
	return o, nil
}

// CurrentEpoch returns the number of changes of permissions so far. It is stored and grows
// over restarts.
func (o *Org) CurrentEpoch() uint64 {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.epoch
}

// EpochChanged returns a channel that is closed after the next change of the epoch, once
// the new Views are published. Call it before reading what may change:
//
//	for {
//		changed := o.EpochChanged()
//		read()
//		<-changed
//	}
func (o *Org) EpochChanged() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.changed
}

// notifyChanged closes the channel that EpochChanged returned. It must be called with mu
// held, after the new Views are published.
func (o *Org) notifyChanged() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// EpochRecords returns the records of the current epoch. Changes of the registry
// increment the epoch in memory only, so the caller stores these records after them.
func (o *Org) EpochRecords() []RecordChange {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.epochRecords()
}

// epochRecords is EpochRecords with mu held.
func (o *Org) epochRecords() []RecordChange {
	return append([]RecordChange{newRecord(KindMeta, "epoch", o.epoch)}, o.toolRecords()...)
}

// AdvanceEpoch increments the epoch. A new process does so before it runs anything. So its
// decisions differ from the decisions of the previous process.
func (o *Org) AdvanceEpoch() []RecordChange {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.notifyChanged()
	o.epoch++
	return o.epochRecords()
}

// advance increments the epoch after the change of a role. It must be called with mu held.
func (o *Org) advance(changed identity.RoleID) []RecordChange {
	o.epoch++
	o.observeChange(nil, map[identity.RoleID]bool{changed: true})
	return o.epochRecords()
}

// newRecord returns the RecordChange that writes v, which must be a type that always marshals.
func newRecord(kind RecordKind, key string, v any) RecordChange {
	value, err := json.Marshal(v)
	if err != nil {
		panic("org: marshal " + string(kind) + " " + key + ": " + err.Error())
	}
	return RecordChange{Kind: kind, Key: key, Value: value}
}

// groupsChanged is the watcher of the registry. It makes planned roles active and publishes
// the Views of the affected scopes before the change of the registry returns.
func (o *Org) groupsChanged(changed []toolgroups.GroupID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	dirty, edited := o.scopes.byGroups(changed), map[identity.RoleID]bool{}
	if p := o.planned; p != nil {
		o.roleIndex, o.planned = p.roleIndex, nil
		for _, e := range p.edits {
			dirty, edited[e.Role.ID] = o.scopes.addScopesOf(dirty, e.Role.ID), true
		}
		if len(changed)+len(p.edits) == 0 {
			return
		}
	}
	o.epoch++
	o.observeChange(changed, edited)
	o.recompile(slices.Collect(maps.Keys(dirty)))
	o.notifyChanged()
}

// pinOwners pins a set to the current owners of its groups.
func (o *Org) pinOwners(set toolgroups.GroupSet) toolgroups.PinnedSet {
	return o.registry().PinOwners(set)
}

func notFound(code errcode.Code, what, id string) error {
	return errcode.New(code, "there is no %s %q", what, id)
}
