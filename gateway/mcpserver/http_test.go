package mcpserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestServePOST_RejectsBadRequests(t *testing.T) {
	f := openFixture(t)
	id := f.initialize(t, "ann@tester", "/mcp", nil)
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
		"garbage":                               {`{"jsonrpc"`, in(), 400, "-32700"},
		"nothing":                               {``, in(), 400, "-32700"},
		"a duplicate key":                       {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, in(), 400, "-32700"},
		"nested too deeply":                     {strings.Repeat("[", 100_000), in(), 400, "-32700"},
		"arguments nested too deeply":           {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}}`, in(), 400, "-32700"},
		"body too large":                        {`{"x":"` + strings.Repeat("a", 10<<20) + `"}`, in(), 413, "-32600"},
		"invalid UTF-8":                         {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", in(), 400, "-32700"},
		"a number":                              {`7`, in(), 400, ""},
		"no method and no id":                   {`{"jsonrpc":"2.0"}`, in(), 400, ""},
		"JSON-RPC 1.0":                          {`{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, in(), 400, ""},
		"unknown method in a session":           {`{"jsonrpc":"2.0","id":1,"method":"tools/steal"}`, in(), 200, "-32601"},
		"unknown method without a session":      {`{"jsonrpc":"2.0","id":1,"method":"tools/steal"}`, nil, 200, "-32601"},
		"unknown method in a stateless version": {`{"jsonrpc":"2.0","id":1,"method":"tools/steal","params":{` + statelessMeta + `}}`, statelessHeader("tools/steal", ""), 404, "-32601"},
		"empty method":                          {`{"jsonrpc":"2.0","id":1,"method":""}`, in(), 200, "-32601"},
		"boolean id":                            {`{"jsonrpc":"2.0","id":true,"method":"tools/list"}`, in(), 400, "-32600"},
		"object id":                             {`{"jsonrpc":"2.0","id":{"x":1},"method":"tools/list"}`, nil, 400, "-32600"},
		"no parameters":                         {`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, in(), 200, "-32602"},
		"batch in a version without batches":    {`[` + ping + `]`, in("Mcp-Protocol-Version", "2025-11-25"), 400, "-32600"},
		"batch in a stateless version":          {`[` + ping + `]`, statelessHeader("ping", ""), 400, "-32600"},
		"batch too large":                       {`[` + strings.Repeat(ping+",", 64) + ping + `]`, in("Mcp-Protocol-Version", "2025-03-26"), 400, "-32600"},
		"unsupported old version":               {say, in("Mcp-Protocol-Version", "2024-10-07"), 400, "-32022"},
		"unsupported future version":            {strings.ReplaceAll(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+statelessMeta+`}}`, "2026-07-28", "2099-01-01"), map[string]string{"Mcp-Protocol-Version": "2099-01-01", "Mcp-Method": "tools/list"}, 400, "-32022"},
		"invalid version":                       {say, in("Mcp-Protocol-Version", "newest"), 400, "-32022"},
		"version missing in the body":           {say, statelessHeader("tools/call", "say"), 400, "-32602"},
		"header names another tool":             {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + statelessMeta + `,"name":"run_command"}}`, statelessHeader("tools/call", "say"), 400, "-32020"},
		"wrong content type":                    {say, in("Content-Type", "text/plain"), 415, "-32600"},
		"nothing acceptable":                    {say, in("Accept", "text/html"), 406, "-32600"},
		"accepts only streams":                  {say, in("Accept", "text/event-stream"), 406, "-32600"},
		"session required":                      {`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, nil, 400, `"code":-32600,"message":"this resources/list needs a session`},
		"second initialize":                     {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, in(), 200, `"code":-32600`},
		"initialize with a number":              {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":5}`, nil, 200, `"code":-32600`},
		"second initialize in a batch":          {`[` + ping + `,{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}]`, in("Mcp-Protocol-Version", "2025-03-26"), 200, `"code":-32600`},
		"answers to no question":                {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},"inputResponses":null}}`, in(), 200, `"code":-32602,"message":"inputResponses must be an object"`},
		"unknown cursor":                        {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, in(), 200, "-32602"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.post(t, "ann@tester", "/mcp", c.body, c.header)
			if got.status != c.status || !strings.Contains(got.body, c.has) {
				t.Errorf("%d %.300s, want %d with %q", got.status, got.body, c.status, c.has)
			}
			if kind := got.header.Get("Content-Type"); got.status >= 400 && (kind != "application/json" || !gjson.Get(got.body, "error.code").Exists()) {
				t.Errorf("%s %s is not a JSON-RPC error", kind, got.body)
			}
		})
	}
	if got := f.post(t, "ann@tester", "/mcp", say, in()); got.status != http.StatusOK || !strings.Contains(got.body, `"text":"x"`) {
		t.Errorf("a valid request afterwards: %d %s", got.status, got.body)
	}
}

func TestServePOST_AnswersBatch(t *testing.T) {
	f := openFixture(t)
	id := f.initialize(t, "ann@tester", "/mcp", map[string]string{"Accept": "application/json"})
	got := f.post(t, "ann@tester", "/mcp", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"one"}}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_command"}}]`,
		map[string]string{"Mcp-Session-Id": id, "Accept": "application/json", "Mcp-Protocol-Version": "2025-03-26"})
	if got.status != http.StatusOK || !strings.Contains(got.body, `"one"`) || !strings.Contains(got.body, "Unknown tool: run_command") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestServe_RejectsOtherHTTPMethods(t *testing.T) {
	f := openFixture(t)
	for _, header := range []map[string]string{nil, statelessHeader("ping", "")} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, f.url+"/mcp", nil)
		if got := f.send(t, "ann@tester", r, header); got.status != http.StatusMethodNotAllowed {
			t.Errorf("PUT: %d %s", got.status, got.body)
		} else if !gjson.Get(got.body, "error.code").Exists() {
			t.Errorf("the answer to PUT is not a JSON-RPC error: %s", got.body)
		}
	}
}

func TestServe_RejectsUnsupportedVersion(t *testing.T) {
	f := openFixture(t)
	session := f.initialize(t, "ann@tester", "/mcp", nil)
	for _, version := range []string{"2024-10-07", "2025-11-26", "2099-01-01", "newest", "DRAFT-2026-v1", strings.Repeat("x", 1000)} {
		for _, id := range []string{"", session} {
			for _, method := range []string{"tools/list", "server/discover", "initialize", "ping", "unknown/method"} {
				got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":"x","method":"`+method+`"}`, map[string]string{"Mcp-Protocol-Version": version, "Mcp-Session-Id": id})
				e := gjson.Get(got.body, "error")
				if got.status != 400 || e.Get("code").Int() != -32022 || e.Get("data.supported").Raw != `["`+strings.Join(versions, `","`)+`"]` || !strings.HasPrefix(version, strings.TrimSuffix(e.Get("data.requested").Str, "…")) || gjson.Get(got.body, "id").Raw != `"x"` || len(got.body) > 500 {
					t.Errorf("%.20s of %.20s: %d %s", method, version, got.status, got.body)
				}
			}
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				r, _ := http.NewRequestWithContext(t.Context(), method, f.url+"/mcp", nil)
				if got := f.send(t, "ann@tester", r, map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": version}); got.status != 400 || gjson.Get(got.body, "error.code").Int() != -32022 {
					t.Errorf("%s of %.20s: %d %s", method, version, got.status, got.body)
				}
			}
		}
	}
	if got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": session}); got.status != 200 {
		t.Errorf("a valid request afterwards: %d %s", got.status, got.body)
	}
}

// A missing Accept header, and one that accepts anything, is answered with a
// document.
func TestServePOST_AnswersWithoutAcceptHeader(t *testing.T) {
	f := openFixture(t)
	session := ""
	for _, accept := range [][]string{nil, {""}, {"*/*"}, {"application/json"}} {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":1}}}`,
		} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if accept != nil {
				r.Header["Accept"] = accept
			}
			if session != "" && !strings.Contains(body, "initialize") {
				r.Header.Set("Mcp-Session-Id", session)
			}
			got, err := senderTransport{sender: "ann@tester"}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(got.Body)
			got.Body.Close()
			if id := got.Header.Get("Mcp-Session-Id"); id != "" {
				session = id
			}
			if got.StatusCode != 200 || got.Header.Get("Content-Type") != "application/json" || !gjson.GetBytes(text, "result").Exists() {
				t.Errorf("%q, %s: %d %s", accept, body, got.StatusCode, text)
			}
		}
	}
	stream := f.initialize(t, "ann@tester", "/mcp", nil)
	for _, accept := range []string{"", "*/*"} {
		if got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Accept": accept, "Mcp-Session-Id": stream}); got.status != 200 {
			t.Errorf("%q in a session of streams: %d %s", accept, got.status, got.body)
		}
	}
}

func TestServe_IgnoresTrailingSlash(t *testing.T) {
	f := openFixture(t)
	f.declareTools(t)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, path := range []string{"/mcp/flights/find", "/roles/flyer/mcp/flights/find", "/mcp/flights%2Ffind", "/mcp/probe", "/mcp/nowhere", "/mcp", "/roles/flyer/mcp"} {
		without, slashed := f.post(t, "ann@flyer", path, list, nil), f.post(t, "ann@flyer", path+"/", list, nil)
		if without.status != slashed.status || without.body != slashed.body {
			t.Errorf("%s: got %d %s, with a slash %d %s", path, without.status, without.body, slashed.status, slashed.body)
		}
	}
	if got := f.post(t, "ann@flyer", "/mcp/%2F", list, nil); !strings.Contains(got.body, "does not exist") {
		t.Errorf("only a slash: %d %s", got.status, got.body)
	}
	id := f.initialize(t, "ann@flyer", "/mcp/flights/find/", nil)
	if got := f.post(t, "ann@flyer", "/mcp/flights/find", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, map[string]string{"Mcp-Session-Id": id}); got.status != 200 {
		t.Errorf("a session started with a slash: %d %s", got.status, got.body)
	}
}

func TestServePOST_NoStreamForDocumentClients(t *testing.T) {
	f := openFixture(t)
	plain := map[string]string{"Accept": "application/json"}
	id := f.initialize(t, "ann@tester", "/mcp", plain)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":1}}}`,
	} {
		got := f.post(t, "ann@tester", "/mcp", body, map[string]string{"Accept": "application/json", "Mcp-Session-Id": id})
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %s", body, got.status, got.header.Get("Content-Type"), got.body)
		}
		decodeJSON(t, got.body)
	}
	stream := f.initialize(t, "ann@tester", "/mcp", nil)
	for body, want := range map[string]int{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`: http.StatusOK, `{"jsonrpc":"2.0","id":1,"method":"ping"}`: http.StatusNotAcceptable} {
		if got := f.post(t, "ann@tester", "/mcp", body, map[string]string{"Accept": "application/json", "Mcp-Session-Id": stream}); got.status != want {
			t.Errorf("%s in a session of streams: %d %s", body, got.status, got.body)
		}
	}
}
