package gateway_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/runtime"
)

// Content that an agent created is never served with a type that browsers run.
func TestShowArtifact_BinaryMediaTypes(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"PNG image":    {"\x89PNG\r\n\x1a\n", "image/png"},
		"HTML page":    {"<html><script>alert(1)</script>", "application/octet-stream"},
		"SVG image":    {`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`, "application/octet-stream"},
		"PDF document": {"%PDF-1.7", "application/octet-stream"},
		"empty":        {"", "application/octet-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r model.Request) model.Answer {
				if r.Self.Role == "clerk" && gatewaytest.CountAnswers(r) == 0 {
					return gatewaytest.ToolCallAnswer("put_artifact", map[string]any{"type": "text/html", "content": base64.StdEncoding.EncodeToString([]byte(c.content)), "encoding": "base64"})
				}
				return gatewaytest.TeamModel(r)
			})
			task := f.RunTask(t, "go")
			list := gatewaytest.CollectAll(t, f.LocalClient().ListArtifacts(t.Context(), task.ID))
			if len(list) != 1 {
				t.Fatalf("artifacts %+v", list)
			}
			answer := f.SendRequest(t, "/api/v1/artifacts/"+list[0].ID+"?content=1", "", nil)
			if got := answer.Header().Get("Content-Type"); got != c.want || answer.Body.String() != c.content {
				t.Errorf("served %q as %s, want %s", answer.Body, got, c.want)
			}
			for field, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment"} {
				if got := answer.Header().Get(field); got != want {
					t.Errorf("%s: %q, want %q", field, got, want)
				}
			}
		})
	}
}

func TestSweep_DeletesUnreferencedContent(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	task := f.RunTask(t, "go")
	put := []journal.Record{{Kind: "blob", Key: "orphan", Value: []byte("12345")}}
	if _, err := f.Store.Commit(t.Context(), &journal.Batch{Put: put}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want runtime.SweepResult
	}{
		{"POST /api/v1/sweep?dryRun=1", runtime.SweepResult{Contents: 1, Bytes: 5, DryRun: true}},
		{"POST /api/v1/sweep", runtime.SweepResult{Contents: 1, Bytes: 5}},
		{"POST /api/v1/sweep", runtime.SweepResult{}},
	} {
		if got := gatewaytest.GetJSON[runtime.SweepResult](t, f, c.path, ""); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.path, got, c.want)
		}
	}
	if status, body := f.SendText(t, "/api/v1/sweep", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d %s", status, body)
	}
	if status, body := f.SendText(t, "POST /api/v1/sweep?dryrun=1", ""); status != http.StatusBadRequest || gatewaytest.DecodeError(t, body).Code != errcode.InvalidArguments {
		t.Errorf("a misspelled dryRun: %d %s", status, body)
	}
	if list := gatewaytest.CollectAll(t, f.LocalClient().ListArtifacts(t.Context(), task.ID)); len(list) != 1 {
		t.Errorf("artifacts %+v", list)
	}
}

func TestShowArtifact_TextContent(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	task := f.RunTask(t, "go")
	list := gatewaytest.CollectAll(t, f.LocalClient().ListArtifacts(t.Context(), task.ID))
	if len(list) != 1 || list[0].Task != task.ID || list[0].Type != "text" {
		t.Fatalf("artifacts %+v", list)
	}
	answer := f.SendRequest(t, "/api/v1/artifacts/artifact:"+list[0].ID+"?content=1", "", nil)
	if got := answer.Body.String(); got != "figures" {
		t.Errorf("content %q, want figures", got)
	}
	if got := answer.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if got := answer.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options %q, want nosniff", got)
	}
	if list := gatewaytest.CollectAll(t, f.LocalClient().ListArtifacts(t.Context(), "no task")); len(list) != 0 {
		t.Errorf("artifacts of an unknown task: %+v", list)
	}
}
