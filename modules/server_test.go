package modules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// serverGroups returns the groups of a server with two APIs, the second of which fails.
func serverGroups(t testing.TB) []toolgroups.Group {
	none := func(context.Context, struct{}) (string, error) { return "", errors.New("no pool") }
	some := func(context.Context, struct{}) (string, error) { return "42", nil }
	tvl, err := tool.New("tvl", "Value locked.", some, nil)
	pools, errPools := tool.New("pool-list", "Pools.", none, nil)
	groups, errGroups := modules.ServerGroups("magpie", "A data provider.", []tool.Tool{tvl, pools})
	if err := errors.Join(err, errPools, errGroups); err != nil {
		t.Fatal(err)
	}
	return groups
}

// A server has a group with all APIs and one group for each; both refer to the same
// tools, also after a reload.
func TestServer_Groups(t *testing.T) {
	m := toolgroups.NewManager()
	loader := modules.NewLoader(m)
	t.Cleanup(func() { loader.Close(context.Background()) })
	if err := loader.LoadModule(t.Context(), newFakeModule("magpie", serverGroups(t)...)); err != nil {
		t.Fatal(err)
	}
	wantGroups := func() {
		t.Helper()
		got := map[toolgroups.GroupID][]string{}
		for _, g := range m.CurrentSnapshot().ListGroups() {
			got[g.ID] = append([]string{g.Description, string(g.Owner)}, g.Tools...)
		}
		want := map[toolgroups.GroupID][]string{
			"magpie":           {"A data provider.", "module:magpie", "call_magpie_tvl", "call_magpie_pool--list"},
			"magpie/tvl":       {"Value locked.", "module:magpie", "call_magpie_tvl"},
			"magpie/pool-list": {"Pools.", "module:magpie", "call_magpie_pool--list"},
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
	}
	wantGroups()
	s := m.CurrentSnapshot()
	if got := s.Compile(s.PinOwners(toolgroups.SetOf("magpie/pool-list", "magpie/tvl", "magpie"))).ToolNames(); fmt.Sprint(got) != "[call_magpie_pool--list call_magpie_tvl]" {
		t.Errorf("got %v", got)
	}
	if err := loader.ReloadModule(t.Context(), newFakeModule("magpie", serverGroups(t)...)); err != nil {
		t.Fatal(err)
	}
	wantGroups()
	if err := loader.UnloadModule(t.Context(), "magpie"); err != nil || len(m.CurrentSnapshot().ListGroups()) > 0 {
		t.Errorf("%v, left %+v", err, m.CurrentSnapshot().ListGroups())
	}
}

// Errors of a tool name it as it was called.
func TestServer_ToolAnswersUnderCallName(t *testing.T) {
	pools := serverGroups(t)[0].Tools[1]
	r, err := pools.Call(t.Context(), tool.Call{Name: pools.Definition().Name, Args: []byte(`{}`)})
	if want := `{"error":"tool_execution_failed","message":"no pool","toolName":"call_magpie_pool--list"}`; err != nil || string(r.Structured) != want {
		t.Errorf("got %s, %v, want %s", r.Structured, err, want)
	}
}

// Server rejects names that cannot be part of an id; the loader rejects a duplicate API.
func TestServer_RejectsInvalidNames(t *testing.T) {
	for _, tt := range []struct{ server, api string }{{"mag/pie", "tvl"}, {"", "tvl"}, {"magpie", "t/v"}, {"magpie", ""}, {"m p", "tvl"}, {strings.Repeat("m", 100), strings.Repeat("a", 100)}} {
		groups, err := modules.ServerGroups(tt.server, "", []tool.Tool{textTool(tt.api, "x")})
		if errcode.CodeOf(err) != errcode.InvalidGroupDef || groups != nil {
			t.Errorf("%q %q: %v, %v", tt.server, tt.api, groups, err)
		}
	}
	groups, err := modules.ServerGroups("magpie", "", []tool.Tool{textTool("tvl", "x"), textTool("tvl", "y")})
	if err != nil {
		t.Fatal(err)
	}
	m := toolgroups.NewManager()
	if err := modules.NewLoader(m).LoadModule(t.Context(), newFakeModule("magpie", groups...)); err == nil || len(m.CurrentSnapshot().ListGroups()) > 0 {
		t.Errorf("%v, registered %+v", err, m.CurrentSnapshot().ListGroups())
	}
}
