package gateway_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// measured makes the metrics of a runtime that is yet to come, and serves them.
func measured(t *testing.T, groups *toolgroups.Manager, rt **runtime.Runtime) (*metrics.Metrics, http.Handler) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := metrics.New(reg, metrics.Config{Groups: groups, Load: func() metrics.Load { return metrics.Load((*rt).Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	return m, metrics.Handler(reg, nil)
}

func TestMetricsAreServedAsTextWhileAnythingElseIsJSON(t *testing.T) {
	h := openAt(t, t.TempDir(), team)
	defer h.close(t)
	h.work(t, "go")
	w := h.send(t, "GET /metrics", "", nil)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("got %d %v", w.Code, w.Header())
	}
	wantMetrics(t, w.Body.String())
	for _, line := range []string{
		`rolecall_tasks_total{status="done"} 1`,
		`rolecall_agents_total{status="spawned"} 2`,
		`agent_group_access_denied_total 1`, // the clerk has no group command
		`agent_tool_group_requests_total{group="*"} 1`,
		`agent_tool_group_availability{group="console"} 1`,
	} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("there is no line %s in\n%s", line, w.Body)
		}
	}
	for request, want := range map[string]int{
		"POST /metrics": http.StatusMethodNotAllowed, "GET /metrics?name=x": http.StatusBadRequest, "GET /metrics/x": http.StatusNotFound,
	} {
		w := h.send(t, request, "", nil)
		if refused(t, w.Body.String()); w.Code != want {
			t.Errorf("%s: answered %d, want %d", request, w.Code, want)
		}
	}
}

func TestAHandlerWithoutMetricsHasNoRouteToThem(t *testing.T) {
	status, body := open(t, team).ask(t, "/metrics", "")
	if got := refused(t, body); status != http.StatusNotFound || got.Code != gateway.RouteNotFound {
		t.Errorf("got %d %s", status, body)
	}
}

func TestEveryRefusalIsTold(t *testing.T) {
	h := open(t, team)
	var told []errcode.Code
	handler, err := gateway.New(gateway.Config{Runtime: h.rt, Authenticate: gateway.AlwaysOperator, OnRefused: func(code errcode.Code) { told = append(told, code) }})
	if err != nil {
		t.Fatal(err)
	}
	h.handler = handler
	for _, request := range []string{"GET /healthz", "GET /api/v1/roles/nobody", "GET /nowhere", "PUT /healthz", "GET /readyz?x=1"} {
		h.send(t, request, "", nil)
	}
	want := []errcode.Code{errcode.RoleNotFound, gateway.RouteNotFound, gateway.MethodNotAllowed, errcode.InvalidArguments}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +told):\n%s", diff)
	}
}

var sample = regexp.MustCompile(`^[a-z_]+(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? [-+.0-9eInf]+$`)

// wantMetrics wants every line to be a comment or a sample.
func wantMetrics(t *testing.T, text string) {
	t.Helper()
	lines := 0
	for line := range strings.Lines(text) {
		lines++
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "# ") && !sample.MatchString(line) {
			t.Errorf("%q is no sample", line)
		}
	}
	if lines < 50 {
		t.Errorf("only %d lines", lines)
	}
}
