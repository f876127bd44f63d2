package modules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// PinStore records which tool definitions of external servers the operator has accepted and
// which are pending, that is, in quarantine. It keeps one record per owner in an OwnerStore.
//
// The definitions of the first contact are accepted, since the operator configured the
// server. After that a definition is active only while the server offers it exactly as
// it was accepted. A changed or new one is pending until AcceptTool. A damaged record
// accepts nothing.
//
// All methods are safe for concurrent use. A Store must be used by one PinStore only.
type PinStore struct {
	store OwnerStore

	mu                 sync.Mutex // held during a change of a record; guards what follows
	watchers           map[toolgroups.GroupOwner][]*func()
	quarantineWatchers []*func()
}

// OwnerLister is an OwnerStore that can list the owners that have a value in it.
type OwnerLister interface {
	ListOwners(ctx context.Context) iter.Seq2[toolgroups.GroupOwner, error]
}

// PinnedTools is the record of an owner.
type PinnedTools struct {
	Owner   toolgroups.GroupOwner
	Prefix  string        // the owner's tools are named Prefix + Pin.Tool
	Seen    bool          // the owner was contacted, even if it offered no tools
	Damaged bool          // the record could not be read: nothing is accepted
	Active  []ToolPin     // offered as accepted, in the order of the offer
	Pending []PendingTool // sorted by Name
}

// PendingTool is a definition in quarantine.
type PendingTool struct {
	Owner    toolgroups.GroupOwner
	Name     string // of the tool, with the prefix
	Digest   string // of Offered
	Offered  ToolPin
	Accepted *ToolPin // the accepted definition of this name; nil for a new tool
}

// NewPinStore returns PinStore that keep their records in store. With a nil store every method
// that reads or writes a record fails.
func NewPinStore(store OwnerStore) *PinStore {
	return &PinStore{store: store, watchers: make(map[toolgroups.GroupOwner][]*func())}
}

// WatchOwner calls fn after each AcceptTool of a definition of owner, until stop is called. fn
// must not block and must not call methods of PinStore.
func (p *PinStore) WatchOwner(owner toolgroups.GroupOwner, fn func()) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := &fn
	p.watchers[owner] = append(p.watchers[owner], mine)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watchers[owner] = slices.DeleteFunc(p.watchers[owner], func(other *func()) bool { return other == mine })
	}
}

// WatchQuarantine calls fn whenever pending definitions of any owner may have changed,
// until stop is called. fn must not block and must not call methods of PinStore.
func (p *PinStore) WatchQuarantine(fn func()) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := &fn
	p.quarantineWatchers = append(p.quarantineWatchers, mine)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.quarantineWatchers = slices.DeleteFunc(p.quarantineWatchers, func(other *func()) bool { return other == mine })
	}
}

// ReadPins returns the record of owner.
func (p *PinStore) ReadPins(ctx context.Context, owner toolgroups.GroupOwner) (PinnedTools, error) {
	r, err := p.read(ctx, owner)
	if err != nil {
		return PinnedTools{Owner: owner}, err
	}
	return r.pinned(owner), nil
}

// UpdateTools records the definitions that owner offers now, each name once, and returns the
// record. It returns when the record is on disk.
func (p *PinStore) UpdateTools(ctx context.Context, owner toolgroups.GroupOwner, prefix string, offered []ToolPin) (PinnedTools, error) {
	return p.update(ctx, owner, func(r pinRecord) pinRecord { return r.withOffered(prefix, offered) })
}

// QuarantineTools is UpdateTools for an owner that the operator has not configured: the first
// contact accepts nothing.
func (p *PinStore) QuarantineTools(ctx context.Context, owner toolgroups.GroupOwner, prefix string, offered []ToolPin) (PinnedTools, error) {
	return p.update(ctx, owner, func(r pinRecord) pinRecord {
		if !r.damaged && r.Version == 0 {
			r = pinRecord{Version: pinVersion, Prefix: prefix, Accepted: []pinEntry{}, Offered: []pinEntry{}}
		}
		return r.withOffered(prefix, offered)
	})
}

// update changes the record of owner and returns it.
func (p *PinStore) update(ctx context.Context, owner toolgroups.GroupOwner, change func(pinRecord) pinRecord) (PinnedTools, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, err := p.read(ctx, owner)
	if err != nil {
		return PinnedTools{Owner: owner}, err
	}
	after := change(before)
	if !before.equal(after) {
		if err := p.write(ctx, owner, after); err != nil {
			return PinnedTools{Owner: owner}, err
		}
	}
	return after.pinned(owner), nil
}

// AcceptTool accepts a pending definition and returns it. name is its PendingTool.Name. The
// digest makes sure that only a definition the operator has seen is accepted.
//
// Errors: UnknownTool when no pending definition has this name; Conflict when the
// pending definition has another digest by now.
func (p *PinStore) AcceptTool(ctx context.Context, owner toolgroups.GroupOwner, name, digest string) (PendingTool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.read(ctx, owner)
	if err != nil {
		return PendingTool{}, err
	}
	list := r.pinned(owner).Pending
	at := slices.IndexFunc(list, func(w PendingTool) bool { return w.Name == name })
	if at < 0 {
		return PendingTool{}, errcode.New(errcode.UnknownTool, "accept %.140q: no tool of this name is in quarantine", name)
	}
	if list[at].Digest != digest {
		return PendingTool{}, errcode.New(errcode.Conflict, "accept %s: its definition has changed meanwhile and has the digest %s; review it again", name, list[at].Digest)
	}
	if err := p.write(ctx, owner, r.withAccepted(list[at].Offered)); err != nil {
		return PendingTool{}, err
	}
	for _, fn := range p.watchers[owner] {
		(*fn)()
	}
	return list[at], nil
}

// ListQuarantine lists the pending definitions of all owners, sorted by Name. It is empty if
// the store is not an OwnerLister. Damaged records are skipped; the next UpdateTools replaces them.
func (p *PinStore) ListQuarantine(ctx context.Context) ([]PendingTool, error) {
	owners, ok := p.store.(OwnerLister)
	if !ok {
		return nil, nil
	}
	var list []PendingTool
	for owner, err := range owners.ListOwners(ctx) {
		if err != nil {
			return nil, err
		}
		r, err := p.read(ctx, owner)
		if err != nil {
			return nil, err
		}
		list = append(list, r.pinned(owner).Pending...)
	}
	slices.SortFunc(list, func(a, b PendingTool) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
	})
	return list, nil
}

func (p *PinStore) read(ctx context.Context, owner toolgroups.GroupOwner) (pinRecord, error) {
	if p.store == nil {
		return pinRecord{}, errcode.New(errcode.Internal, "read the pins of %s: there is no store", owner)
	}
	value, err := p.store.ReadValue(ctx, owner)
	if err != nil {
		return pinRecord{}, fmt.Errorf("read the pins of %s: %w", owner, err)
	}
	return parsePins(value), nil
}

// write must be called with mu held.
func (p *PinStore) write(ctx context.Context, owner toolgroups.GroupOwner, r pinRecord) error {
	value, err := json.Marshal(r)
	if err == nil {
		err = p.store.WriteValue(ctx, owner, value)
	}
	if err != nil {
		return fmt.Errorf("write the pins of %s: %w", owner, err)
	}
	for _, fn := range p.quarantineWatchers {
		(*fn)()
	}
	return nil
}
