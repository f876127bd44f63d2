package gateway_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/runtime"
)

// What an agent made is never served as something a browser would run.
func TestBytesAreServedAsPicturesOrAsNothing(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"a picture":      {"\x89PNG\r\n\x1a\n", "image/png"},
		"a page":         {"<html><script>alert(1)</script>", "application/octet-stream"},
		"a drawing":      {`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`, "application/octet-stream"},
		"a document":     {"%PDF-1.7", "application/octet-stream"},
		"nothing at all": {"", "application/octet-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, func(r model.Request) model.Answer {
				if r.Self.Role == "clerk" && answers(r) == 0 {
					return do("put_artifact", map[string]any{"type": "text/html", "content": base64.StdEncoding.EncodeToString([]byte(c.content)), "encoding": "base64"})
				}
				return team(r)
			})
			task := h.work(t, "go")
			list := collect(t, h.client().Artifacts(t.Context(), task.ID))
			if len(list) != 1 {
				t.Fatalf("artifacts %+v", list)
			}
			answer := h.send(t, "/api/v1/artifacts/"+list[0].ID+"?content=1", "", nil)
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

func TestASweepIsAskedFor(t *testing.T) {
	h := open(t, team)
	task := h.work(t, "go")
	put := []journal.Record{{Kind: "blob", Key: "orphan", Value: []byte("12345")}}
	if _, err := h.store.Commit(t.Context(), &journal.Batch{Put: put}); err != nil {
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
		if got := get[runtime.SweepResult](t, h, c.path, ""); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.path, got, c.want)
		}
	}
	if status, body := h.ask(t, "/api/v1/sweep", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d %s", status, body)
	}
	if status, body := h.ask(t, "POST /api/v1/sweep?dryrun=1", ""); status != http.StatusBadRequest || refused(t, body).Code != errcode.InvalidArguments {
		t.Errorf("a misspelled dryRun: %d %s", status, body)
	}
	if list := collect(t, h.client().Artifacts(t.Context(), task.ID)); len(list) != 1 {
		t.Errorf("artifacts %+v", list)
	}
}
