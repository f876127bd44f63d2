package mcpserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// requestKinds returns the ways to send a request: headers, and a prefix for
// its params.
func (f *fixture) requestKinds(t *testing.T) map[string]struct {
	header map[string]string
	meta   string
} {

	t.Helper()
	stream := f.initialize(t, "ann@tester", "/mcp", nil)
	plain := f.initialize(t, "ann@tester", "/mcp", map[string]string{"Accept": "application/json"})
	return map[string]struct {
		header map[string]string
		meta   string
	}{
		"without a session":         {map[string]string{"Mcp-Protocol-Version": "2025-11-25"}, ""},
		"in a session":              {map[string]string{"Mcp-Session-Id": stream}, ""},
		"in a session of documents": {map[string]string{"Mcp-Session-Id": plain, "Accept": "application/json"}, ""},
		"in a stateless version":    {map[string]string{"Mcp-Protocol-Version": "2026-07-28"}, statelessMeta},
	}
}

// postKind posts a request of one of the kinds.
func (f *fixture) postKind(t *testing.T, header map[string]string, id, method, params string) answer {
	t.Helper()
	all := map[string]string{"Mcp-Method": method, "Mcp-Name": gjson.Get("{"+params+"}", "name").Str}
	for name, value := range header {
		all[name] = value
	}
	if id != "" {
		id = `"id":` + id + `,`
	}
	return f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0",`+id+`"method":"`+method+`","params":{`+params+`}}`, all)
}

func joinParams(params, meta string) string {
	if params == "" || meta == "" {
		return params + meta
	}
	return params + "," + meta
}

func TestIDs_EchoedUnchanged(t *testing.T) {
	f := openFixture(t)
	for name, kind := range f.requestKinds(t) {
		t.Run(name, func(t *testing.T) {
			for _, id := range []string{`0`, `-1`, `9007199254740993`, `-9223372036854775809`, `123456789012345678901234567890`, `1.5`, `1e400`, `1.0`, `-0`, `"9007199254740993"`, `""`, `"é"`} {
				for method, params := range map[string]string{
					"tools/list": ``, "tools/call": `"name":"say","arguments":{"text":"9007199254740993"}`, "unknown/method": ``,
					"resources/list": ``, // this and the next are answered by the SDK
					"tools/call ":    `"name":"say","arguments":{"text":"9007199254740993"},"requestState":"x"`,
				} {
					got := f.postKind(t, kind.header, id, strings.TrimSpace(method), joinParams(params, kind.meta))
					m := answerJSON(got)
					if m.Get("id").Raw != id || strings.HasPrefix(method, "tools/call") && m.Get("result.content.0.text").Str != "9007199254740993" && name != "without a session" {
						t.Errorf("%s with the id %s: %d %.300s", method, id, got.status, got.body)
					}
				}
			}
			if got := answerJSON(f.postKind(t, kind.header, `"a\u0062\/"`, "tools/list", kind.meta)); got.Get("id").Str != "ab/" {
				t.Errorf("a text: %s", got.Get("id").Raw)
			}
		})
	}
}

func TestIDs_EchoedInBatchAndInitialize(t *testing.T) {
	f := openFixture(t)
	plain := map[string]string{"Accept": "application/json", "Mcp-Protocol-Version": "2025-03-26"}
	got := f.post(t, "ann@tester", "/mcp", `{"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}},"jsonrpc":"2.0", "id" : 9007199254740993}`, plain)
	if got.status != 200 || gjson.Get(got.body, "id").Raw != "9007199254740993" {
		t.Fatalf("initialize: %d %s", got.status, got.body)
	}
	plain["Mcp-Session-Id"] = got.header.Get("Mcp-Session-Id")
	got = f.post(t, "ann@tester", "/mcp", ` [{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}, {"jsonrpc":"2.0","id":9007199254740995,"method":"ping"}]`, plain)
	if ids := gjson.Get(got.body, "#.id").Raw; ids != "[9007199254740993,9007199254740995]" && ids != "[9007199254740995,9007199254740993]" {
		t.Errorf("a batch: %d %s", got.status, got.body)
	}
}

func TestIDs_EchoedOnStdio(t *testing.T) {
	f := openFixture(t)
	in := `{"jsonrpc":"2.0","id":9007199254740993,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":-9223372036854775809,"method":"tools/list"}
`
	var out strings.Builder
	if err := f.server.ServeStdio(t.Context(), strings.NewReader(in), &out, mcpserver.StdioClient{Sender: operator, Role: "tester"}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, `"id":9007199254740993,`) || !strings.Contains(got, `"id":-9223372036854775809,`) {
		t.Error(got)
	}
}

func TestIDs_LargeIDCancelsCall(t *testing.T) {
	f := openFixture(t)
	id := f.initialize(t, "ann@tester", "/mcp", nil)
	for call, cancel := range map[string]string{
		`9007199254740993`: `9007199254740993`, `"a\u0062"`: `"ab"`,
	} {
		for _, more := range []string{``, `,"requestState":"x"`} { // not simple, so the SDK answers
			done := make(chan struct{})
			go func() {
				defer close(done)
				f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":`+call+`,"method":"tools/call","params":{"name":"wait"`+more+`}}`, map[string]string{"Mcp-Session-Id": id})
			}()
			waitFor(t, "the tool starts", f.probe.began)
			got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+cancel+`}}`, map[string]string{"Mcp-Session-Id": id})
			if got.status != http.StatusAccepted {
				t.Errorf("cancelled: %d %s", got.status, got.body)
			}
			waitFor(t, "the tool is cancelled", f.probe.ended)
			waitFor(t, "the request ends", done)
		}
	}
}

// Requests without an id are acknowledged and not processed.
func TestIDs_RequestWithoutIDIsIgnored(t *testing.T) {
	f := openFixture(t)
	for name, kind := range f.requestKinds(t) {
		for _, id := range []string{``, `null`} {
			for method, params := range map[string]string{
				"tools/list": ``, "tools/call": `"name":"wait"`, "initialize": `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`, "notifications/unknown": ``,
			} {
				if got := f.postKind(t, kind.header, id, method, joinParams(params, kind.meta)); got.status != http.StatusAccepted || got.body != "" {
					t.Errorf("%s, %s with the id %q: %d %s", name, method, id, got.status, got.body)
				}
			}
		}
	}
	if len(f.probe.began) != 0 {
		t.Error("a call without an id was run")
	}
}
