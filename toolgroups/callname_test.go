package toolgroups_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

var seedFlag = flag.Uint64("seed", 0, "seed of random tests; 0 uses the clock")

// The examples of the doc comment, and ids that had the same name under an earlier
// rule, which folded case and used a separator that ids may contain.
func TestCallName(t *testing.T) {
	tests := map[string]string{
		"magpie/tvl": "call_magpie_tvl", "a_b/c": "call_a-ub_c", "a/b_c": "call_a_b-uc", "my-api/x": "call_my--api_x",
		"Magpie/TVL": "call_Magpie_TVL", "a.b/c": "call_a-db_c", "-/_": "call_--_-u", "a-u/b": "call_a--u_b",
		strings.Repeat("a", 29) + "/" + strings.Repeat("b", 29): "call_" + strings.Repeat("a", 29) + "_" + strings.Repeat("b", 29),
		strings.Repeat("a", 29) + "/" + strings.Repeat("b", 30): "call__90f6c207006c615d267341f6f1a3c4b0",
	}
	for id, want := range tests {
		if got, err := toolgroups.CallName(id); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", id, got, err, want)
		}
	}
	for _, id := range []string{"", "/", "a", "a/", "/b", "a/b/c", "a//b", "a b/c", "a/b\n", "\u0430/b", "a/*", strings.Repeat("a", 64) + "/" + strings.Repeat("b", 64)} {
		name, err := toolgroups.CallName(id)
		wantCode(t, err, errcode.InvalidGroupDef, "call name")
		if name != "" {
			t.Errorf("%q: got name %q, want none", id, name)
		}
	}
}

// Different ids have different names, and all providers accept the names. A name that
// is not a digest decodes to its id.
func TestCallName_Injective(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	r := rand.New(rand.NewPCG(seed, 0))
	ids, digests := map[string]string{}, 0
	for range 50_000 {
		id := randomPart(r) + "/" + randomPart(r)
		name, err := toolgroups.CallName(id)
		if err != nil || !acceptedName.MatchString(name) {
			t.Fatalf("%s: %q, %v, seed %d", id, name, err, seed)
		}
		if other, ok := ids[name]; ok && other != id {
			t.Fatalf("%s and %s are both %s, seed %d", id, other, name, seed)
		}
		ids[name] = id
		if strings.HasPrefix(name, "call__") {
			digests++
		} else if got := decodeCallName(name); got != id {
			t.Fatalf("%s has the name %s, which decodes to %s, seed %d", id, name, got, seed)
		}
	}
	if digests == 0 || len(ids) < 5_000 {
		t.Errorf("only %d different ids, %d with a digest, seed %d", len(ids), digests, seed)
	}
}

var acceptedName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// randomPart returns a random part of an id. Most are short and have few different
// letters, so that ids are similar to each other.
func randomPart(r *rand.Rand) string {
	letters, most := "_.-auAd", 5
	if r.IntN(10) == 0 {
		letters, most = letters+"xyz0189", 60
	}
	text := make([]byte, 1+r.IntN(most))
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return string(text)
}

// decodeCallName returns the id of a name that is not a digest.
func decodeCallName(name string) string {
	var id strings.Builder
	for rest := strings.TrimPrefix(name, "call_"); rest != ""; rest = rest[1:] {
		switch rest[0] {
		case '_':
			id.WriteByte('/')
		case '-':
			rest = rest[1:]
			id.WriteString(map[byte]string{'-': "-", 'u': "_", 'd': "."}[rest[0]])
		default:
			id.WriteByte(rest[0])
		}
	}
	return id.String()
}

func TestSnapshot_Servers(t *testing.T) {
	m := toolgroups.NewManager(toolgroups.Workspace)
	register(t, m, toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Workspace, Tools: stubs("read_file")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"read_file"}})
	if got := m.CurrentSnapshot().ServerNames(); got == nil || len(got) > 0 {
		t.Errorf("got %v without modules, want an empty list", got)
	}
	for i, name := range []string{"uniswap", "magpie", "magpie"} {
		register(t, m, toolgroups.ServerOwner(name), toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprint("g", i))})
	}
	if diff := cmp.Diff(m.CurrentSnapshot().ServerNames(), []string{"magpie", "uniswap"}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

// A PinnedSet with Only contains the tools of that owner and no others, in a use and
// in a limit, and through whatever groups they are reached.
func TestPinnedSet_OnlyRestrictsToOwner(t *testing.T) {
	m := toolgroups.NewManager()
	magpie, uniswap := toolgroups.ServerOwner("magpie"), toolgroups.ServerOwner("uniswap")
	register(t, m, magpie, toolgroups.Group{ID: "magpie", Tools: stubs("tvl", "liquidity")})
	register(t, m, magpie, toolgroups.Group{ID: "magpie/tvl", Refs: []string{"tvl"}})
	register(t, m, uniswap, toolgroups.Group{ID: "uniswap", Tools: stubs("swap")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "kit", Tools: stubs("own"), Refs: []string{"swap", "tvl"}})
	s := m.CurrentSnapshot()
	pin := func(only toolgroups.GroupOwner, ids ...toolgroups.GroupID) toolgroups.PinnedSet {
		b := s.PinOwners(toolgroups.SetOf(ids...))
		b.Only = only
		return b
	}
	tests := []struct {
		name string
		b    toolgroups.PinnedSet
		want []string
	}{
		{"all groups", pin(magpie, "*"), []string{"tvl", "liquidity"}},
		{"toolset with tools of two servers", pin(magpie, "kit"), []string{"tvl"}},
		{"same toolset, other server", pin(uniswap, "kit"), []string{"swap"}},
		{"toolset with one tool", pin(magpie, "magpie/tvl"), []string{"tvl"}},
		{"groups of another server", pin(magpie, "uniswap"), nil},
		{"no groups", pin(magpie), nil},
		{"server without groups", pin(toolgroups.ServerOwner("nowhere"), "*"), nil},
		{"zero Set", toolgroups.PinnedSet{Only: magpie}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			use := s.Compile(tt.b).ToolNames()
			limit := s.Compile(toolgroups.PinnedSet{Set: toolgroups.AllGroups()}, tt.b).ToolNames()
			slices.Sort(limit)
			sorted := slices.Sorted(slices.Values(tt.want))
			if !slices.Equal(use, tt.want) || !slices.Equal(limit, sorted) {
				t.Errorf("as a use %v, as a limit %v; want %v", use, limit, tt.want)
			}
			for _, h := range s.ListTools() {
				if got := s.ReachesTool(tt.b, h); got != slices.Contains(tt.want, h.Definition.Name) {
					t.Errorf("reaches %s: %v", h.Definition.Name, got)
				}
			}
			if tt.b.IsAll() {
				t.Error("IsAll is true")
			}
		})
	}
}

// SetGating marks all Evaluations of a View. SetEpoch does not remove the mark.
func TestView_SetGating(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("g")))
	if view.Gating() != toolgroups.NotGated || view.RuleEvaluation(toolgroups.Granted).Gating != toolgroups.NotGated {
		t.Error("a new View is tool-gated")
	}
	view.SetGating(toolgroups.Gated)
	view.SetEpoch(7)
	for _, h := range []*toolgroups.ToolHandle{nil, lookup(t, s, "a")} {
		if got := view.ForState("").EvaluateTool(h); got.Gating != toolgroups.Gated || got.Epoch != 7 {
			t.Errorf("got %+v", got)
		}
	}
	if view.Gating() != toolgroups.Gated || new(toolgroups.ViewRef).CurrentView().Gating() != toolgroups.NotGated {
		t.Error("the View is not tool-gated, or the zero View is")
	}
}

// SetSuspended sets the reason of all Evaluations of a View. It allows nothing by itself.
func TestView_SetSuspended(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	s := m.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf()))
	view.SetSuspended("role r is suspended")
	view.SetEpoch(7)
	if view.Suspended() != "role r is suspended" {
		t.Errorf("got the reason %q", view.Suspended())
	}
	for h, rule := range map[*toolgroups.ToolHandle]toolgroups.DecisionRule{nil: toolgroups.NoSuchTool, lookup(t, s, "a"): toolgroups.NotGranted} {
		if got := view.ForState("").EvaluateTool(h); got.Suspended != "role r is suspended" || got.Rule != rule || got.Epoch != 7 {
			t.Errorf("got %+v, want rule %v", got, rule)
		}
	}
	if other := s.Compile(s.PinOwners(toolgroups.SetOf())).ForState("").EvaluateTool(nil); other.Suspended != "" {
		t.Errorf("another View has the reason %q", other.Suspended)
	}
}
