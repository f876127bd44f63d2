package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// FuzzRequestBody checks that every body is answered with JSON and never with an
// internal error.
func FuzzRequestBody(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"name":"a","toolGroups":["*"],"limits":{"rounds":1}}`, `{"role":"root","tool":"create_role","group":[]}`,
		`{"who":"read_file","state":"x"}`, `{"payload":{"a":[1,null]},"delayMs":1e9}`, `{"text":"\ud800"}`, `{"name":"\u0000"}`, `{"name":1e400}`,
	} {
		f.Add(seed)
	}
	fx := newFixture(f, gatewaytest.TeamModel)
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"POST /api/v1/roles?dryRun=1", "POST /api/v1/can", "POST /api/v1/agents/nobody/messages"} {
			status, text := fx.SendText(t, path, body)
			if status >= http.StatusInternalServerError || !json.Valid([]byte(text)) {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
	})
}

// FuzzRequestURL checks that every path and query is answered with an error
// code or with the requested resource, never with another one.
func FuzzRequestURL(f *testing.F) {
	fx := newFixture(f, gatewaytest.TeamModel)
	task := fx.RunTask(f, "go")
	artifact := gatewaytest.CollectAll(f, fx.LocalClient().ListArtifacts(f.Context(), task.ID))[0].ID
	for at := range resources {
		for _, id := range []string{"clerk", "root", "..", "%2e%2e", "artifact:" + artifact, "a/b", "", "\x00", "read_file", "workspace", string(task.ID), string(task.Top)} {
			f.Add(uint8(at), id, "limit=1")
		}
	}
	f.Add(uint8(0), "x", "limit=1&limit=2;a=%zz&cursor=AA&after=18446744073709551615&dryRun=&group=%00")
	f.Fuzz(func(t *testing.T, at uint8, id, query string) {
		thing := resources[int(at)%len(resources)]
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: "/api/v1/" + thing + "/" + id, RawPath: "/api/v1/" + thing + "/" + url.PathEscape(id), RawQuery: query}
		r.Header.Set("Last-Event-ID", query)
		w := httptest.NewRecorder()
		fx.Handler.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if !strings.Contains(id, "/") {
			wantResource(t, id, w)
		}
	})
}

// resources are the collections of the API.
var resources = []string{"roles", "agents", "tasks", "tools", "tool-groups", "artifacts"}

// wantResource requires an error response, or the resource with this id or name.
func wantResource(t *testing.T, id string, w *httptest.ResponseRecorder) {
	t.Helper()
	switch {
	case w.Code >= http.StatusBadRequest:
		gatewaytest.DecodeError(t, w.Body.String())
		return
	case w.Code >= http.StatusMultipleChoices: // a redirect to a path without dots
		return
	}
	var got struct{ ID, Name, Role string }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%q: %v in %s", id, err, w.Body)
	}
	if !slices.Contains([]string{got.ID, got.Name, got.Role, "artifact:" + got.ID}, id) {
		t.Errorf("asked for %q, got %s", id, w.Body)
	}
}

// FuzzEventQuery checks that every query for events is answered with JSON and never with
// an internal error.
func FuzzEventQuery(f *testing.F) {
	fx := newFixture(f, gatewaytest.TeamModel)
	task := fx.RunTask(f, "go")
	for _, seed := range []string{
		"", "limit=1&denied=1", "type=tool_call,result&type=error", "since=1h&after=3", "since=2026-01-31T08:00:00Z", "since=-1ns", "since=9999999h",
		"task=" + string(task.ID), "agent=clerk", "agent=root&role=clerk&tool=run_command&caller=operator", "cursor=MTA&limit=2", "after=18446744073709551614", "type=%1b&since=%00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: "/api/v1/events", RawQuery: query}
		w := httptest.NewRecorder()
		fx.Handler.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
