package mcpserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/gateway/mcpserver"
)

func TestConcurrencyLimiter_LimitsRequestsPerSender(t *testing.T) {
	f := fixtureConfig{config: mcpserver.Config{Calls: 2}}.open(t)
	id := f.initialize(t, "ann@tester", "/mcp", nil)
	ended := make(chan struct{}, 2)
	for i := range 2 {
		go func() {
			f.post(t, "ann@tester", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":"wait"}}`, i), map[string]string{"Mcp-Session-Id": id})
			ended <- struct{}{}
		}()
		waitFor(t, "a call starts", f.probe.began)
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + statelessMeta + `}}`
	if got := f.post(t, "ann@tester", "/mcp", list, statelessHeader("tools/list", "")); got.status != http.StatusTooManyRequests {
		t.Errorf("one too many: %d %s", got.status, got.body)
	}
	if got := f.post(t, "bob@tester", "/mcp", list, statelessHeader("tools/list", "")); got.status != http.StatusOK {
		t.Errorf("another sender: %d %s", got.status, got.body)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, f.url+"/mcp", nil)
	f.send(t, "ann@tester", r, map[string]string{"Mcp-Session-Id": id})
	for range 2 {
		waitFor(t, "a call ends with its session", ended)
	}
}
