// Package org owns who there is: roles, agents and tasks, and the rules about
// who may give, spawn, end and write to whom (design §4 "Use and grant").
//
// Org keeps the organization in memory. Its changing methods validate, change
// the memory and return the Changes that make it last; they are called from
// one goroutine, the committer of the store, so that the order of changes is
// the order on disk. Its reading methods are safe for concurrent use. Every
// agent points to a Slot whose View is recompiled before a change returns.
// The package stores nothing itself and calls no tool.
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

// Kind says what a record is about.
type Kind string

// The kinds of records org writes.
const (
	KindRole       Kind = "role"
	KindAgent      Kind = "agent"
	KindTerminated Kind = "ended" // an agent that is terminated: a start does not look at them
	KindTask       Kind = "task"
	KindMeta       Kind = "meta"

	KindCaller Kind = "caller" // where a caller from outside stands in its workflow
)

// Change is one record to be written; a nil Value removes it.
type Change struct {
	Kind  Kind
	Key   string
	Value json.RawMessage
}

// Source is what Load reads from. A damaged record comes with an error that
// names it; the sequence goes on behind it.
type Source interface {
	Records(kind string) iter.Seq2[Record, error]
}

// Record is one stored record.
type Record struct {
	Key   string
	Value json.RawMessage
}

// Config is what an Org needs.
type Config struct {
	Groups *toolgroups.Manager
	Now    func() time.Time // the seam for time
	Log    *slog.Logger
}

// Org is the organization in memory.
type Org struct {
	config Config

	mu            sync.RWMutex // guards everything below; held for no I/O
	roles         map[identity.RoleID]*Role
	rolesByName   map[string]*Role // active roles
	agents        map[identity.AgentID]*agentNode
	tasks         map[identity.TaskID]*Task
	slots         scopeIndex
	epoch         uint64
	defaultGroups toolgroups.Set // toolGroups of roles created without

	callers callers
	changed chan struct{} // closed when the epoch moves; nil when nobody asked since
}

// Load builds the organization from what source holds. A damaged or malformed
// record is left out and logged: what depends on it is denied.
func Load(config Config, source Source) (*Org, error) {
	o := &Org{
		config:        config,
		roles:         map[identity.RoleID]*Role{},
		rolesByName:   map[string]*Role{},
		agents:        map[identity.AgentID]*agentNode{},
		tasks:         map[identity.TaskID]*Task{},
		slots:         newSlots(),
		defaultGroups: toolgroups.All(),

		callers: newCallers(),
	}
	if source != nil {
		o.load(source)
	}
	config.Groups.Watch(o.groupsChanged)
	return o, nil
}

// SetDefault says which toolGroups a role gets that is created without; All
// until it is called.
func (o *Org) SetDefault(set toolgroups.Set) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.defaultGroups = set
}

// Epoch counts the changes of what somebody may do.
func (o *Org) Epoch() uint64 {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.epoch
}

// Changed gives a channel that is closed when the epoch moves next and what
// moved it is in force. Ask for it before looking at what may change:
//
//	for changed := o.Changed(); ; changed = o.Changed() {
//		look()
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

// notifyChanged tells those who wait for a change that one is in force. It is
// called with mu held.
func (o *Org) notifyChanged() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// EpochRecord gives the record of the epoch, which a change of the registry
// has moved in memory.
func (o *Org) EpochRecord() []Change {
	return []Change{record(KindMeta, "epoch", o.Epoch())}
}

// Advance moves the epoch, as a new process does before it runs anything.
func (o *Org) Advance() []Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.notifyChanged()
	return []Change{o.advance()}
}

func (o *Org) advance() Change {
	o.epoch++
	return record(KindMeta, "epoch", o.epoch)
}

// record makes a Change; v always marshals.
func record(kind Kind, key string, v any) Change {
	value, err := json.Marshal(v)
	if err != nil {
		panic("org: marshal " + string(kind) + " " + key + ": " + err.Error())
	}
	return Change{Kind: kind, Key: key, Value: value}
}

// groupsChanged is called by the registry after each of its changes.
func (o *Org) groupsChanged(changed []toolgroups.GroupID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.epoch++
	o.recompile(o.slots.byGroups(changed))
	o.notifyChanged()
}

// bind binds a set to the owners its groups have now.
func (o *Org) bind(set toolgroups.Set) toolgroups.BoundSet {
	return o.config.Groups.Snapshot().Bind(set)
}

func notFound(code errcode.Code, what, id string) error {
	return errcode.New(code, "there is no %s %q", what, id)
}
