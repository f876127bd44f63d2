package gateway_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// newFixture returns a fixture on a store of its own, whose agents are run by m.
func newFixture(t testing.TB, m gatewaytest.ModelFunc) *gatewaytest.Fixture {
	t.Helper()
	return gatewaytest.NewFixture(t, persisttest.Open(t), m)
}

// newMetrics returns the metrics of a runtime that is created later, and their
// handler.
func newMetrics(t *testing.T, groups *toolgroups.Manager, rt **runtime.Runtime) (*metrics.Metrics, http.Handler) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := metrics.New(reg, metrics.Config{Groups: groups, Load: func() metrics.Load { return metrics.Load((*rt).CurrentLoad()) }})
	if err != nil {
		t.Fatal(err)
	}
	return m, metrics.Handler(reg, nil)
}

type obj = map[string]any

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// newFixtureIn opens a fixture with data and workspaces below dir. The test
// must close it.
func newFixtureIn(t *testing.T, dir string, m gatewaytest.ModelFunc) *gatewaytest.Fixture {
	t.Helper()
	f := &gatewaytest.Fixture{Store: persisttest.OpenIn(t, filepath.Join(dir, "data"))}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	counted, figures := newMetrics(t, groups, &f.Runtime)
	rt, err := runtime.New(runtime.Config{
		Store: f.Store, Groups: groups, Workspaces: filepath.Join(dir, "workspaces"), Observe: counted.ObserveEvent,
		Model:  func(string) (model.Model, error) { return m, nil },
		Limits: runtime.Limits{TaskLimits: org.TaskLimits{Roles: 1000}, Calls: 1000}, // a call for each string of a corpus
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Runtime = rt
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	handler, err := gateway.New(gateway.Config{Runtime: rt, Authenticate: auth.AlwaysOperator, Metrics: figures, OnRefused: counted.CountRefused})
	if err != nil {
		t.Fatal(err)
	}
	f.Handler = gatewaytest.WithOpenAPICheck(t, handler)
	return f
}

// closeFixture closes a fixture of newFixtureIn.
func closeFixture(t *testing.T, f *gatewaytest.Fixture) {
	t.Helper()
	f.Runtime.Close()
	persisttest.Close(t, storeOf(f))
}

// storeOf returns the store of a fixture of newFixture or newFixtureIn.
func storeOf(f *gatewaytest.Fixture) *persist.Store { return f.Store.(*persist.Store) }
