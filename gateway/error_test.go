package gateway_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
)

func TestErrors_HaveOneForm(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddRole(t, "clerk", "artifact")
	big := `{"name":"` + strings.Repeat("x", 1<<20) + `"}`
	tests := []struct {
		name, path, body string
		status           int
		code             errcode.Code
	}{
		{"unknown route", "/api/v1/nothing", "", 404, wire.RouteNotFound},
		{"empty id", "/api/v1/roles/", "", 404, wire.RouteNotFound},
		{"wrong method", "PUT /api/v1/roles", "{}", 405, wire.MethodNotAllowed},
		{"wrong method of an item", "POST /api/v1/roles/clerk", "{}", 405, wire.MethodNotAllowed},
		{"unknown role", "/api/v1/roles/nobody", "", 404, errcode.RoleNotFound},
		{"unknown agent", "/api/v1/agents/nobody", "", 404, errcode.AgentNotFound},
		{"unknown agent's journal", "/api/v1/agents/nobody/journal", "", 404, errcode.AgentNotFound},
		{"unknown task", "/api/v1/tasks/none", "", 404, errcode.TaskNotFound},
		{"unknown task's events", "/api/v1/tasks/none/events", "", 404, errcode.TaskNotFound},
		{"unknown task to cancel", "POST /api/v1/tasks/none/cancel", "", 404, errcode.TaskNotFound},
		{"unknown group", "/api/v1/tool-groups/none", "", 404, errcode.GroupNotFound},
		{"tools of an unknown group", "/api/v1/tools?group=none", "", 404, errcode.GroupNotFound},
		{"unknown tool", "/api/v1/tools/none", "", 404, errcode.UnknownTool},
		{"unknown artifact", "/api/v1/artifacts/none", "", 404, errcode.ArtifactNotFound},
		{"unknown parameter", "DELETE /api/v1/roles/clerk?dryrun=1", "", 400, errcode.InvalidArguments},
		{"repeated parameter", "/api/v1/roles?limit=1&limit=2", "", 400, errcode.InvalidArguments},
		{"invalid flag", "DELETE /api/v1/roles/clerk?dryRun=maybe", "", 400, errcode.InvalidArguments},
		{"invalid limit", "/api/v1/roles?limit=-1", "", 400, errcode.InvalidArguments},
		{"invalid cursor", "/api/v1/roles?cursor=%25", "", 400, errcode.InvalidArguments},
		{"invalid journal cursor", "/api/v1/agents/nobody/journal?cursor=eA", "", 400, errcode.InvalidArguments},
		{"invalid status", "/api/v1/agents?status=asleep", "", 400, errcode.InvalidArguments},
		{"invalid event number", "/api/v1/tasks/none/events?after=x", "", 400, errcode.InvalidArguments},
		{"no body", "POST /api/v1/roles", "", 400, errcode.InvalidArguments},
		{"not an object", "POST /api/v1/roles", "[]", 400, errcode.InvalidArguments},
		{"two documents", "POST /api/v1/roles", `{"name":"a"}{}`, 400, errcode.InvalidArguments},
		{"duplicate field", "POST /api/v1/roles", `{"name":"a","name":"b"}`, 400, errcode.InvalidArguments},
		{"misspelled case of a field", "POST /api/v1/roles", `{"Name":"a"}`, 400, errcode.InvalidArguments},
		{"unknown field", "POST /api/v1/roles", `{"name":"a","colour":"red"}`, 400, errcode.InvalidArguments},
		{"unknown nested field", "POST /api/v1/roles", `{"name":"a","limits":{"colour":1}}`, 400, errcode.InvalidArguments},
		{"null for a list of groups", "POST /api/v1/roles", `{"name":"a","toolGroups":null}`, 400, errcode.InvalidArguments},
		{"wrong type", "POST /api/v1/roles", `{"name":"a","toolGroups":"artifact"}`, 400, errcode.InvalidArguments},
		{"body too large", "POST /api/v1/roles", big, 413, wire.BodyTooLarge},
		{"role without a name", "POST /api/v1/roles", `{}`, 400, errcode.InvalidRole},
		{"reserved role name", "POST /api/v1/roles", `{"name":"Root"}`, 400, errcode.InvalidRole},
		{"existing role", "POST /api/v1/roles", `{"name":"clerk","rolePrompt":"other"}`, 409, errcode.RoleExists},
		{"existing role in a dry run", "POST /api/v1/roles?dryRun=1", `{"name":"clerk","rolePrompt":"other"}`, 409, errcode.RoleExists},
		{"empty message", "POST /api/v1/agents/nobody/messages", `{}`, 400, errcode.InvalidArguments},
		{"message with text and payload", "POST /api/v1/agents/nobody/messages", `{"text":"a","payload":1}`, 400, errcode.InvalidArguments},
		{"negative delay", "POST /api/v1/agents/nobody/messages", `{"text":"a","delayMs":-1}`, 400, errcode.InvalidArguments},
		{"question without role and agent", "POST /api/v1/can", `{"tool":"read_file"}`, 400, errcode.InvalidArguments},
		{"question about role and agent", "POST /api/v1/can", `{"role":"a","agent":"b","tool":"read_file"}`, 400, errcode.InvalidArguments},
		{"question about the tools of nobody", "POST /api/v1/can", `{"role":"a"}`, 404, errcode.RoleNotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, body := f.SendText(t, test.path, test.body)
			if got := gatewaytest.DecodeError(t, body); status != test.status || got.Code != test.code {
				t.Errorf("got %d %s (%s), want %d %s", status, got.Code, got.Message, test.status, test.code)
			}
		})
	}
	if _, err := f.LocalClient().FindRole(t.Context(), "clerk"); err != nil {
		t.Errorf("a rejected request changed something: %v", err)
	}
}

func TestErrors_MethodNotAllowedListsMethods(t *testing.T) {
	answer := newFixture(t, gatewaytest.TeamModel).SendRequest(t, "PUT /api/v1/roles/x", "", nil)
	if got, want := answer.Header().Get("Allow"), "GET, PATCH, DELETE"; got != want {
		t.Errorf("Allow: %q, want %q", got, want)
	}
}

func TestErrors_HideInternalCause(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	persisttest.Close(t, storeOf(f))
	for _, path := range []string{"/api/v1/tasks/x", "/api/v1/artifacts/x", "/api/v1/agents/x"} {
		status, body := f.SendText(t, path, "")
		got := gatewaytest.DecodeError(t, body)
		if status != http.StatusInternalServerError || got.Code != errcode.Internal || strings.Contains(body, "closed") {
			t.Errorf("%s: %d %s, want 500 internal without the cause", path, status, body)
		}
	}
}

func TestErrors_AnswerPanic(t *testing.T) {
	handler, err := gateway.New(gateway.Config{Runtime: new(runtime.Runtime), Authenticate: auth.AlwaysOperator}) // the zero Runtime panics
	if err != nil {
		t.Fatal(err)
	}
	status, body := (&gatewaytest.Fixture{Handler: handler}).SendText(t, "/api/v1/roles", "")
	if got := gatewaytest.DecodeError(t, body); status != http.StatusInternalServerError || got.Code != errcode.Internal || strings.Contains(body, "nil") {
		t.Errorf("got %d %s", status, body)
	}
}

// Refusals below the disk reserve do not fill the disk with lines of the log.
func TestErrors_LogOfRefusalsIsBounded(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	role := f.AddRole(t, "clerk", "artifact")
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Storage: runtime.StorageLimits{DiskReserve: 1 << 60}}); err != nil {
		t.Fatal(err)
	}
	var log buffer.SyncBuffer
	ann := func(*http.Request) (identity.Principal, error) { return identity.ByCaller("ann", role.ID), nil }
	h, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: ann, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		r := httptest.NewRequest("POST", "/api/tool/"+strings.Repeat("x", 60_000)+"/invoke", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	if s := log.String(); len(s) > 20_000 || !strings.Contains(s, "request failed") { // 10 lines in each window of time
		t.Errorf("100 refusals wrote %d bytes: %.300s", len(s), s)
	}
}
