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

// Pins keeps which definitions of tools from outside the operator has accepted,
// and which wait for that: the quarantine. One record an owner is on a Shelf.
//
// What an owner offers at the first contact is accepted: the operator
// configured it. After that a definition is in force only while what is offered
// is what was accepted. A changed or new one waits for Accept. A record that
// is damaged accepts nothing.
//
// All methods are safe for concurrent use. One Pins has to serve all who share
// a Shelf.
type Pins struct {
	shelf Store

	mu       sync.Mutex // one change of records at a time; guards what follows
	watchers map[toolgroups.Owner][]*func()
	records  []*func() // called when a record changed
}

// Owners is a Shelf that can say whose values it keeps.
type Owners interface {
	Owners(ctx context.Context) iter.Seq2[toolgroups.Owner, error]
}

// Pinned is what the record of an owner says.
type Pinned struct {
	Owner   toolgroups.Owner
	Prefix  string        // the owner's tools are named prefix + Pin.Tool
	Seen    bool          // it has offered something, if only nothing
	Damaged bool          // the record could not be read: nothing is accepted
	Active  []Pin         // offered as accepted; in the order of the offer
	Pending []PendingTool // sorted by Name
}

// PendingTool is a definition in quarantine.
type PendingTool struct {
	Owner    toolgroups.Owner
	Name     string // as it would be called
	Digest   string // of Offered
	Offered  Pin
	Accepted *Pin // what was accepted under this name; nil for a new tool
}

// NewPins makes Pins that keep their records on a shelf.
func NewPins(shelf Store) *Pins {
	return &Pins{shelf: shelf, watchers: make(map[toolgroups.Owner][]*func())}
}

// Watch has fn called after each Accept that changed what is in force of
// owner. It must not block or call Pins. The function it gives ends that.
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

// WatchQuarantine has fn called whenever what waits may be another, of any
// owner. It must not block or call Pins. The function it gives ends that.
func (p *Pins) WatchQuarantine(fn func()) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := &fn
	p.records = append(p.records, mine)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.records = slices.DeleteFunc(p.records, func(other *func()) bool { return other == mine })
	}
}

// Get gives what the record of owner says.
func (p *Pins) Get(ctx context.Context, owner toolgroups.Owner) (Pinned, error) {
	r, err := p.read(ctx, owner)
	if err != nil {
		return Pinned{Owner: owner}, err
	}
	return r.pinned(owner), nil
}

// Update records what owner offers now, each tool once, and gives what is in
// force from now on. It returns when the record is on disk.
func (p *Pins) Update(ctx context.Context, owner toolgroups.Owner, prefix string, offered []Pin) (Pinned, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, err := p.read(ctx, owner)
	if err != nil {
		return Pinned{Owner: owner}, err
	}
	after := before.offer(prefix, offered)
	if !before.same(after) {
		if err := p.write(ctx, owner, after); err != nil {
			return Pinned{Owner: owner}, err
		}
	}
	return after.pinned(owner), nil
}

// Accept puts a waiting definition in force: the one of this digest and no
// other, so that what nobody has seen is not accepted. name is as of Waiting.
//
// Errors: UnknownTool when nothing of this name waits; Conflict when the
// definition that waits is another by now.
func (p *Pins) Accept(ctx context.Context, owner toolgroups.Owner, name, digest string) (PendingTool, error) {
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
		return PendingTool{}, errcode.New(errcode.Conflict, "accept %s: its definition is another by now, of digest %s; look at it again", name, list[at].Digest)
	}
	if err := p.write(ctx, owner, r.accept(list[at].Offered)); err != nil {
		return PendingTool{}, err
	}
	for _, fn := range p.watchers[owner] {
		(*fn)()
	}
	return list[at], nil
}

// Quarantine lists all that waits, of all owners, sorted by Name. Damaged
// records are passed over; who offers under them writes them anew.
func (p *Pins) Quarantine(ctx context.Context) ([]PendingTool, error) {
	owners, ok := p.shelf.(Owners)
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
	if p.shelf == nil {
		return pinRecord{}, errcode.New(errcode.Internal, "read the pins of %s: there is no shelf", owner)
	}
	value, err := p.shelf.Get(ctx, owner)
	if err != nil {
		return pinRecord{}, fmt.Errorf("read the pins of %s: %w", owner, err)
	}
	return parsePins(value), nil
}

// write wants mu held.
func (p *Pins) write(ctx context.Context, owner toolgroups.Owner, r pinRecord) error {
	value, err := json.Marshal(r)
	if err == nil {
		err = p.shelf.Set(ctx, owner, value)
	}
	if err != nil {
		return fmt.Errorf("keep the pins of %s: %w", owner, err)
	}
	for _, fn := range p.records {
		(*fn)()
	}
	return nil
}
