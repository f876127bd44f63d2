package builtin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// A redirect out of the bounds on a call is not followed. Other redirects are.
func TestRedirect_StaysWithinBounds(t *testing.T) {
	var reached []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		reached = append(reached, r.URL.Path)
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	})
	rule, err := bounds.ParseRule([]byte(`{"/url": {"url": {"host": "` + strings.TrimPrefix(s.URL, "http://") + `", "path": "/v1/"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounds.WithCall(t.Context(), bounds.BoundCall{Checks: []*bounds.Check{rule.ForSchema(nil)}})
	for to, code := range map[string]errcode.Code{"/v1/b": "", "/v2/b": errcode.ArgumentNotGranted, "/v1/../v2/b": errcode.ArgumentNotGranted, "//localhost:8080/v1/": errcode.ArgumentNotGranted} {
		reached = nil
		w := newNetworkFixture(t, nil)
		args, _ := json.Marshal(obj{"url": s.URL + "/v1/a?to=" + to})
		result, err := w.fixture["http_request"].Call(ctx, tool.Call{ID: "call-1", Name: "http_request", Args: args, By: identity.ByAgent(callerID)})
		var a httpAnswer
		if err != nil || json.Unmarshal(result.JSON(), &a) != nil || a.Error != code || code != "" && len(reached) != 1 {
			t.Errorf("to %s: %s, %v, reached %v", to, result.JSON(), err, reached)
		}
	}
}
