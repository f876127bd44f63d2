package toolgroups_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/toolgroups"
)

// stubPrompt is a prompt without arguments, with its name as its only message.
type stubPrompt string

func (p stubPrompt) Name() string                           { return string(p) }
func (p stubPrompt) Description() string                    { return "d" }
func (p stubPrompt) Fingerprint() string                    { return string(p) }
func (p stubPrompt) Arguments() []toolgroups.PromptArgument { return nil }
func (p stubPrompt) Messages(map[string]string) ([]toolgroups.PromptMessage, error) {
	return []toolgroups.PromptMessage{{Role: "user", Text: string(p)}}, nil
}

func promptNames(list []toolgroups.Prompt) (names []string) {
	for _, p := range list {
		names = append(names, p.Name())
	}
	return names
}

func TestView_Prompts(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "ann", toolgroups.Group{ID: "a", Tools: stubs("one"), Prompts: []toolgroups.Prompt{stubPrompt("z"), stubPrompt("b")}})
	register(t, m, "ann", toolgroups.Group{ID: "b", Prompts: []toolgroups.Prompt{stubPrompt("b")}})
	view := func(use toolgroups.GroupSet) *toolgroups.View {
		return m.CurrentSnapshot().Compile(m.CurrentSnapshot().PinOwners(use))
	}
	both := view(toolgroups.SetOf("a", "b", "none"))
	for within, want := range map[toolgroups.GroupID][]string{"": {"b", "z"}, "a": {"b", "z"}, "b": {"b"}, "none": nil} {
		if diff := cmp.Diff(want, promptNames(both.ListPrompts(within))); diff != "" {
			t.Errorf("within %q (-want +got):\n%s", within, diff)
		}
	}
	if got := promptNames(view(toolgroups.SetOf("b")).ListPrompts("")); !slices.Equal(got, []string{"b"}) {
		t.Errorf("of b: %v", got)
	}
	if got := promptNames(view(toolgroups.SetOf("b")).ListPrompts("a")); got != nil {
		t.Errorf("of b, within a: %v", got)
	}
	if err := grouptest.ReplaceTools(m, "ann", "a", stubs("two")); err != nil {
		t.Fatal(err)
	}
	if got := promptNames(view(toolgroups.SetOf("a")).ListPrompts("")); !slices.Equal(got, []string{"b", "z"}) {
		t.Errorf("after an update of the tools: %v", got)
	}
	if got := (&toolgroups.View{}).ListPrompts(""); got != nil {
		t.Errorf("the zero View has %v", promptNames(got))
	}
	if got := (&toolgroups.ViewRef{}).CurrentView().ListPrompts(""); got != nil {
		t.Errorf("the zero ViewRef has %v", promptNames(got))
	}
}

// A View has a prompt if and only if the prompt is in a group that the use and all
// limits contain. The group must have the owner to which they are pinned, and the
// owner to which they are restricted. The model follows this definition.
func TestView_PromptsAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	ids := []toolgroups.GroupID{"a", "b", "c", "d"}
	owners := []toolgroups.GroupOwner{"ann", "ben"}
	texts := []toolgroups.Prompt{stubPrompt("p"), stubPrompt("q"), stubPrompt("r")}
	for range 2000 {
		m, holds, lists := toolgroups.NewManager(), map[toolgroups.GroupID]toolgroups.GroupOwner{}, map[toolgroups.GroupID][]toolgroups.Prompt{}
		for _, id := range ids {
			if r.IntN(4) == 0 {
				continue
			}
			holds[id] = owners[r.IntN(2)]
			for _, p := range texts {
				if r.IntN(2) == 0 {
					lists[id] = append(lists[id], p)
				}
			}
			register(t, m, holds[id], toolgroups.Group{ID: id, Prompts: lists[id]})
		}
		sets := make([]toolgroups.PinnedSet, 1+r.IntN(3))
		for i := range sets {
			sets[i] = randomPinnedSet(r, ids, owners)
		}
		want := map[string]bool{}
		for _, id := range ids {
			all := holds[id] != ""
			for _, b := range sets {
				all = all && (b.Set.IsAll() || b.Set.Has(id) && b.Owners[id] == holds[id]) && (b.Only == "" || b.Only == holds[id])
			}
			for _, p := range lists[id] {
				want[p.Name()] = want[p.Name()] || all
			}
		}
		got := m.CurrentSnapshot().Compile(sets[0], sets[1:]...).ListPrompts("")
		for _, p := range texts {
			if slices.Contains(got, p) != want[p.Name()] {
				t.Fatalf("seed %d: has %s: %v, want %v; groups %v %v, sets %+v", seed, p.Name(), !want[p.Name()], want[p.Name()], holds, lists, sets)
			}
		}
	}
}

func randomPinnedSet(r *rand.Rand, ids []toolgroups.GroupID, owners []toolgroups.GroupOwner) toolgroups.PinnedSet {
	b := toolgroups.PinnedSet{Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{}}
	var some []toolgroups.GroupID
	for _, id := range ids {
		if r.IntN(3) > 0 {
			some = append(some, id)
		}
		if r.IntN(5) > 0 {
			b.Owners[id] = owners[r.IntN(2)]
		}
	}
	if b.Set = toolgroups.SetOf(some...); r.IntN(4) == 0 {
		b.Set = toolgroups.AllGroups()
	}
	if r.IntN(4) == 0 {
		b.Only = owners[r.IntN(2)]
	}
	return b
}
