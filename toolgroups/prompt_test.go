package toolgroups_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/parameter"
	"github.com/rolecall/rolecall/toolgroups"
)

func prompt(t testing.TB, name, text string, arguments ...parameter.Spec) *toolgroups.Prompt {
	t.Helper()
	set, problems := parameter.Compile(parameter.Options{}, arguments, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	p, err := toolgroups.NewPrompt(name, "d", text, set, []toolgroups.Message{{Role: "user", Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func promptNames(list []*toolgroups.Prompt) (names []string) {
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names
}

func TestView_Prompts(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "ann", toolgroups.Group{ID: "a", Tools: stubs("one"), Prompts: []*toolgroups.Prompt{prompt(t, "z", "Z"), prompt(t, "b", "B")}})
	register(t, m, "ann", toolgroups.Group{ID: "b", Prompts: []*toolgroups.Prompt{prompt(t, "b", "B")}})
	view := func(use toolgroups.Set) *toolgroups.View { return m.Snapshot().Compile(m.Snapshot().BindSet(use)) }
	both := view(toolgroups.Of("a", "b", "none"))
	for within, want := range map[toolgroups.GroupID][]string{"": {"b", "z"}, "a": {"b", "z"}, "b": {"b"}, "none": nil} {
		if diff := cmp.Diff(want, promptNames(both.Prompts(within))); diff != "" {
			t.Errorf("within %q (-want +got):\n%s", within, diff)
		}
	}
	if got := promptNames(view(toolgroups.Of("b")).Prompts("")); !slices.Equal(got, []string{"b"}) {
		t.Errorf("of b: %v", got)
	}
	if got := promptNames(view(toolgroups.Of("b")).Prompts("a")); got != nil {
		t.Errorf("of b, within a: %v", got)
	}
	if err := m.Update("ann", "a", stubs("two")); err != nil {
		t.Fatal(err)
	}
	if got := promptNames(view(toolgroups.Of("a")).Prompts("")); !slices.Equal(got, []string{"b", "z"}) {
		t.Errorf("after an update of the tools: %v", got)
	}
	if got := (&toolgroups.View{}).Prompts(""); got != nil {
		t.Errorf("the zero View has %v", promptNames(got))
	}
	if got := (&toolgroups.ViewRef{}).CurrentView().Prompts(""); got != nil {
		t.Errorf("the zero ViewRef has %v", promptNames(got))
	}
}

// A View has a prompt if and only if the prompt is in a group that the use and all
// limits contain. The group must have the owner to which they are bound, and the
// owner to which they are restricted. The model follows this definition.
func TestView_PromptsAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	ids := []toolgroups.GroupID{"a", "b", "c", "d"}
	owners := []toolgroups.Owner{"ann", "ben"}
	texts := []*toolgroups.Prompt{prompt(t, "p", "P"), prompt(t, "q", "Q"), prompt(t, "r", "R")}
	for range 2000 {
		m, holds, lists := toolgroups.NewManager(), map[toolgroups.GroupID]toolgroups.Owner{}, map[toolgroups.GroupID][]*toolgroups.Prompt{}
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
		bindings := make([]toolgroups.BoundSet, 1+r.IntN(3))
		for i := range bindings {
			bindings[i] = randomBoundSet(r, ids, owners)
		}
		want := map[string]bool{}
		for _, id := range ids {
			all := holds[id] != ""
			for _, b := range bindings {
				all = all && (b.Set.IsAll() || b.Set.Has(id) && b.Owners[id] == holds[id]) && (b.Only == "" || b.Only == holds[id])
			}
			for _, p := range lists[id] {
				want[p.Name] = want[p.Name] || all
			}
		}
		got := m.Snapshot().Compile(bindings[0], bindings[1:]...).Prompts("")
		for _, p := range texts {
			if slices.Contains(got, p) != want[p.Name] {
				t.Fatalf("seed %d: has %s: %v, want %v; groups %v %v, bindings %+v", seed, p.Name, !want[p.Name], want[p.Name], holds, lists, bindings)
			}
		}
	}
}

func randomBoundSet(r *rand.Rand, ids []toolgroups.GroupID, owners []toolgroups.Owner) toolgroups.BoundSet {
	b := toolgroups.BoundSet{Owners: map[toolgroups.GroupID]toolgroups.Owner{}}
	var some []toolgroups.GroupID
	for _, id := range ids {
		if r.IntN(3) > 0 {
			some = append(some, id)
		}
		if r.IntN(5) > 0 {
			b.Owners[id] = owners[r.IntN(2)]
		}
	}
	if b.Set = toolgroups.Of(some...); r.IntN(4) == 0 {
		b.Set = toolgroups.All()
	}
	if r.IntN(4) == 0 {
		b.Only = owners[r.IntN(2)]
	}
	return b
}

func TestPrompt_Messages(t *testing.T) {
	no := false
	p := prompt(t, "p", "{{.a}}{{if .b}}, {{.b}}{{end}} {{.m}} {{.n}}", parameter.Spec{Name: "a", Type: "string", Description: "d", Excluded: []parameter.Literal{{Text: "bad"}}},
		parameter.Spec{Name: "b", Type: "boolean", Description: "d", Required: &no},
		parameter.Spec{Name: "m", Type: "map", Description: "d", Required: &no}, parameter.Spec{Name: "n", Type: "float", Description: "d", Default: &parameter.Literal{Text: "-1.5", Kind: parameter.Number}})
	for args, want := range map[string]string{
		`{"a":"x"}`:                             "x <no value> -1.5",
		`{"a":"x","b":true}`:                    "x, true <no value> -1.5",
		`{"a":"-","m":{"k":[1,null]},"n":1e21}`: "- map[k:[1 <nil>]] 1e+21",
		`{"a":"bad"}`:                           "",
		`{"a":"x","a":"y"}`:                     "",
		`{}`:                                    "",
		`[]`:                                    "",
	} {
		got, err := p.Messages([]byte(args))
		switch {
		case want == "":
			wantCode(t, err, errcode.InvalidArguments)
		case err != nil || len(got) != 1 || got[0] != (toolgroups.Message{Role: "user", Text: want}):
			t.Errorf("%s: %q, %v; want %q", args, got, err, want)
		}
	}
	_, err := toolgroups.NewPrompt("p", "", "", &parameter.Set{}, []toolgroups.Message{{}, {Text: "{{.x}}"}})
	if err == nil || !strings.Contains(err.Error(), `message 2 of prompt "p"`) {
		t.Errorf("template with an unknown argument: %v", err)
	}
	if p, err := toolgroups.NewPrompt("p", "", "", &parameter.Set{}, []toolgroups.Message{{Text: "{{1}} {{`{{`}}"}}); err != nil || fmt.Sprint(p.Messages(nil)) != "[{ 1 {{}] <nil>" {
		t.Errorf("template without arguments: %v", err)
	}
}
