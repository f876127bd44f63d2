package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// Whatever a body holds, the answer is JSON and never the process's fault.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"name":"a","toolGroups":["*"],"limits":{"rounds":1}}`, `{"role":"root","tool":"create_role","group":[]}`,
		`{"who":"read_file","state":"x"}`, `{"payload":{"a":[1,null]},"delayMs":1e9}`, `{"text":"\ud800"}`, `{"name":"\u0000"}`, `{"name":1e400}`,
	} {
		f.Add(seed)
	}
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	rt, err := runtime.New(runtime.Config{
		Store: persisttest.Open(f), Groups: groups, Model: func(string) (model.Model, error) { return brain(team), nil },
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { rt.Close() })
	if err := builtin.Register(groups, rt, builtin.Options{}); err != nil {
		f.Fatal(err)
	}
	handler, err := gateway.New(gateway.Config{Runtime: rt})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/api/v1/roles?dryRun=1", "/api/v1/can", "/api/v1/agents/nobody/messages"} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			if w.Code >= http.StatusInternalServerError || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	})
}
