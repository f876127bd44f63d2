package toolbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// A source of type http follows no redirect out of the bounds on a call.
func TestRequest_RedirectStaysWithinBounds(t *testing.T) {
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" || r.URL.Path == "/v1/there" {
			echoRequest(w, r)
			return
		}
		http.Redirect(w, r, strings.Replace(r.URL.Path, "away", "there", 1), http.StatusFound)
	})
	rule, err := bounds.ParseRule([]byte(`{"/url": {"url": {"host": "` + strings.TrimPrefix(base, "http://") + `", "path": "/v1/"}, "missing": "allow"}}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounds.WithCall(t.Context(), bounds.BoundCall{Checks: []*bounds.Check{rule.ForSchema(nil)}})
	w := newHTTPFixture(t, base, `name: out, method: GET, path: /away`, `name: in, method: GET, path: /v1/away`)
	wantCode(t, w.call(ctx, "out", `{}`), errcode.ArgumentNotGranted)
	if got := gjson.Get(string(w.call(ctx, "in", `{}`).Result.JSON()), "path").Str; got != "/v1/there" {
		t.Errorf("got %q", got)
	}
}
