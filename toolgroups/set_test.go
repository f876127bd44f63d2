package toolgroups_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/toolgroups"
)

type ids = []toolgroups.GroupID

func TestSet(t *testing.T) {
	tests := []struct {
		name   string
		set    toolgroups.GroupSet
		text   string
		json   string
		ids    ids
		all    bool
		covers bool // the GroupSet of "a"
	}{
		{"zero Set", toolgroups.GroupSet{}, "-", `[]`, nil, false, false},
		{"Set of no ids", toolgroups.SetOf(), "-", `[]`, ids{}, false, false},
		{"order and repetitions", toolgroups.SetOf("b", "a", "b"), "b,a", `["b","a"]`, ids{"b", "a"}, false, true},
		{"All", toolgroups.AllGroups(), "*", `["*"]`, nil, true, true},
		{"star among ids", toolgroups.SetOf("b", "*"), "*", `["*"]`, nil, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data, err := json.Marshal(tt.set)
			if err != nil || string(data) != tt.json {
				t.Errorf("got JSON %s, %v, want %s", data, err, tt.json)
			}
			var back toolgroups.GroupSet
			if err := json.Unmarshal(data, &back); err != nil || !back.Equal(tt.set) {
				t.Errorf("got %v, %v back, want %v", back, err, tt.set)
			}
			if got := tt.set.String(); got != tt.text {
				t.Errorf("got %q, want %q", got, tt.text)
			}
			if diff := cmp.Diff(tt.set.GroupIDs(), tt.ids); diff != "" {
				t.Errorf("ids, got before want:\n%s", diff)
			}
			if tt.set.IsAll() != tt.all || tt.set.Covers(toolgroups.SetOf("a")) != tt.covers || tt.set.Has("a") != tt.covers {
				t.Errorf("got IsAll %v, Covers %v, Has %v", tt.set.IsAll(), tt.set.Covers(toolgroups.SetOf("a")), tt.set.Has("a"))
			}
		})
	}
}

func TestSet_UnmarshalJSON(t *testing.T) {
	tests := []struct {
		name, doc, want string
		ok              bool
	}{
		{"null", `null`, "-", true},
		{"list of strings", `["","a "]`, ",a ", true},
		{"string", `"*"`, "a", false},
		{"number in the list", `["b",1]`, "a", false},
		{"object", `{"*":true}`, "a", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := toolgroups.SetOf("a")
			if err := json.Unmarshal([]byte(tt.doc), &s); (err == nil) != tt.ok || s.String() != tt.want {
				t.Errorf("got %q, %v, want %q, ok %v", s, err, tt.want, tt.ok)
			}
		})
	}
}

func TestSet_OnlyAllCoversAll(t *testing.T) {
	every := toolgroups.SetOf(toolgroups.ReservedIDs()...)
	if every.Covers(toolgroups.AllGroups()) {
		t.Error("a list covers All")
	}
	if diff := cmp.Diff(every.MissingFrom(toolgroups.AllGroups()), ids{"*"}); diff != "" {
		t.Errorf("missing, got before want:\n%s", diff)
	}
	if !toolgroups.AllGroups().Covers(toolgroups.AllGroups()) || !toolgroups.AllGroups().Covers(every) {
		t.Error("All does not cover everything")
	}
}

// The operations on Sets agree with those on sets of a small universe.
func TestSet_AgainstModel(t *testing.T) {
	universe := ids{"a", "b", "c", "d", "later"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		x, mx := randomSet(r, universe)
		y, my := randomSet(r, universe)
		both, covers := x.Intersect(y), true
		for _, id := range universe {
			if got := both.Has(id); got != (mx[id] && my[id]) {
				t.Errorf("seed %d: (%v ∩ %v).Has(%s) is %v", seed, x, y, id, got)
			}
			if missing := slices.Contains(x.MissingFrom(y), id); !y.IsAll() && missing != (my[id] && !mx[id]) {
				t.Errorf("seed %d: %v.Missing(%v) has %s: %v", seed, x, y, id, missing)
			}
			covers = covers && (mx[id] || !my[id])
		}
		if y.IsAll() {
			covers = x.IsAll()
		}
		if got := x.Covers(y); got != covers {
			t.Errorf("seed %d: %v.Covers(%v) is %v", seed, x, y, got)
		}
		if got := x.Equal(y); got != (x.Covers(y) && y.Covers(x)) || got != y.Equal(x) {
			t.Errorf("seed %d: %v.Equal(%v) is %v", seed, x, y, got)
		}
	}
}

func randomSet(r *rand.Rand, universe ids) (toolgroups.GroupSet, map[toolgroups.GroupID]bool) {
	model := map[toolgroups.GroupID]bool{}
	if r.IntN(4) == 0 {
		for _, id := range universe {
			model[id] = true
		}
		return toolgroups.AllGroups(), model
	}
	var list ids
	for _, i := range r.Perm(len(universe) - 1)[:r.IntN(len(universe))] {
		model[universe[i]] = true
		list = append(list, universe[i])
	}
	return toolgroups.SetOf(list...), model
}

func TestGroupSet_Names(t *testing.T) {
	for _, tt := range []struct {
		set  toolgroups.GroupSet
		want []string
	}{{toolgroups.AllGroups(), []string{"*"}}, {toolgroups.SetOf(), []string{}}, {toolgroups.SetOf("b", "a", "b"), []string{"b", "a"}}} {
		if diff := cmp.Diff(tt.want, tt.set.Names()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.set, diff)
		}
	}
}

// A list of very many ids becomes a set in time that grows with its length.
func TestSetOf_VeryMany(t *testing.T) {
	const n = 200_000
	ids := make([]toolgroups.GroupID, 0, 2*n)
	for i := range 2 * n {
		ids = append(ids, toolgroups.GroupID(fmt.Sprint("g", i%n)))
	}
	got := toolgroups.SetOf(ids...).GroupIDs()
	if !slices.Equal(got, ids[:n]) {
		t.Errorf("%d ids", len(got))
	}
}
