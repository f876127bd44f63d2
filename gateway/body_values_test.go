package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// A body of very many values is not decoded: it would take many times its size.
func TestRequest_ManyValuesAreNotDecoded(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	many := strings.TrimSuffix(strings.Repeat("{},", 300_000), ",")
	for path, body := range map[string]string{
		"POST /api/v1/tasks":                      `{"text":"go","files":[` + many + `]}`,
		"POST /api/v1/agent":                      `{"question":"go","history":[` + many + `]}`,
		"POST /api/v1/flow/default/service/agent": `{"question":"go","history":[` + many + `]}`,
		"POST /v1/chat/completions":               `{"model":"root","messages":[` + many + `]}`,
		"POST /access/v1/evaluations":             `{"evaluations":[` + many + `]}`,
		"POST /api/v1/approvals":                  `{"ids":[` + many + `]}`,
	} {
		var w *httptest.ResponseRecorder
		n := allocated(func() { w = f.SendRequest(t, path, body, nil) })
		if text := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(text, "262144 values") || n > 16<<20 {
			t.Errorf("%s: %d bytes for %d bytes of body: %d %.300s", path, n, len(body), w.Code, text)
		}
	}
}

// The input of a task is not decoded: many small members would take 30 times their size. The comparison of keys takes up to 17.
func TestStartTask_InputIsNotDecoded(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f = f.WithCaller(t, f.AddRole(t, "idle").ID)
	var input strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&input, `,"%05d":1`, i)
	}
	body := `{"text":"go","input":{` + input.String()[1:] + `}}`
	var w *httptest.ResponseRecorder
	n := allocated(func() { w = f.SendRequest(t, "POST /api/v1/tasks", body, nil) })
	if times := n / uint64(len(body)); w.Code != http.StatusForbidden || times > 20 {
		t.Errorf("decoding takes %d times the size of the body: %d %.300s", times, w.Code, w.Body)
	}
}

// allocated returns how many bytes run allocates.
func allocated(run func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	run()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
