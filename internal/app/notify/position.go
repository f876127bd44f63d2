package notify

import (
	"context"
	"encoding/json"
	"maps"
	"sync"

	"github.com/rolecall/rolecall/toolgroups"
)

// storeOwner is the owner of the record of the positions.
const storeOwner toolgroups.GroupOwner = "notifications"

// positions are the sequence numbers of the events up to which receivers were told all. They are
// stored in one record.
type positions struct {
	store Store

	mu      sync.Mutex // guards what follows, and orders the writes
	read    bool
	unsaved bool // the last write failed
	byName  map[string]uint64
}

// replace sets the receivers to the named receivers. Receivers without a position begin at the
// position last. It forgets the positions of others.
func (p *positions) replace(ctx context.Context, names []string, last uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return err
	}
	next := map[string]uint64{}
	for _, name := range names {
		next[name] = p.firstOf(name, last)
	}
	return p.set(ctx, next)
}

// add returns the position of a receiver. One without a position gets the position last.
func (p *positions) add(ctx context.Context, name string, last uint64) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return 0, err
	}
	next := maps.Clone(p.byName)
	next[name] = p.firstOf(name, last)
	return next[name], p.set(ctx, next)
}

// firstOf returns the position at which a receiver begins. It must be called with mu held.
func (p *positions) firstOf(name string, last uint64) uint64 {
	seq, known := p.byName[name]
	if !known || seq > last { // a restored backup has fewer events
		return last
	}
	return seq
}

// set makes next the positions and saves them, unless they are saved already. It must be called
// with mu held.
func (p *positions) set(ctx context.Context, next map[string]uint64) error {
	if maps.Equal(next, p.byName) && !p.unsaved {
		return nil
	}
	p.byName = next
	return p.save(ctx)
}

// load reads the record, once. It must be called with mu held.
func (p *positions) load(ctx context.Context) error {
	if p.read {
		return nil
	}
	data, err := p.store.ReadValue(ctx, storeOwner)
	if err != nil {
		return err
	}
	p.byName = map[string]uint64{}
	if data != nil {
		if err := json.Unmarshal(data, &p.byName); err != nil {
			return err
		}
	}
	p.read = true
	return nil
}

// save writes the record. It must be called with mu held.
func (p *positions) save(ctx context.Context) error {
	data, err := json.Marshal(p.byName)
	if err != nil {
		return err
	}
	if len(p.byName) == 0 {
		data = nil
	}
	err = p.store.WriteValue(context.WithoutCancel(ctx), storeOwner, data)
	p.unsaved = err != nil
	return err
}

// find returns the position of a receiver. It reports false if the receiver was left out.
func (p *positions) find(name string) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seq, known := p.byName[name]
	return seq, known
}

// move stores that a receiver was told all up to an event.
func (p *positions) move(ctx context.Context, name string, seq uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, known := p.byName[name]; !known || old >= seq {
		return nil
	}
	p.byName[name] = seq
	return p.save(ctx)
}
