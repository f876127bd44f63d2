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

var seedFlag = flag.Uint64("seed", 0, "seed of the properties; 0 takes the clock")

// The rule's own examples, and the ids whose names met under the rule it
// replaces: the separator is a legal character there, and case is folded.
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
		wantCode(t, err, errcode.InvalidGroupDef, "name the API")
		if name != "" {
			t.Errorf("%q is named %q", id, name)
		}
	}
}

// Different ids have different names, which every provider takes; a name that
// is no digest reads back as the one id it is of.
func TestPropertyCallNamesAreInjective(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	r := rand.New(rand.NewPCG(seed, 0))
	ids, digests := map[string]string{}, 0
	for range 50_000 {
		id := part(r) + "/" + part(r)
		name, err := toolgroups.CallName(id)
		if err != nil || !offerable.MatchString(name) {
			t.Fatalf("%s: %q, %v, seed %d", id, name, err, seed)
		}
		if other, ok := ids[name]; ok && other != id {
			t.Fatalf("%s and %s are both %s, seed %d", id, other, name, seed)
		}
		ids[name] = id
		if strings.HasPrefix(name, "call__") {
			digests++
		} else if got := readCallName(name); got != id {
			t.Fatalf("%s is offered as %s, which reads as %s, seed %d", id, name, got, seed)
		}
	}
	if digests == 0 || len(ids) < 5_000 {
		t.Errorf("%d ids, %d with a digest: too much alike, seed %d", len(ids), digests, seed)
	}
}

var offerable = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// part is a random part of an id, mostly short and of few letters so that ids
// come close to each other.
func part(r *rand.Rand) string {
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

// readCallName reads a name that is no digest, letter by letter.
func readCallName(name string) string {
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

func TestServersAreTheModulesThatBroughtGroups(t *testing.T) {
	m := toolgroups.NewManager(toolgroups.Workspace)
	register(t, m, toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Workspace, Tools: stubs("read_file")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"read_file"}})
	if got := m.Snapshot().Servers(); got == nil || len(got) > 0 {
		t.Errorf("got %v of built-in groups and the configuration's", got)
	}
	for i, name := range []string{"uniswap", "magpie", "magpie"} {
		register(t, m, toolgroups.Server(name), toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprint("g", i))})
	}
	if diff := cmp.Diff(m.Snapshot().Servers(), []string{"magpie", "uniswap"}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

// A Binding that is confined lets through what its owner brought and nothing
// else, as a use and as a limit, whatever groups it is reached through.
func TestABindingIsConfinedToAnOwner(t *testing.T) {
	m := toolgroups.NewManager()
	magpie, uniswap := toolgroups.Server("magpie"), toolgroups.Server("uniswap")
	register(t, m, magpie, toolgroups.Group{ID: "magpie", Tools: stubs("tvl", "liquidity")})
	register(t, m, magpie, toolgroups.Group{ID: "magpie/tvl", Refs: []string{"tvl"}})
	register(t, m, uniswap, toolgroups.Group{ID: "uniswap", Tools: stubs("swap")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "kit", Tools: stubs("own"), Refs: []string{"swap", "tvl"}})
	s := m.Snapshot()
	bind := func(only toolgroups.Owner, ids ...toolgroups.GroupID) toolgroups.BoundSet {
		b := s.Bind(toolgroups.Of(ids...))
		b.Only = only
		return b
	}
	tests := []struct {
		name string
		b    toolgroups.BoundSet
		want []string
	}{
		{"all groups", bind(magpie, "*"), []string{"tvl", "liquidity"}},
		{"a toolset of the operator's over two servers", bind(magpie, "kit"), []string{"tvl"}},
		{"the same for the other", bind(uniswap, "kit"), []string{"swap"}},
		{"a single pick", bind(magpie, "magpie/tvl"), []string{"tvl"}},
		{"another server's groups", bind(magpie, "uniswap"), nil},
		{"no groups", bind(magpie), nil},
		{"a server that brought nothing", bind(toolgroups.Server("nowhere"), "*"), nil},
		{"the zero Set", toolgroups.BoundSet{Only: magpie}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			use := s.Compile(tt.b).Names()
			limit := s.Compile(toolgroups.BoundSet{Set: toolgroups.All()}, tt.b).Names()
			slices.Sort(limit)
			sorted := slices.Sorted(slices.Values(tt.want))
			if !slices.Equal(use, tt.want) || !slices.Equal(limit, sorted) {
				t.Errorf("as a use %v, as a limit %v; want %v", use, limit, tt.want)
			}
			for _, h := range s.Tools() {
				if got := s.Reaches(tt.b, h); got != slices.Contains(tt.want, h.Definition.Name) {
					t.Errorf("reaches %s: %v", h.Definition.Name, got)
				}
			}
			if tt.b.IsAll() {
				t.Error("it says that it lets every tool through")
			}
		})
	}
}

// What a View rules says whether it is of somebody who is tool-gated; a new
// epoch does not take that away.
func TestAGatedView(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Tools: stubs("a")})
	s := m.Snapshot()
	view := s.Compile(s.Bind(toolgroups.Of("g")))
	if view.ToolGated() || view.Evaluation(toolgroups.Granted).ToolGated {
		t.Error("it is gated from the beginning")
	}
	view.SetToolGated()
	view.SetEpoch(7)
	for _, h := range []*toolgroups.Handle{nil, lookup(t, s, "a")} {
		if got := view.ForState("").Decide(h); !got.ToolGated || got.Epoch != 7 {
			t.Errorf("got %+v", got)
		}
	}
	if !view.ToolGated() || new(toolgroups.ViewRef).View().ToolGated() {
		t.Error("the view does not say so, or another does")
	}
}
