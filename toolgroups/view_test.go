package toolgroups_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// reference/trustgraph.md, "tool states": absent and "*" are every state, []
// is never; the state "" is "undefined".
func TestStates(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: []tool.Tool{
		in("analysis", "analysis"), stubs("every")[0], in("starred", "*"), in("never"), in("start", "undefined"),
		in("both", "undefined", "analysis"), in("starred_too", "analysis", "*"), in("empty", ""), in("case", "Analysis"),
	}})
	s := m.Snapshot()
	view := s.Compile(s.Bind(toolgroups.Of("g")))
	other := []string{"every", "starred", "starred_too"}
	tests := []struct {
		state string
		want  []string
	}{
		{"", []string{"every", "starred", "start", "both", "starred_too"}},
		{"undefined", []string{"every", "starred", "start", "both", "starred_too"}},
		{"analysis", []string{"analysis", "every", "starred", "both", "starred_too"}},
		{"Analysis", []string{"every", "starred", "starred_too", "case"}},
		{"analysis ", other},
		{"*", other},
		{"unheard of", other},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("state %q", tt.state), func(t *testing.T) {
			shelf := view.ForState(tt.state)
			if diff := cmp.Diff(names(shelf.Definitions()), tt.want); diff != "" {
				t.Errorf("got before want:\n%s", diff)
			}
			for _, h := range s.Tools() {
				if got := shelf.Has(h); got != slices.Contains(tt.want, h.Definition.Name) {
					t.Errorf("has %s: %v, unlike the list", h.Definition.Name, got)
				}
			}
			var wire []string
			for _, name := range gjson.GetBytes(shelf.JSON(), "#.function.name").Array() {
				wire = append(wire, name.Str)
			}
			if diff := cmp.Diff(wire, tt.want); diff != "" {
				t.Errorf("wire, got before want:\n%s", diff)
			}
		})
	}
	t.Run("names are those of any state, in order", func(t *testing.T) {
		want := []string{"analysis", "every", "starred", "start", "both", "starred_too", "case"}
		for range 20 {
			if diff := cmp.Diff(s.Compile(s.Bind(toolgroups.Of("g"))).Names(), want); diff != "" {
				t.Fatalf("got before want:\n%s", diff)
			}
		}
	})
	t.Run("a tool of no state is the role's and never visible", func(t *testing.T) {
		if h := lookup(t, s, "never"); !view.Has(h) {
			t.Error("the view does not know the tool")
		}
	})
	t.Run("without states there is one shelf", func(t *testing.T) {
		m := toolgroups.NewManager()
		register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a", "b")})
		s := m.Snapshot()
		view := s.Compile(s.Bind(toolgroups.Of("g")))
		if view.ForState("") != view.ForState("anything") {
			t.Error("states differ")
		}
		if diff := cmp.Diff(view.Names(), []string{"a", "b"}); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
	})
}

// The observed cases of TrustGraph's filter, each group a toolset. They list
// names in registration order, a View in the order of the groups asked for.
func TestTrustGraphCases(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "tool_filter.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := gjson.GetBytes(data, "filter").Array()
	if len(cases) != 20 {
		t.Fatalf("got %d cases, want 20", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Get("id").Str, func(t *testing.T) {
			m := toolgroups.NewManager()
			members := map[toolgroups.GroupID][]string{}
			c.Get("tools").ForEach(func(name, config gjson.Result) bool {
				register(t, m, toolgroups.Config, toolgroups.Group{ID: toolgroups.GroupID("own/" + name.Str), Tools: []tool.Tool{observed(name.Str, config)}})
				for _, id := range observedGroups(config) {
					members[id] = append(members[id], name.Str)
				}
				return true
			})
			for id, refs := range members {
				register(t, m, toolgroups.Config, toolgroups.Group{ID: id, Refs: refs})
			}
			asked := toolgroups.Of("default")
			if c.Get("groups").IsArray() {
				if err := json.Unmarshal([]byte(c.Get("groups").Raw), &asked); err != nil {
					t.Fatal(err)
				}
			}
			s := m.Snapshot()
			got := names(s.Compile(s.Bind(asked)).ForState(c.Get("state").Str).Definitions())
			want := []string{}
			for _, name := range c.Get("expected").Array() {
				want = append(want, name.Str)
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("%s, got before want:\n%s", c.Get("source").Str, diff)
			}
		})
	}
}

func observed(name string, config gjson.Result) tool.Tool {
	d := tool.Definition{Name: name, Input: json.RawMessage(anything), State: config.Get("state").Str}
	if states := config.Get("applicable-states"); states.Exists() {
		d.States = []string{}
		for _, s := range states.Array() {
			d.States = append(d.States, s.Str)
		}
	}
	return &stub{d}
}

func observedGroups(config gjson.Result) ids {
	if !config.Get("group").Exists() {
		return ids{"default"}
	}
	var list ids
	for _, id := range config.Get("group").Array() {
		list = append(list, toolgroups.GroupID(id.Str))
	}
	return list
}

func TestCompile(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g1", Tools: stubs("a", "b")})
	register(t, m, "o", toolgroups.Group{ID: "g2", Tools: stubs("c")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set", Refs: []string{"c", "a"}})
	s := m.Snapshot()
	of := func(ids ...toolgroups.GroupID) toolgroups.BoundSet { return s.Bind(toolgroups.Of(ids...)) }
	all := s.Bind(toolgroups.All())
	tests := []struct {
		name   string
		use    toolgroups.BoundSet
		limits []toolgroups.BoundSet
		want   []string
	}{
		{"a use alone, in its order", of("g2", "g1"), nil, []string{"c", "a", "b"}},
		{"All in the order of registration", all, nil, []string{"a", "b", "c"}},
		{"All under a limit", all, []toolgroups.BoundSet{of("g2")}, []string{"c"}},
		{"permission intersects tools, not ids", of("set"), []toolgroups.BoundSet{of("g1")}, []string{"a"}},
		{"every limit counts", all, []toolgroups.BoundSet{of("g1", "g2"), of("set"), of("g1")}, []string{"a"}},
		{"All is no limit", of("g1"), []toolgroups.BoundSet{all}, []string{"a", "b"}},
		{"a limit of nothing", all, []toolgroups.BoundSet{{}}, []string{}},
		{"a use of nothing", toolgroups.BoundSet{}, []toolgroups.BoundSet{all}, []string{}},
		{"an unknown id", of("nowhere"), nil, []string{}},
		{"ids that were never bound", toolgroups.BoundSet{Set: toolgroups.Of("g1")}, nil, []string{}},
		{"ids of another owner", toolgroups.BoundSet{Set: toolgroups.Of("g1"), Owners: map[toolgroups.GroupID]toolgroups.Owner{"g1": "p"}}, nil, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			view := s.Compile(tt.use, tt.limits...)
			if diff := cmp.Diff(names(view.ForState("").Definitions()), tt.want); diff != "" {
				t.Errorf("got before want:\n%s", diff)
			}
			for _, h := range s.Tools() {
				if view.Has(h) != slices.Contains(tt.want, h.Definition.Name) {
					t.Errorf("has %s: %v, unlike the list", h.Definition.Name, view.Has(h))
				}
			}
		})
	}
}

// Design §4: "Ids bind to their owner when written … another owner never
// inherits them."
func TestAnotherOwnerNeverInheritsABinding(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	bound := m.Snapshot().Bind(toolgroups.Of("g", "later"))
	if err := m.Unregister("o", "g"); err != nil {
		t.Fatal(err)
	}
	register(t, m, "p", toolgroups.Group{ID: "g", Tools: stubs("a")})
	register(t, m, "p", toolgroups.Group{ID: "later", Tools: stubs("b")})
	s := m.Snapshot()
	if got := s.Compile(bound).Names(); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
	if s.Covers(bound, "g") || s.Covers(bound, "later") || s.Covers(toolgroups.BoundSet{}, "g") {
		t.Error("it holds a group of another owner")
	}
	if all := s.Bind(toolgroups.All()); !s.Covers(all, "g") || s.Covers(all, "gone") {
		t.Error("all holds what is not there, or not all that is")
	}
	if err := m.Unregister("p", "g"); err != nil {
		t.Fatal(err)
	}
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	if s := m.Snapshot(); !s.Covers(bound, "g") || s.Covers(bound, "gone") {
		t.Error("it does not hold its group, or one that is not there")
	}
	if diff := cmp.Diff(m.Snapshot().Compile(bound).Names(), []string{"a"}); diff != "" {
		t.Errorf("back with its owner, got before want:\n%s", diff)
	}
}

// A View that was compiled before a tool went away never lets the one through
// that gets its index.
func TestAnOldViewNeverLetsANewToolThrough(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("old", "limited")})
	s := m.Snapshot()
	views := []*toolgroups.View{s.Compile(s.Bind(toolgroups.Of("g"))), s.Compile(s.Bind(toolgroups.All()))}
	for i := range 50 {
		if err := m.Unregister("o", "g"); i == 0 && err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("new%d", i)
		register(t, m, "p", toolgroups.Group{ID: "danger", Tools: []tool.Tool{stubs(name)[0], in(name+"s", "x")}})
		for _, h := range m.Snapshot().Tools() {
			for _, v := range views {
				if v.Has(h) || v.ForState("").Has(h) || v.ForState("x").Has(h) {
					t.Fatalf("a view from before lets %s through", h.Definition.Name)
				}
			}
		}
	}
}

func TestAToolRegisteredAgainIsAnother(t *testing.T) {
	m := toolgroups.NewManager()
	g := toolgroups.Group{ID: "g", Tools: stubs("a")}
	register(t, m, "o", g)
	s := m.Snapshot()
	view := s.Compile(s.Bind(toolgroups.Of("g")))
	register(t, m, "o", g)
	if h := lookup(t, m.Snapshot(), "a"); view.Has(h) || h == lookup(t, s, "a") {
		t.Error("the view from before knows the new tool")
	}
}

func TestTheZeroViewAndSlotLetNothingThrough(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	h := lookup(t, m.Snapshot(), "a")
	var slot toolgroups.ViewRef
	for name, view := range map[string]*toolgroups.View{"view": {}, "slot": slot.View()} {
		shelf := view.ForState("")
		if view.Has(h) || shelf.Has(h) || len(view.Names()) != 0 || len(shelf.Definitions()) != 0 || string(shelf.JSON()) != "[]" {
			t.Errorf("a zero %s lets something through", name)
		}
	}
	s := m.Snapshot()
	slot.Publish(s.Compile(s.Bind(toolgroups.All())))
	if !slot.View().Has(h) {
		t.Error("a published view is not in force")
	}
}

// Whatever the registry does meanwhile, a reader that takes the View and then
// looks a tool up never gets one of a group it was not given.
func TestReadersNeverSeeMoreThanTheirsWhileTheRegistryChanges(t *testing.T) {
	m := toolgroups.NewManager()
	var slot toolgroups.ViewRef
	register(t, m, "o", toolgroups.Group{ID: "mine", Tools: stubs("m")})
	bound := m.Snapshot().Bind(toolgroups.Of("mine"))
	m.Watch(func([]toolgroups.GroupID) { slot.Publish(m.Snapshot().Compile(bound)) })
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				view := slot.View()
				for _, name := range []string{"m", "t0", "t1", "t2"} {
					if h, ok := m.Snapshot().Lookup(name); ok && view.ForState("").Has(h) && h.Group != "mine" {
						t.Errorf("got %s of %s through", name, h.Group)
						return
					}
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 5))
	for i := range 2000 {
		register(t, m, "o", toolgroups.Group{ID: "mine", Tools: stubs("m")})
		id := toolgroups.GroupID(fmt.Sprintf("danger%d", r.IntN(3)))
		if i%2 == 0 {
			register(t, m, "p", toolgroups.Group{ID: id, Tools: stubs("t" + strings.TrimPrefix(string(id), "danger"))})
		} else {
			_ = m.Unregister("p", id)
		}
	}
	close(stop)
	readers.Wait()
}

func TestAskingAViewAllocatesNothing(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: []tool.Tool{stubs("a")[0], in("b", "x")}})
	s := m.Snapshot()
	view := s.Compile(s.Bind(toolgroups.Of("g")))
	got := testing.AllocsPerRun(100, func() {
		h, _ := m.Snapshot().Lookup("a")
		_ = view.ForState("x").Has(h) && view.Has(h)
	})
	if got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func BenchmarkRegister(b *testing.B) {
	m := toolgroups.NewManager()
	for i := range 5000 {
		register(b, m, "o", toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprintf("g%d", i)), Tools: stubs(fmt.Sprintf("t%d", i))})
	}
	for b.Loop() {
		register(b, m, "o", toolgroups.Group{ID: "g7", Tools: stubs("t7")})
	}
}
