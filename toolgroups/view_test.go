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

	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A tool without States, or with the state "*", is visible in every state. A tool with
// an empty list is visible in no state. The state "" is "undefined".
func TestStateView_States(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: []tool.Tool{
		toolInStates("analysis", "analysis"), stubs("every")[0], toolInStates("starred", "*"), toolInStates("never"), toolInStates("start", "undefined"),
		toolInStates("both", "undefined", "analysis"), toolInStates("starred_too", "analysis", "*"), toolInStates("empty", ""), toolInStates("case", "Analysis"),
	}})
	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("g")))
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
			sv := view.ForState(tt.state)
			if diff := cmp.Diff(names(sv.ToolDefinitions()), tt.want); diff != "" {
				t.Errorf("got before want:\n%s", diff)
			}
			if diff := cmp.Diff(sv.ToolNames(), tt.want); diff != "" {
				t.Errorf("names, got before want:\n%s", diff)
			}
			for _, h := range s.ListTools() {
				if got := sv.HasTool(h); got != slices.Contains(tt.want, h.Definition.Name) {
					t.Errorf("has %s: %v, unlike the list", h.Definition.Name, got)
				}
			}
			var inJSON []string
			for _, name := range gjson.GetBytes(sv.ToolJSON(), "#.function.name").Array() {
				inJSON = append(inJSON, name.Str)
			}
			if diff := cmp.Diff(inJSON, tt.want); diff != "" {
				t.Errorf("JSON, got before want:\n%s", diff)
			}
		})
	}
	t.Run("Names of all states", func(t *testing.T) {
		want := []string{"analysis", "every", "starred", "start", "both", "starred_too", "case"}
		for range 20 {
			if diff := cmp.Diff(s.Compile(s.PinOwners(toolgroups.SetOf("g"))).ToolNames(), want); diff != "" {
				t.Fatalf("got before want:\n%s", diff)
			}
		}
	})
	t.Run("tool without a visible state", func(t *testing.T) {
		if h := lookup(t, s, "never"); !view.HasTool(h) {
			t.Error("the view does not know the tool")
		}
	})
	t.Run("no states", func(t *testing.T) {
		m := toolgroups.NewManager()
		register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a", "b")})
		s := m.CurrentSnapshot()
		view := s.Compile(s.PinOwners(toolgroups.SetOf("g")))
		if view.ForState("") != view.ForState("anything") {
			t.Error("states differ")
		}
		if diff := cmp.Diff(view.ToolNames(), []string{"a", "b"}); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
	})
}

// Recorded cases of TrustGraph's tool filter, with each of its groups as a toolset.
// The cases list names in registration order, a View in the order of its groups, so
// both are sorted before they are compared.
func TestStateView_TrustGraphCases(t *testing.T) {
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
				register(t, m, toolgroups.Config, toolgroups.Group{ID: toolgroups.GroupID("own/" + name.Str), Tools: []tool.Tool{observedTool(name.Str, config)}})
				for _, id := range observedGroups(config) {
					members[id] = append(members[id], name.Str)
				}
				return true
			})
			for id, refs := range members {
				register(t, m, toolgroups.Config, toolgroups.Group{ID: id, Refs: refs})
			}
			asked := toolgroups.SetOf("default")
			if c.Get("groups").IsArray() {
				if err := json.Unmarshal([]byte(c.Get("groups").Raw), &asked); err != nil {
					t.Fatal(err)
				}
			}
			s := m.CurrentSnapshot()
			got := names(s.Compile(s.PinOwners(asked)).ForState(c.Get("state").Str).ToolDefinitions())
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

func observedTool(name string, config gjson.Result) tool.Tool {
	d := tool.Definition{Name: name, Input: json.RawMessage(anyObject), State: config.Get("state").Str}
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

func TestSnapshot_Compile(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g1", Tools: stubs("a", "b")})
	register(t, m, "o", toolgroups.Group{ID: "g2", Tools: stubs("c")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "set", Refs: []string{"c", "a"}})
	s := m.CurrentSnapshot()
	of := func(ids ...toolgroups.GroupID) toolgroups.PinnedSet { return s.PinOwners(toolgroups.SetOf(ids...)) }
	all := s.PinOwners(toolgroups.AllGroups())
	tests := []struct {
		name   string
		use    toolgroups.PinnedSet
		limits []toolgroups.PinnedSet
		want   []string
	}{
		{"use without limits", of("g2", "g1"), nil, []string{"c", "a", "b"}},
		{"All, in registration order", all, nil, []string{"a", "b", "c"}},
		{"All with a limit", all, []toolgroups.PinnedSet{of("g2")}, []string{"c"}},
		{"intersection of tools, not of ids", of("set"), []toolgroups.PinnedSet{of("g1")}, []string{"a"}},
		{"several limits", all, []toolgroups.PinnedSet{of("g1", "g2"), of("set"), of("g1")}, []string{"a"}},
		{"limit of All", of("g1"), []toolgroups.PinnedSet{all}, []string{"a", "b"}},
		{"empty limit", all, []toolgroups.PinnedSet{{}}, []string{}},
		{"empty use", toolgroups.PinnedSet{}, []toolgroups.PinnedSet{all}, []string{}},
		{"unknown id", of("nowhere"), nil, []string{}},
		{"ids that are not pinned", toolgroups.PinnedSet{Set: toolgroups.SetOf("g1")}, nil, []string{}},
		{"ids pinned to another owner", toolgroups.PinnedSet{Set: toolgroups.SetOf("g1"), Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{"g1": "p"}}, nil, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			view := s.Compile(tt.use, tt.limits...)
			if diff := cmp.Diff(names(view.ForState("").ToolDefinitions()), tt.want); diff != "" {
				t.Errorf("got before want:\n%s", diff)
			}
			for _, h := range s.ListTools() {
				if view.HasTool(h) != slices.Contains(tt.want, h.Definition.Name) {
					t.Errorf("has %s: %v, unlike the list", h.Definition.Name, view.HasTool(h))
				}
			}
		})
	}
}

// Ids are pinned to their owner when the GroupSet is written. A group that another owner
// registers under the same id is not in the PinnedSet.
func TestPinnedSet_OtherOwnerDoesNotInherit(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	pinned := m.CurrentSnapshot().PinOwners(toolgroups.SetOf("g", "later"))
	if err := grouptest.UnregisterGroup(m, "o", "g"); err != nil {
		t.Fatal(err)
	}
	register(t, m, "p", toolgroups.Group{ID: "g", Tools: stubs("a")})
	register(t, m, "p", toolgroups.Group{ID: "later", Tools: stubs("b")})
	s := m.CurrentSnapshot()
	if got := s.Compile(pinned).ToolNames(); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
	if s.CoversGroup(pinned, "g") || s.CoversGroup(pinned, "later") || s.CoversGroup(toolgroups.PinnedSet{}, "g") {
		t.Error("the PinnedSet covers a group of another owner")
	}
	if all := s.PinOwners(toolgroups.AllGroups()); !s.CoversGroup(all, "g") || s.CoversGroup(all, "gone") {
		t.Error("All covers an unknown group, or does not cover a group")
	}
	if err := grouptest.UnregisterGroup(m, "p", "g"); err != nil {
		t.Fatal(err)
	}
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	if s := m.CurrentSnapshot(); !s.CoversGroup(pinned, "g") || s.CoversGroup(pinned, "gone") {
		t.Error("the PinnedSet does not cover its group, or covers an unknown one")
	}
	if diff := cmp.Diff(m.CurrentSnapshot().Compile(pinned).ToolNames(), []string{"a"}); diff != "" {
		t.Errorf("registered by the first owner again, got before want:\n%s", diff)
	}
}

// A View that was compiled before a tool was removed does not allow the tool that gets
// its index.
func TestView_ReusedIndexDenied(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("old", "limited")})
	s := m.CurrentSnapshot()
	views := []*toolgroups.View{s.Compile(s.PinOwners(toolgroups.SetOf("g"))), s.Compile(s.PinOwners(toolgroups.AllGroups()))}
	for i := range 50 {
		if err := grouptest.UnregisterGroup(m, "o", "g"); i == 0 && err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("new%d", i)
		register(t, m, "p", toolgroups.Group{ID: "danger", Tools: []tool.Tool{stubs(name)[0], toolInStates(name+"s", "x")}})
		for _, h := range m.CurrentSnapshot().ListTools() {
			for _, v := range views {
				if v.HasTool(h) || v.ForState("").HasTool(h) || v.ForState("x").HasTool(h) {
					t.Fatalf("an older View allows %s", h.Definition.Name)
				}
			}
		}
	}
}

func TestView_DoesNotKnowReregisteredTool(t *testing.T) {
	m := toolgroups.NewManager()
	g := toolgroups.Group{ID: "g", Tools: stubs("a")}
	register(t, m, "o", g)
	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("g")))
	register(t, m, "o", g)
	if h := lookup(t, m.CurrentSnapshot(), "a"); view.HasTool(h) || h == lookup(t, s, "a") {
		t.Error("an older View allows the new registration")
	}
}

func TestView_ZeroValueDenies(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	h := lookup(t, m.CurrentSnapshot(), "a")
	var ref toolgroups.ViewRef
	for name, view := range map[string]*toolgroups.View{"View": {}, "ViewRef": ref.CurrentView()} {
		sv := view.ForState("")
		if view.HasTool(h) || sv.HasTool(h) || len(view.ToolNames()) != 0 || len(sv.ToolDefinitions()) != 0 || string(sv.ToolJSON()) != "[]" {
			t.Errorf("the zero %s allows something", name)
		}
	}
	s := m.CurrentSnapshot()
	ref.PublishView(s.Compile(s.PinOwners(toolgroups.AllGroups())))
	if !ref.CurrentView().HasTool(h) {
		t.Error("a published View is not the current one")
	}
}

// A reader that loads the View and then looks up a tool is never allowed a tool of
// another group, whatever changes in the registry at the same time.
func TestView_ConcurrentRegistryChanges(t *testing.T) {
	m := toolgroups.NewManager()
	var ref toolgroups.ViewRef
	register(t, m, "o", toolgroups.Group{ID: "mine", Tools: stubs("m")})
	pinned := m.CurrentSnapshot().PinOwners(toolgroups.SetOf("mine"))
	m.WatchGroups(func([]toolgroups.GroupID) { ref.PublishView(m.CurrentSnapshot().Compile(pinned)) })
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
				view := ref.CurrentView()
				for _, name := range []string{"m", "t0", "t1", "t2"} {
					if h, ok := m.CurrentSnapshot().LookupTool(name); ok && view.ForState("").HasTool(h) && h.Group != "mine" {
						t.Errorf("%s of %s is allowed", name, h.Group)
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
			_ = grouptest.UnregisterGroup(m, "p", id)
		}
	}
	close(stop)
	readers.Wait()
}

func TestView_DoesNotAllocate(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: []tool.Tool{stubs("a")[0], toolInStates("b", "x")}})
	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("g")))
	got := testing.AllocsPerRun(100, func() {
		h, _ := m.CurrentSnapshot().LookupTool("a")
		_ = view.ForState("x").HasTool(h) && view.HasTool(h)
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
