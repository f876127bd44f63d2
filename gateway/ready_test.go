package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/runtime"
)

// A process that is not ready lists every reason. Names of modules and models are for the
// operator and for monitors. A reason that is excluded does not count.
func TestReady_ListsReasons(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{KeepRoles: true, Storage: runtime.StorageLimits{DiskReserve: 1 << 50}}); err != nil {
		t.Fatal(err)
	}
	token, known := gatewaytest.NewToken("prometheus", auth.Token{Scope: auth.ScopeMetrics})
	own := []wire.UnreadyReason{
		{Code: wire.UnreadyModule, Message: "modules that did not start: 1", Names: []string{"web"}},
		{Code: wire.UnreadyKey, Message: "models in use without an API key: 2", Names: []string{"gpt", "opus"}},
	}
	handler, err := gateway.New(gateway.Config{
		Runtime: f.Runtime, Authenticate: gatewaytest.NewTokens(t, f, known).Authenticate,
		Unready: func() []wire.UnreadyReason { return append([]wire.UnreadyReason{}, own...) },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Handler = handler
	for _, c := range []struct{ path, token, want string }{
		{"/readyz", token, "storage_low module_failed[web] key_missing[gpt opus]"},
		{"/readyz", "", "storage_low module_failed[] key_missing[]"},
		{"/readyz", "rc_unknown", "storage_low module_failed[] key_missing[]"},
		{"/readyz?exclude=module_failed", "", "storage_low key_missing[]"},
		{"/readyz?exclude=module_failed&exclude=key_missing&exclude=storage_low", "", ""},
	} {
		header := http.Header{}
		if c.token != "" {
			header = gatewaytest.BearerHeader(c.token)
		}
		w := f.SendRequest(t, c.path, "", header)
		if got, status := reasonsIn(t, w.Body.String()), w.Code; got != c.want || (status == http.StatusOK) != (c.want == "") {
			t.Errorf("%s with %q: %d %s, want %s", c.path, c.token, status, w.Body, c.want)
		}
	}
}

// reasonsIn returns the reasons of an answer of /readyz, in their order.
func reasonsIn(t *testing.T, body string) string {
	t.Helper()
	var answer struct {
		Status string
		Error  struct {
			Code    string
			Details struct{ Reasons []wire.UnreadyReason }
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer.Status == "ready", answer.Error.Code != string(wire.NotReady)); diff != "" {
		t.Errorf("%s is neither ready nor not_ready", body)
	}
	var list []string
	for _, r := range answer.Error.Details.Reasons {
		if r.Code != wire.UnreadyStorageLow {
			r.Code += "[" + strings.Join(r.Names, " ") + "]"
		}
		list = append(list, r.Code)
	}
	return strings.Join(list, " ")
}

// brokenStore is a store whose records cannot be read while isBroken is set.
type brokenStore struct {
	journal.Store
	isBroken atomic.Bool
}

func (s *brokenStore) ReadRecord(ctx context.Context, kind, key string) ([]byte, error) {
	if s.isBroken.Load() {
		return nil, errors.New("input/output error")
	}
	return s.Store.ReadRecord(ctx, kind, key)
}

// Readiness needs no token, so its failures are logged like those of other requests:
// a few for each sender.
func TestReady_LogsFewLines(t *testing.T) {
	store := &brokenStore{Store: memory.New()}
	f := gatewaytest.NewFixture(t, store, gatewaytest.ModelFunc(gatewaytest.TeamModel))
	var log bytes.Buffer
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: gatewaytest.NewTokens(t, f).Authenticate, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	store.isBroken.Store(true)
	for range 100 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if !strings.Contains(w.Body.String(), wire.UnreadyStore) {
			t.Fatal(w.Body)
		}
	}
	if lines := strings.Count(log.String(), "input/output error"); lines == 0 || lines > 20 {
		t.Errorf("%d lines for 100 requests of one sender", lines)
	}
}
