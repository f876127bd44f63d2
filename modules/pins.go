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

// Pins records which tool definitions of external servers the operator has accepted and
// which are pending, that is, in quarantine. It keeps one record per owner in a Store.
//
// The definitions of the first contact are accepted, since the operator configured the
// server. After that a definition is active only while the server offers it exactly as
// it was accepted. A changed or new one is pending until Accept. A damaged record
// accepts nothing.
//
// All methods are safe for concurrent use. A Store must be used by one Pins only.
type Pins struct {
	store Store

	mu                 sync.Mutex // held during a change of a record; guards what follows
	watchers           map[toolgroups.Owner][]*func()
	quarantineWatchers []*func()
}

// Owners is a Store that can list the owners that have a value in it.
type Owners interface {
	Owners(ctx context.Context) iter.Seq2[toolgroups.Owner, error]
}

// Pinned is the record of an owner.
type Pinned struct {
	Owner   toolgroups.Owner
	Prefix  string        // the owner's tools are named Prefix + Pin.Tool
	Seen    bool          // the owner was contacted, even if it offered no tools
	Damaged bool          // the record could not be read: nothing is accepted
	Active  []Pin         // offered as accepted, in the order of the offer
	Pending []PendingTool // sorted by Name
}

// PendingTool is a definition in quarantine.
type PendingTool struct {
	Owner    toolgroups.Owner
	Name     string // of the tool, with the prefix
	Digest   string // of Offered
	Offered  Pin
	Accepted *Pin // the accepted definition of this name; nil for a new tool
}

// NewPins returns Pins that keep their records in store. With a nil store every method
// that reads or writes a record fails.
func NewPins(store Store) *Pins {
	return &Pins{store: store, watchers: make(map[toolgroups.Owner][]*func())}
}

// Watch calls fn after each Accept of a definition of owner, until stop is called. fn
// must not block and must not call methods of Pins.
func (p *Pins) Watch(owner toolgroups.Owner, fn func()) (stop func()) {
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
// until stop is called. fn must not block and must not call methods of Pins.
func (p *Pins) WatchQuarantine(fn func()) (stop func()) {
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

// Get returns the record of owner.
func (p *Pins) Get(ctx context.Context, owner toolgroups.Owner) (Pinned, error) {
	r, err := p.read(ctx, owner)
	if err != nil {
		return Pinned{Owner: owner}, err
	}
	return r.pinned(owner), nil
}

// UpdateTools records the definitions that owner offers now, each name once, and returns the
// record. It returns when the record is on disk.
func (p *Pins) UpdateTools(ctx context.Context, owner toolgroups.Owner, prefix string, offered []Pin) (Pinned, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, err := p.read(ctx, owner)
	if err != nil {
		return Pinned{Owner: owner}, err
	}
	after := before.withOffered(prefix, offered)
	if !before.equal(after) {
		if err := p.write(ctx, owner, after); err != nil {
			return Pinned{Owner: owner}, err
		}
	}
	return after.pinned(owner), nil
}

// AcceptTool accepts a pending definition and returns it. name is its PendingTool.Name. The
// digest makes sure that only a definition the operator has seen is accepted.
//
// Errors: UnknownTool when no pending definition has this name; Conflict when the
// pending definition has another digest by now.
func (p *Pins) AcceptTool(ctx context.Context, owner toolgroups.Owner, name, digest string) (PendingTool, error) {
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
// the store is not Owners. Damaged records are skipped; the next Update replaces them.
func (p *Pins) ListQuarantine(ctx context.Context) ([]PendingTool, error) {
	owners, ok := p.store.(Owners)
	if !ok {
		return nil, nil
	}
	var list []PendingTool
	for owner, err := range owners.Owners(ctx) {
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

func (p *Pins) read(ctx context.Context, owner toolgroups.Owner) (pinRecord, error) {
	if p.store == nil {
		return pinRecord{}, errcode.New(errcode.Internal, "read the pins of %s: there is no store", owner)
	}
	value, err := p.store.Get(ctx, owner)
	if err != nil {
		return pinRecord{}, fmt.Errorf("read the pins of %s: %w", owner, err)
	}
	return parsePins(value), nil
}

// write must be called with mu held.
func (p *Pins) write(ctx context.Context, owner toolgroups.Owner, r pinRecord) error {
	value, err := json.Marshal(r)
	if err == nil {
		err = p.store.Set(ctx, owner, value)
	}
	if err != nil {
		return fmt.Errorf("write the pins of %s: %w", owner, err)
	}
	for _, fn := range p.quarantineWatchers {
		(*fn)()
	}
	return nil
}
