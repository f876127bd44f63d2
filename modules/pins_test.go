package modules_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// mapStore is a modules.OwnerStore and modules.OwnerLister in memory.
type mapStore map[toolgroups.GroupOwner][]byte

func (s mapStore) ReadValue(_ context.Context, owner toolgroups.GroupOwner) ([]byte, error) {
	return s[owner], nil
}

func (s mapStore) WriteValue(_ context.Context, owner toolgroups.GroupOwner, value []byte) error {
	s[owner] = value
	return nil
}

func (s mapStore) ListOwners(context.Context) iter.Seq2[toolgroups.GroupOwner, error] {
	return func(yield func(toolgroups.GroupOwner, error) bool) {
		for _, owner := range slices.Sorted(maps.Keys(s)) {
			if !yield(owner, nil) {
				return
			}
		}
	}
}

// Property: a definition is active if and only if it is offered as it was accepted, at
// the first contact or by AcceptTool, whatever was offered in between.
func TestPins_AgreesWithModel(t *testing.T) {
	const owner = toolgroups.GroupOwner("module:m")
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		store := mapStore{}
		accepted, offered := map[string]string(nil), map[string]string{}
		for step := range 40 {
			pins := modules.NewPinStore(store) // as after a restart
			if r.IntN(3) > 0 || accepted == nil {
				offered = randomOffer(r)
				if accepted == nil {
					accepted = maps.Clone(offered)
				}
				if _, err := pins.UpdateTools(t.Context(), owner, "m__", pinsOf(offered)); err != nil {
					t.Fatal(err)
				}
			} else if list, err := pins.ListQuarantine(t.Context()); err != nil {
				t.Fatal(err)
			} else if len(list) > 0 {
				w := list[r.IntN(len(list))]
				if _, err := pins.AcceptTool(t.Context(), owner, w.Name, w.Digest); err != nil {
					t.Fatal(err)
				}
				accepted[w.Offered.Tool] = w.Offered.Description
			}
			wantPinned(t, fmt.Sprintf("seed %d, step %d", seed, step), pins, owner, accepted, offered)
		}
	}
}

func randomOffer(r *rand.Rand) map[string]string {
	offer := map[string]string{}
	for range r.IntN(5) {
		offer[string(rune('a'+r.IntN(5)))] = fmt.Sprint(r.IntN(3))
	}
	return offer
}

func pinsOf(offer map[string]string) (list []modules.ToolPin) {
	for _, name := range slices.Sorted(maps.Keys(offer)) {
		list = append(list, modules.ToolPin{Tool: name, Description: offer[name], Input: json.RawMessage(`{"type":"object"}`)})
	}
	return list
}

// wantPinned compares the record of owner with a model: accepted and offered are
// descriptions by tool.
func wantPinned(t *testing.T, when string, pins *modules.PinStore, owner toolgroups.GroupOwner, accepted, offered map[string]string) {
	t.Helper()
	p, err := pins.ReadPins(t.Context(), owner)
	if err != nil || !p.Seen || p.Damaged {
		t.Fatalf("%s: %+v, %v", when, p, err)
	}
	active, pending := map[string]string{}, map[string]string{}
	for _, pin := range p.Active {
		active[pin.Tool] = pin.Description
	}
	for _, w := range p.Pending {
		pending[w.Offered.Tool] = w.Offered.Description
		if before, ok := accepted[w.Offered.Tool]; ok != (w.Accepted != nil) || ok && w.Accepted.Description != before {
			t.Errorf("%s: %+v was accepted as %q", when, w, before)
		}
	}
	wantActive, wantPending := map[string]string{}, map[string]string{}
	for name, text := range offered {
		if accepted[name] == text {
			wantActive[name] = text
		} else {
			wantPending[name] = text
		}
	}
	if diff := cmp.Diff(wantActive, active) + cmp.Diff(wantPending, pending); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", when, diff)
	}
}

// The digest depends on every part of a definition, and not on the order of keys and
// the white space of its JSON.
func TestPin_Digest(t *testing.T) {
	pin := modules.ToolPin{Tool: "a", Description: "d", Input: json.RawMessage(`{"type":"object","x":1.0}`)}
	same := pin
	same.Input = json.RawMessage(" {\"x\" : 1.0,\n\"type\":\"object\"}")
	if pin.Digest() != same.Digest() || len(pin.Digest()) != 64 {
		t.Errorf("%s and %s", pin.Digest(), same.Digest())
	}
	seen := map[string]int{pin.Digest(): -1}
	for i, other := range []modules.ToolPin{
		{}, {Tool: "a"}, {Kind: "a"}, {Description: "a"}, {Tool: "a", Kind: "d"},
		{Tool: "b", Description: "d", Input: pin.Input},
		{Tool: "a", Description: "d", Annotations: pin.Input},
		{Tool: "a", Description: "d", Input: json.RawMessage(`{"type":"object","x":1}`)},
		{Tool: "a", Description: "d", Input: json.RawMessage(`{"type":"object","x":1.0} `)}, // equal to pin
		{Tool: "a", Description: "d", Input: json.RawMessage(`{"type":"object","x":9007199254740993}`)},
		{Tool: "a", Description: "d", Input: json.RawMessage(`{"type":"object","x":9007199254740992}`)},
		{Tool: "a", Description: "d", Input: json.RawMessage(`{"type":"object","x":`)},
		{Tool: "a", Description: "d", Input: pin.Input, Listing: tool.Listing{Title: "t"}},
		{Tool: "a", Description: "d", Input: pin.Input, Listing: tool.Listing{Output: pin.Input}},
		{Tool: "a", Description: "d", Input: pin.Input, Listing: tool.Listing{Icons: pin.Input}},
		{Tool: "a", Description: "d", Input: pin.Input, Listing: tool.Listing{Meta: pin.Input}},
	} {
		if before, ok := seen[other.Digest()]; ok != (i == 8) {
			t.Errorf("%d has the digest of %d", i, before)
		}
		seen[other.Digest()] = i
	}
	kind := modules.ToolPin{Tool: "a", Kind: "k"}
	described := kind
	described.Description = "a description by the module"
	if described.Digest() != kind.Digest() {
		t.Error("the digest depends on the module's own description")
	}
}

// A watcher of an owner is called for each AcceptTool of that owner only.
func TestPins_Watch(t *testing.T) {
	pins := modules.NewPinStore(mapStore{})
	called := map[toolgroups.GroupOwner]int{}
	stop := pins.WatchOwner("a", func() { called["a"]++ })
	pins.WatchOwner("b", func() { called["b"]++ })
	for _, owner := range []toolgroups.GroupOwner{"a", "b"} {
		for _, offer := range []map[string]string{{}, {"x": "new", "y": "new"}} {
			if _, err := pins.UpdateTools(t.Context(), owner, "", pinsOf(offer)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := pins.ListQuarantine(t.Context())
	if err != nil || len(list) != 4 {
		t.Fatal(list, err)
	}
	for _, w := range list {
		if w.Owner == "a" && w.Name == "y" {
			stop()
		}
		if _, err := pins.AcceptTool(t.Context(), w.Owner, w.Name, w.Digest); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[toolgroups.GroupOwner]int{"a": 1, "b": 2}, called); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A watcher of the quarantine is called for each changed record of any owner.
func TestPins_WatchQuarantine(t *testing.T) {
	pins := modules.NewPinStore(mapStore{})
	called := 0
	stop := pins.WatchQuarantine(func() { called++ })
	offer := func(owner toolgroups.GroupOwner, texts map[string]string) {
		t.Helper()
		if _, err := pins.UpdateTools(t.Context(), owner, "", pinsOf(texts)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, n int) {
		t.Helper()
		if called != n {
			t.Errorf("%s: called %d times, want %d", when, called, n)
		}
	}
	offer("a", map[string]string{"x": "one"})
	want("first contact", 1)
	offer("a", map[string]string{"x": "one"})
	want("same offer", 1)
	offer("b", nil)
	offer("a", map[string]string{"x": "two"})
	want("changed offers", 3)
	list, err := pins.ListQuarantine(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := pins.AcceptTool(t.Context(), "a", "x", list[0].Digest); err != nil {
		t.Fatal(err)
	}
	want("accept", 4)
	stop()
	offer("a", map[string]string{"x": "three"})
	want("after stop", 4)
}

// Without a store no definition is active.
func TestPins_WithoutStore(t *testing.T) {
	pins := modules.NewPinStore(nil)
	if p, err := pins.UpdateTools(t.Context(), "a", "", pinsOf(map[string]string{"x": "x"})); errcode.CodeOf(err) != errcode.Internal || len(p.Active) > 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	if p, err := pins.ReadPins(t.Context(), "a"); err == nil || p.Seen || len(p.Active) > 0 {
		t.Errorf("got %+v, %v", p, err)
	}
}
