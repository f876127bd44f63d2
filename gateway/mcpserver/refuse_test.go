package mcpserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/mcpserver"
)

func TestBadRequestsGetTheProtocolsErrors(t *testing.T) {
	h := open(t)
	id := h.initialize(t, "ann@tester", "/mcp", nil)
	in := func(header ...string) map[string]string {
		m := map[string]string{"Mcp-Session-Id": id}
		for i := 0; i < len(header); i += 2 {
			m[header[i]] = header[i+1]
		}
		return m
	}
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	say := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`
	for name, c := range map[string]struct {
		body   string
		header map[string]string
		status int
		has    string
	}{
		"garbage":                    {`{"jsonrpc"`, in(), 400, "-32700"},
		"nothing":                    {``, in(), 400, "-32700"},
		"a key twice":                {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, in(), 400, "-32700"},
		"deep":                       {strings.Repeat("[", 100_000), in(), 400, "-32700"},
		"deep arguments":             {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}}`, in(), 400, "-32700"},
		"too much":                   {`{"x":"` + strings.Repeat("a", 10<<20) + `"}`, in(), 413, "-32600"},
		"bytes that are no text":     {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", in(), 400, "-32700"},
		"a number":                   {`7`, in(), 400, ""},
		"no request":                 {`{"jsonrpc":"2.0"}`, in(), 400, ""},
		"another JSON-RPC":           {`{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, in(), 400, ""},
		"a method of nobody":         {`{"jsonrpc":"2.0","id":1,"method":"tools/steal"}`, in(), 200, "-32601"},
		"one without a session":      {`{"jsonrpc":"2.0","id":1,"method":"tools/steal"}`, nil, 200, "-32601"},
		"one in the new version":     {`{"jsonrpc":"2.0","id":1,"method":"tools/steal","params":{` + meta + `}}`, modern("tools/steal", ""), 404, "-32601"},
		"no method":                  {`{"jsonrpc":"2.0","id":1,"method":""}`, in(), 200, "-32601"},
		"an id that is none":         {`{"jsonrpc":"2.0","id":true,"method":"tools/list"}`, in(), 400, "-32600"},
		"an id with parts":           {`{"jsonrpc":"2.0","id":{"x":1},"method":"tools/list"}`, nil, 400, "-32600"},
		"no parameters":              {`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, in(), 400, ""},
		"a batch":                    {`[` + ping + `]`, in("Mcp-Protocol-Version", "2025-11-25"), 400, "-32600"},
		"a batch without a session":  {`[` + ping + `]`, modern("ping", ""), 400, "-32600"},
		"a large batch":              {`[` + strings.Repeat(ping+",", 64) + ping + `]`, in("Mcp-Protocol-Version", "2025-03-26"), 400, "-32600"},
		"an old version":             {say, in("Mcp-Protocol-Version", "2024-10-07"), 400, "-32022"},
		"a version of the future":    {strings.ReplaceAll(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, "2026-07-28", "2099-01-01"), map[string]string{"Mcp-Protocol-Version": "2099-01-01", "Mcp-Method": "tools/list"}, 400, "-32022"},
		"a version that is none":     {say, in("Mcp-Protocol-Version", "newest"), 400, "-32022"},
		"no version in the body":     {say, modern("tools/call", "say"), 400, "-32602"},
		"another tool in the header": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `,"name":"run_command"}}`, modern("tools/call", "say"), 400, "-32020"},
		"another kind of body":       {say, in("Content-Type", "text/plain"), 415, "-32600"},
		"no kind of answer":          {say, in("Accept", "text/html"), 406, "-32600"},
		"streams alone":              {say, in("Accept", "text/event-stream"), 406, "-32600"},
		"no session":                 {`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, nil, 200, "invalid during session initialization"},
		"a cursor":                   {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, in(), 200, "-32602"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.post(t, "ann@tester", "/mcp", c.body, c.header)
			if got.status != c.status || !strings.Contains(got.body, c.has) {
				t.Errorf("%d %.300s, want %d with %q", got.status, got.body, c.status, c.has)
			}
			if kind := got.header.Get("Content-Type"); got.status >= 400 && (kind != "application/json" || !gjson.Get(got.body, "error.code").Exists()) {
				t.Errorf("%s %s is no error of the protocol", kind, got.body)
			}
		})
	}
	if got := h.post(t, "ann@tester", "/mcp", say, in()); got.status != http.StatusOK || !strings.Contains(got.body, `"text":"x"`) {
		t.Errorf("after all that: %d %s", got.status, got.body)
	}
}

func TestABatchIsAnswered(t *testing.T) {
	h := open(t)
	id := h.initialize(t, "ann@tester", "/mcp", map[string]string{"Accept": "application/json"})
	got := h.post(t, "ann@tester", "/mcp", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"one"}}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_command"}}]`,
		map[string]string{"Mcp-Session-Id": id, "Accept": "application/json", "Mcp-Protocol-Version": "2025-03-26"})
	if got.status != http.StatusOK || !strings.Contains(got.body, `"one"`) || !strings.Contains(got.body, "Unknown tool: run_command") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestASenderHasSoManySessions(t *testing.T) {
	h := plan{config: mcpserver.Config{Sessions: 3}}.open(t)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	other := h.initialize(t, "bob@tester", "/mcp", nil)
	var ids []string
	for range 5 {
		ids = append(ids, h.initialize(t, "ann@tester", "/mcp", nil))
	}
	for i, id := range append(ids, other) {
		want := http.StatusOK
		sender := "ann@tester"
		switch {
		case i < 2: // the oldest made room
			want = http.StatusNotFound
		case id == other:
			sender = "bob@tester"
		}
		if got := h.post(t, sender, "/mcp", list, map[string]string{"Mcp-Session-Id": id}); got.status != want {
			t.Errorf("session %d: %d %s, want %d", i, got.status, got.body, want)
		}
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	h := plan{config: mcpserver.Config{SessionTimeout: time.Millisecond}}.open(t)
	id := h.initialize(t, "ann@tester", "/mcp", nil)
	for {
		got := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id})
		if got.status == http.StatusNotFound {
			return
		}
	}
}

func TestASenderHasSoManyCallsAtOnce(t *testing.T) {
	h := plan{config: mcpserver.Config{Calls: 2}}.open(t)
	id := h.initialize(t, "ann@tester", "/mcp", nil)
	ended := make(chan struct{}, 2)
	for i := range 2 {
		go func() {
			h.post(t, "ann@tester", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":"wait"}}`, i), map[string]string{"Mcp-Session-Id": id})
			ended <- struct{}{}
		}()
		soon(t, "a call begins", h.probe.began)
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`
	if got := h.post(t, "ann@tester", "/mcp", list, modern("tools/list", "")); got.status != http.StatusTooManyRequests {
		t.Errorf("one too many: %d %s", got.status, got.body)
	}
	if got := h.post(t, "bob@tester", "/mcp", list, modern("tools/list", "")); got.status != http.StatusOK {
		t.Errorf("another sender: %d %s", got.status, got.body)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.url+"/mcp", nil)
	h.send(t, "ann@tester", r, map[string]string{"Mcp-Session-Id": id})
	for range 2 {
		soon(t, "a call ends with its session", ended)
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	h := open(t)
	for _, header := range []map[string]string{nil, modern("ping", "")} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, h.url+"/mcp", nil)
		if got := h.send(t, "ann@tester", r, header); got.status != http.StatusMethodNotAllowed {
			t.Errorf("PUT: %d %s", got.status, got.body)
		} else if !gjson.Get(got.body, "error.code").Exists() {
			t.Errorf("PUT is answered with no error of the protocol: %s", got.body)
		}
	}
}
