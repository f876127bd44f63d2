package identity_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rolecall/rolecall/identity"
)

func Example() {
	fmt.Println(identity.ByAgent("a1"), identity.ByCaller("ann", "guest"), identity.ByOperator("me"), identity.Principal{})
	fmt.Println(identity.DeriveID("call 1", "agent"))
	// Output:
	// agent:a1 user:ann@guest operator nobody
	// 7d0de922-b027-5a1a-8335-31a74b97e7f6
}

func TestPrincipal_String(t *testing.T) {
	tests := []struct {
		name string
		p    identity.Principal
		want string
	}{
		{"agent", identity.ByAgent("a"), "agent:a"},
		{"caller", identity.ByCaller("u", "r"), "user:u@r"},
		{"operator", identity.ByOperator("u"), "operator"},
		{"configuration", identity.Principal{Kind: identity.Configuration}, "config"},
		{"zero Principal", identity.Principal{}, "nobody"},
		{"unknown kind", identity.Principal{Kind: 77, Agent: "a"}, "nobody"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The same parts have the same id, and different lists of parts have different ids.
func TestDerive(t *testing.T) {
	lists := [][]string{
		nil, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab"}, {"a\x00b"}, {"a\x00", "b"}, {"a", "\x00b"}, {"a\x00b\x00"}, {"a", "b", ""},
		{"\x00"}, {"\x01"}, {"\x01\x01"}, {"\x01\x02"}, {"a", "\x01b"}, {"a\x01", "b"}, {"a\x01b"}, {"a\x00\x01b"}, {"A"}, {"é"}, {"e\u0301"},
	}
	seen := map[string][]string{}
	for _, parts := range lists {
		id := identity.DeriveID(parts...)
		if id != identity.DeriveID(slices.Clone(parts)...) {
			t.Errorf("%q has two ids", parts)
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q share an id", parts, other)
		}
		seen[id] = parts
		if u, err := uuid.Parse(id); err != nil || u.Version() != 5 {
			t.Errorf("%q: got %s, want a uuid v5", parts, id)
		}
	}
}

func TestNewID_UniqueAndSorted(t *testing.T) {
	var list []string
	for range 1000 {
		list = append(list, identity.NewID())
	}
	if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Error("ids repeat or are not in order")
	}
	if u, err := uuid.Parse(list[0]); err != nil || u.Version() != 7 {
		t.Errorf("got %s, want a uuid v7", list[0])
	}
	var wait sync.WaitGroup
	var seen sync.Map
	for range 8 {
		wait.Go(func() {
			for range 200 {
				if _, twice := seen.LoadOrStore(identity.NewID(), true); twice {
					t.Error("got the same id twice")
				}
			}
		})
	}
	wait.Wait()
}

// Ids that are derived from an id sort next to it, and do not collide.
func TestDerive_SortsByAge(t *testing.T) {
	first := time.UnixMilli(1_700_000_000_000)
	var calls []string
	for i := range 100 {
		calls = append(calls, identity.DeriveIDAt(first.Add(time.Duration(i)*time.Millisecond), "agent", fmt.Sprint(i)))
	}
	if !slices.IsSorted(calls) {
		t.Error("later calls sort before earlier ones")
	}
	seen := map[string]bool{}
	for _, call := range append(calls, identity.NewID()) {
		for _, what := range []string{"agent", "message"} {
			id := identity.DeriveID(call, what)
			if id[:13] != call[:13] || id[14] != '8' || id == call || seen[id] || id != identity.DeriveID(call, what) {
				t.Errorf("of %s: got %s", call, id)
			}
			seen[id] = true
		}
	}
	if a, b := identity.DeriveIDAt(first, "x"), identity.DeriveIDAt(first, "y"); a == b || uuid.MustParse(a).Version() != 8 {
		t.Errorf("got %s and %s", a, b)
	}
}

// ParseCaller inverts String for external callers, also for names with "@", and for no other.
func TestParseCaller(t *testing.T) {
	for _, p := range []identity.Principal{identity.ByCaller("ann", "r1"), identity.ByCaller("ann@example.com", "r1"), identity.ByCaller("user:x", "r")} {
		if got, external := identity.ParseCaller(p.String()); !external || got != p {
			t.Errorf("%s: got %+v, %v", p, got, external)
		}
	}
	for _, text := range []string{"", "operator", "config", "agent:a@b", "user:ann", "ann@r1", identity.ByAgent("a").String()} {
		if got, external := identity.ParseCaller(text); external || got != (identity.Principal{}) {
			t.Errorf("%q: got %+v, %v", text, got, external)
		}
	}
}
