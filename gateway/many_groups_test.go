package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A request that names very many groups is rejected, whatever the way. It would take the processor
// for long, and hold the organization meanwhile.
func TestGroups_RejectsVeryMany(t *testing.T) {
	operator, caller, _ := newAskFixture(t, echoTools)
	var names []string
	for i := range 100_000 {
		names = append(names, fmt.Sprintf(`"g%05x"`, i))
	}
	list, most := strings.Join(names, ","), strings.Join(names[:1000], ",")
	const evaluation = `{"subject":{"type":"user","id":"ann"},"action":{"name":"call"},"resource":{"type":"tool","id":"find_page"},"context":{"group":[%s]}}`
	for _, tt := range []struct{ path, body string }{
		{"POST /api/v1/can", `{"tool":"find_page","group":[%s]}`},
		{"POST /api/v1/agent", `{"question":"x","group":[%s]}`},
		{"POST /api/v1/tasks", `{"text":"x","role":"clerk","ask":true,"group":[%s]}`},
	} {
		for _, f := range []struct {
			groups, want string
		}{{list, "at most 1000"}, {most, ""}} {
			status, text := caller.SendText(t, tt.path, fmt.Sprintf(tt.body, f.groups))
			if tooMany := strings.Contains(text, "at most 1000"); tooMany != (f.want != "") || tooMany && status != http.StatusBadRequest || len(text) > 100_000 {
				t.Errorf("%s: %d %.300s", tt.path, status, text)
			}
		}
	}
	status, text := caller.SendText(t, "POST /access/v1/evaluation", fmt.Sprintf(evaluation, list))
	if status != http.StatusOK || !strings.Contains(text, "at most 1000") || strings.Contains(text, `"decision":true`) {
		t.Errorf("evaluation: %d %.300s", status, text)
	}
	for _, field := range []string{"toolGroups", "grant"} {
		if status, text := operator.SendText(t, "POST /api/v1/roles", `{"name":"big","rolePrompt":"p","`+field+`":[`+list+`]}`); status != http.StatusBadRequest || !strings.Contains(text, "at most 1000") {
			t.Errorf("a role: %d %.300s", status, text)
		}
	}
}
