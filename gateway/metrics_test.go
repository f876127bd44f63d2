package gateway_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

func TestMetrics_ServedAsText(t *testing.T) {
	f := newFixtureIn(t, t.TempDir(), gatewaytest.TeamModel)
	defer closeFixture(t, f)
	f.RunTask(t, "go")
	w := f.SendRequest(t, "GET /metrics", "", nil)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("got %d %v", w.Code, w.Header())
	}
	wantMetrics(t, w.Body.String())
	for _, line := range []string{
		`rolecall_tasks_total{status="done"} 1`,
		`rolecall_agents_total{status="spawned"} 2`,
		`agent_group_access_denied_total 1`, // the clerk does not have the group command
		`agent_tool_group_requests_total{group="*"} 1`,
		fmt.Sprintf(`agent_tool_group_availability{group="console"} %d`, len(f.ToolNames("console"))),
	} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("there is no line %s in\n%s", line, w.Body)
		}
	}
	for request, want := range map[string]int{
		"POST /metrics": http.StatusMethodNotAllowed, "GET /metrics?name=x": http.StatusBadRequest, "GET /metrics/x": http.StatusNotFound,
	} {
		w := f.SendRequest(t, request, "", nil)
		if gatewaytest.DecodeError(t, w.Body.String()); w.Code != want {
			t.Errorf("%s: answered %d, want %d", request, w.Code, want)
		}
	}
}

func TestMetrics_NotConfigured(t *testing.T) {
	status, body := newFixture(t, gatewaytest.TeamModel).SendText(t, "/metrics", "")
	if got := gatewaytest.DecodeError(t, body); status != http.StatusNotFound || got.Code != wire.RouteNotFound {
		t.Errorf("got %d %s", status, body)
	}
}

func TestOnRefused_CalledForEachError(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	var reported []errcode.Code
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, OnRefused: func(code errcode.Code) { reported = append(reported, code) }})
	if err != nil {
		t.Fatal(err)
	}
	f.Handler = handler
	for _, request := range []string{"GET /healthz", "GET /api/v1/roles/nobody", "GET /nowhere", "PUT /healthz", "GET /readyz?x=1"} {
		f.SendRequest(t, request, "", nil)
	}
	want := []errcode.Code{errcode.RoleNotFound, wire.RouteNotFound, wire.MethodNotAllowed, errcode.InvalidArguments}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("(-want +reported):\n%s", diff)
	}
}

var sample = regexp.MustCompile(`^[a-z_]+(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? [-+.0-9eInf]+$`)

// wantMetrics requires every line to be a comment or a sample.
func wantMetrics(t *testing.T, text string) {
	t.Helper()
	lines := 0
	for line := range strings.Lines(text) {
		lines++
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "# ") && !sample.MatchString(line) {
			t.Errorf("%q is not a sample", line)
		}
	}
	if lines < 50 {
		t.Errorf("only %d lines", lines)
	}
}
