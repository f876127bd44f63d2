package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/tool"
)

// The matrix has every role with exactly those tools that "can" allows it, also in a workflow
// state and for a paused role.
func TestMatrix_AgreesWithCan(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "phones", "ring", "open")
	f.RunTask(t, "go")
	f.AddRole(t, "caller", "phones", "artifact")
	f.AddRole(t, "idle")
	f.AddRole(t, "held", "workspace")
	gatewaytest.GetJSON[wire.Role](t, f, "POST /api/v1/roles", `{"name":"all"}`)
	gatewaytest.GetJSON[wire.PauseChange](t, f, "POST /api/v1/pause", `{"role":"held"}`)
	for _, state := range []string{"", "open"} {
		m, err := f.LocalClient().FetchMatrix(t.Context(), client.MatrixQuery{State: state})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, row := range m.Items {
			names = append(names, row.Name)
			verdicts := gatewaytest.GetJSON[wire.Verdicts](t, f, "POST /api/v1/can", fmt.Sprintf(`{"role":%q,"state":%q}`, row.ID, state)).Verdicts
			want := []string{}
			for _, v := range verdicts {
				if v.Allowed {
					want = append(want, v.Tool)
				}
			}
			if diff := cmp.Diff(want, row.Allowed); diff != "" {
				t.Errorf("state %q, role %s (-can +matrix):\n%s", state, row.Name, diff)
			}
			if len(verdicts) != len(m.Tools) {
				t.Errorf("the matrix has %d tools of %d", len(m.Tools), len(verdicts))
			}
		}
		if got := strings.Join(names, " "); got != "root all caller clerk held idle" {
			t.Errorf("roles %s", got)
		}
	}
}

// A caller is shown its own role and its own tools. Another group does not exist for it.
func TestMatrix_CallerSeesItsOwnRole(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "phones", "ring")
	f.AddTool(t, "vault", "unlock", "secret")
	f.AddRole(t, "other", "phones")
	caller := f.WithCaller(t, f.AddRole(t, "desk", "phones").ID)
	got := gatewaytest.GetJSON[wire.Matrix](t, caller, "GET /api/v1/matrix", "")
	if len(got.Items) != 1 || got.Items[0].Name != "desk" || !slices.Equal(got.Items[0].Allowed, []string{"ring"}) {
		t.Errorf("rows %+v", got.Items)
	}
	if len(got.Tools) != 1 || got.Tools[0] != (wire.MatrixTool{Name: "ring", Group: "phones", Effect: "mutating"}) {
		t.Errorf("tools %+v", got.Tools)
	}
	for path, want := range map[string]int{"group=vault": 404, "group=none": 404, "state=secret": 400} {
		if status, body := caller.SendText(t, "GET /api/v1/matrix?"+path, ""); status != want || strings.Contains(body, "unlock") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// An answer compares at most 1,000 tools. Its cursors lead through all pairs, each once.
func TestMatrix_HasPagesOfRolesAndTools(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	var tools []tool.Tool
	for i := range 1001 {
		made, err := tool.New(fmt.Sprintf("t_%04d", i), "a tool", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, made)
	}
	f.AddGroup(t, "many", tools...)
	f.AddRole(t, "first", "many")
	f.AddRole(t, "second", "many")
	seen, answers := map[string]int{}, 0
	for q := (client.MatrixQuery{Group: "many", Limit: 2}); ; {
		m, err := f.LocalClient().FetchMatrix(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if answers++; len(m.Tools) > 1000 || len(m.Items) > 2 {
			t.Errorf("an answer has %d tools and %d roles", len(m.Tools), len(m.Items))
		}
		for _, row := range m.Items {
			for _, name := range row.Allowed {
				seen[row.Name+" "+name]++
			}
		}
		if q.Cursor = m.Next; q.Cursor == "" {
			if q.FromTool = m.NextTool; q.FromTool == "" {
				break
			}
		}
	}
	if len(seen) != 2*1001 || answers != 4 {
		t.Errorf("%d pairs in %d answers", len(seen), answers)
	}
	for pair, n := range seen {
		if n != 1 {
			t.Errorf("%s: %d times", pair, n)
		}
	}
	if status, body := f.SendText(t, "GET /api/v1/matrix?group=none", ""); status != http.StatusNotFound {
		t.Errorf("an unknown group: %d %s", status, body)
	}
}
