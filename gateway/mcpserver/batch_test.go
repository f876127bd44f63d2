package mcpserver_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestServePOST_AnswersBatchWithoutSession(t *testing.T) {
	f := openFixture(t)
	for _, header := range []map[string]string{nil, {"Mcp-Protocol-Version": "2025-03-26"}} {
		got := f.post(t, "ann@tester", "/mcp", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},
			{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}},
			{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_command"}},
			{"jsonrpc":"2.0","method":"notifications/initialized"}, {"jsonrpc":"2.0","id":9,"result":{}}, {"jsonrpc":"2.0","method":"tools/list"},
			{"jsonrpc":"2.0","id":4,"method":"ping"}, {"jsonrpc":"2.0","id":5,"method":"tools/steal"}, {"jsonrpc":"2.0","id":6,"method":"prompts/list"},
			{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}, {"jsonrpc":"2.0","id":{},"method":"ping"}, 5,
			{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"cursor":"x"}}]`, header)
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
			t.Fatalf("%d %s", got.status, got.body)
		}
		var list []string
		for _, answer := range gjson.Parse(got.body).Array() {
			list = append(list, answer.Get("id").Raw+" "+answer.Get("error.code").Raw+answer.Get("result.content.0.text").Str+answer.Get("result.tools.#").Raw)
		}
		want := []string{`1 7`, `"2" x`, `3 -32602`, `4 `, `5 -32601`, `6 -32600`, `7 -32600`, `null -32600`, `null -32600`, `8 -32602`}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, got.body)
		}
	}
	for body, want := range map[string]int{`[]`: http.StatusBadRequest, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`: http.StatusAccepted} {
		if got := f.post(t, "ann@tester", "/mcp", body, nil); got.status != want || want == http.StatusAccepted && got.body != "" {
			t.Errorf("%s: %d %s, want %d", body, got.status, got.body, want)
		}
	}
}

// A call of the revision without sessions is answered with one complete document,
// whatever else its parameters contain.
func TestToolsCall_CompleteWithFurtherParameters(t *testing.T) {
	f := openFixture(t)
	for _, c := range []struct {
		params string // further ones
		status int
		want   string
	}{
		{``, 200, `"resultType":"complete"`},
		{`"task":{"ttl":5},`, 200, `"resultType":"complete"`},
		{`"x-vendor":[1],"requestState":"s","inputResponses":{"a":{}},`, 200, `"resultType":"complete"`},
		{`"inputResponses":null,`, 400, `"code":-32602`},
		{`"inputResponses":[],`, 400, `"code":-32602`},
		{`"inputResponses":{"a":null},`, 400, `"code":-32602`},
		{`"requestState":null,`, 400, `"code":-32602`},
	} {
		got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},`+c.params+statelessMeta+`}}`, statelessHeader("tools/call", "say"))
		if got.status != c.status || got.header.Get("Content-Type") != "application/json" || !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %d %s %s, want %d %s", c.params, got.status, got.header.Get("Content-Type"), got.body, c.status, c.want)
		}
	}
	byPeer := strings.Replace(statelessMeta, `"version":"1"`, `"version":"1","websiteUrl":"https://example.com"`, 1)
	for name, body := range map[string]string{
		"fields of the client":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},` + byPeer + `}}`,
		"fields of the envelope": `{"jsonrpc":"2.0","id":1,"method":"tools/call","other":1,"params":{"name":"say","arguments":{"text":"x"},` + statelessMeta + `}}`,
	} {
		got := f.post(t, "ann@tester", "/mcp", body, statelessHeader("tools/call", "say"))
		if got.status != 200 || got.header.Get("Content-Type") != "application/json" || !strings.Contains(got.body, `"resultType":"complete"`) {
			t.Errorf("%s: %d %s %s", name, got.status, got.header.Get("Content-Type"), got.body)
		}
	}
}

// The tool claim requires a token for the call itself.
func TestToolbox_RequiredTokenIsAnError(t *testing.T) {
	f := openFixture(t)
	f.declareTools(t)
	in := map[string]string{"Mcp-Session-Id": f.initialize(t, "ann@flyer", "/mcp", nil)}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claim","arguments":{}}}`
	for name, header := range map[string]map[string]string{"without a session": nil, "in a session": in} {
		for _, token := range []string{"", "expired my_auth"} {
			all := map[string]string{"my_auth_token": token}
			for k, v := range header {
				all[k] = v
			}
			got := f.post(t, "ann@flyer", "/mcp", call, all)
			if got.status != http.StatusUnauthorized || gjson.Get(got.body, "error.code").Int() != -32600 || gjson.Get(got.body, "result").Exists() {
				t.Errorf("%s, token %q: %d %s", name, token, got.status, got.body)
			}
		}
	}
}

// A parameter that is filled from a token is an argument: its failure is a result.
func TestToolbox_ParameterTokenIsAResult(t *testing.T) {
	f := openFixture(t)
	f.register(t, toolgroups.Group{ID: "papers", Description: "d", Tools: []tool.Tool{
		gatewaytest.NewDeclaredTool(t, "mine", "", nil, parameter.Spec{Name: "uid", Type: "string", Description: "d", Auth: []parameter.Claim{{Service: "my_auth", Field: "sub"}}}),
	}})
	f.role(t, "reader", "papers")
	got := f.post(t, "ann@reader", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mine","arguments":{}}}`, nil)
	if got.status != http.StatusOK || !gjson.Get(got.body, "result.isError").Bool() || !strings.Contains(got.body, "unauthenticated") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestServeStdio_ErrorsHaveCodes(t *testing.T) {
	f := openFixture(t)
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:                                                                                  `"code":-32600`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},"inputResponses":null}}`:           `"code":-32602`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},"other":1,` + statelessMeta + `}}`: `"resultType":"complete"`,
	} {
		var out strings.Builder
		if err := f.server.ServeStdio(t.Context(), strings.NewReader(line+"\n"), &out, mcpserver.StdioClient{Sender: operator, Role: "tester"}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s %v, want %s", line, out.String(), err, want)
		}
	}
}

// An error of the SDK without a code gets one. A result with such a text stays as it is.
func TestServePOST_KeepsCodesInResults(t *testing.T) {
	f := openFixture(t)
	text := `{"error":{"code":0}}`
	in := map[string]string{"Mcp-Session-Id": f.initialize(t, "ann@tester", "/mcp", nil)}
	got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"other":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":`+strconv.Quote(text)+`}}}`, in)
	if said := answerJSON(got).Get("result.structuredContent.text").Str; said != text {
		t.Errorf("got %s", got.body)
	}
}
