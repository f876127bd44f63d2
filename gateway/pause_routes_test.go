package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
)

// The routes pause and resume tasks: the operator any, a caller those that it has started and that
// the operator has not paused.
func TestPause_RoutesOfTask(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	desk := f.AddRole(t, "desk", "artifact")
	caller := f.WithCaller(t, desk.ID)
	other, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: identity.ByOperator("test"), Open: true})
	if err != nil {
		t.Fatal(err)
	}
	own, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: identity.ByCaller("ann", desk.ID), Open: true})
	if err != nil {
		t.Fatal(err)
	}
	about := func(id identity.TaskID) string { return `{"task":"` + string(id) + `","reason":"look first"}` }
	for _, step := range []struct {
		by     *gatewaytest.Fixture
		path   string
		id     identity.TaskID
		status int
	}{
		{caller, "POST /api/v1/pause", other, http.StatusNotFound},
		{caller, "POST /api/v1/resume", own, http.StatusConflict},
		{caller, "POST /api/v1/pause", own, http.StatusOK},
		{caller, "POST /api/v1/resume", own, http.StatusOK},
		{caller, "POST /api/v1/pause", own, http.StatusOK},
		{f, "POST /api/v1/pause", own, http.StatusOK},
		{caller, "POST /api/v1/resume", own, http.StatusForbidden},
		{f, "POST /api/v1/resume", own, http.StatusOK},
		{f, "POST /api/v1/pause", other, http.StatusOK},
		{f, "POST /api/v1/pause", "nowhere", http.StatusNotFound},
	} {
		if status, body := step.by.SendText(t, step.path, about(step.id)); status != step.status {
			t.Errorf("%s %s: %d %s, want %d", step.path, step.id, status, body, step.status)
		}
	}
	paused := gatewaytest.GetJSON[wire.Task](t, f, "/api/v1/tasks/"+string(other), "")
	if paused.Status != org.Paused || paused.Reason == nil || paused.Reason.Message != "look first" || paused.Reason.By != "operator" {
		t.Errorf("the task is %s: %+v", paused.Status, paused.Reason)
	}
}

// The routes pause and resume the organization for the operator alone.
func TestPause_RoutesOfOrganization(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	caller := f.WithCaller(t, f.AddRole(t, "desk", "artifact").ID)
	for _, step := range []struct {
		by         *gatewaytest.Fixture
		path, body string
		status     int
		paused     bool
	}{
		{caller, "POST /api/v1/pause", `{"all":true}`, http.StatusForbidden, false},
		{f, "POST /api/v1/resume", `{"all":true}`, http.StatusConflict, false},
		{f, "POST /api/v1/pause", `{"all":true,"role":"desk"}`, http.StatusBadRequest, false},
		{f, "POST /api/v1/pause", `{}`, http.StatusBadRequest, false},
		{f, "POST /api/v1/pause", `{"all":true,"reason":"` + strings.Repeat("x", 2001) + `"}`, http.StatusBadRequest, false},
		{f, "POST /api/v1/pause", `{"all":true,"reason":"look first"}`, http.StatusOK, true},
		{caller, "POST /api/v1/resume", `{"all":true}`, http.StatusForbidden, true},
		{f, "POST /api/v1/resume", `{"all":true}`, http.StatusOK, false},
	} {
		status, body := step.by.SendText(t, step.path, step.body)
		if paused := f.Runtime.Org().OrgPause().IsSet(); status != step.status || paused != step.paused {
			t.Errorf("%s %.60s: %d %s, paused %v; want %d, %v", step.path, step.body, status, body, paused, step.status, step.paused)
		}
	}
}
