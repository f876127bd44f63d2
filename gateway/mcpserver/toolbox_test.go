package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// declareTools registers declared tools, a tool whose schema has lists of
// types, and the role flyer.
func (f *fixture) declareTools(t *testing.T) {
	t.Helper()
	no := false
	word := parameter.Spec{Name: "b", Type: "string", Description: "d", Required: &no}
	loose := must(t)(tool.New("loose", "d", func(context.Context, map[string]any) (string, error) { return "x", nil },
		&tool.Options{Input: json.RawMessage(`{"type":"object","properties":{"type":{"type":["null","array"],"items":{"type":["string","null"]}}}}`)}))
	f.register(t, toolgroups.Group{ID: "flights/find", Tools: []tool.Tool{
		gatewaytest.NewDeclaredTool(t, "s", "", nil, word),
		gatewaytest.NewDeclaredTool(t, "rows", `[{"id":1,"id":2},"text",{"id":9007199254740993}]`, nil),
		gatewaytest.NewDeclaredTool(t, "none", `[]`, nil), loose,
	}})
	f.register(t, toolgroups.Group{ID: "flights/book", Tools: []tool.Tool{
		gatewaytest.NewDeclaredTool(t, "claim", "", []string{"my_auth"}, parameter.Spec{Name: "uid", Type: "string", Description: "d", Auth: []parameter.Claim{{Service: "my_auth", Field: "sub"}}}),
		gatewaytest.NewDeclaredTool(t, "secret", "", nil, parameter.Spec{Name: "a", Type: "string", Description: "d", Secure: true}, word),
	}})
	f.role(t, "flyer", "flights/find", "flights/book")
}

const toolboxAccept = "application/json, text/plain, */*"

// postToolbox sends a request as the official client does: without a session,
// and to a path with a slash at its end.
func (f *fixture) postToolbox(t *testing.T, path, method, params string, header map[string]string) answer {
	t.Helper()
	all := map[string]string{"Accept": toolboxAccept, "Mcp-Protocol-Version": "2025-11-25"}
	for name, value := range header {
		all[name] = value
	}
	got := f.post(t, "ann@flyer", path, `{"jsonrpc":"2.0","id":"3f1b","method":"`+method+`","params":{`+params+`}}`, all)
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s is answered with %s", method, params, kind)
	}
	return got
}

// postToolboxStateless is postToolbox for the version without sessions.
// extensions are the client's capabilities.
func (f *fixture) postToolboxStateless(t *testing.T, path, method, name, params, extensions string, header map[string]string) answer {
	t.Helper()
	all := statelessHeader(method, name)
	for name, value := range header {
		all[name] = value
	}
	if params != "" {
		params += ","
	}
	return f.postToolbox(t, path, method, params+strings.Replace(statelessMeta, `clientCapabilities":{}`, `clientCapabilities":{"extensions":`+extensions+`}`, 1), all)
}

const secureExtensions = `{"com.google.cloud/toolbox.v1":{}}`

func listedNames(body string) string {
	var names []string
	for _, name := range gjson.Get(body, "result.tools.#.name").Array() {
		names = append(names, name.Str)
	}
	return strings.Join(names, " ")
}

func TestToolbox_ListsWithoutSession(t *testing.T) {
	f := openFixture(t)
	f.declareTools(t)
	for path, want := range map[string]string{
		"/mcp": "claim loose none rows s", "/mcp/": "claim loose none rows s", "/roles/flyer/mcp/": "claim loose none rows s",
		"/mcp/flights/find": "loose none rows s", "/roles/flyer/mcp/flights/book": "claim",
	} {
		if got := f.postToolbox(t, path, "tools/list", "", nil); got.status != 200 || listedNames(got.body) != want {
			t.Errorf("%s: %d %s, want %s", path, got.status, got.body, want)
		}
		if got := f.postToolboxStateless(t, path, "tools/list", "", "", `{}`, nil); got.status != 200 || listedNames(got.body) != want {
			t.Errorf("%s in the version without sessions: %d %s, want %s", path, got.status, got.body, want)
		}
	}
	if got := f.postToolboxStateless(t, "/mcp/", "tools/list", "", "", secureExtensions, nil); listedNames(got.body) != "claim loose none rows s secret" {
		t.Errorf("with the extension: %s", got.body)
	}
	if got := f.post(t, "ann@flyer", "/mcp/", `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`, map[string]string{"Accept": toolboxAccept}); got.status != http.StatusAccepted || got.body != "" {
		t.Errorf("initialized: %d %s", got.status, got.body)
	}
	for path, other := range map[string]string{"/mcp/probe": "/mcp/none", "/roles/flyer/mcp/probe": "/roles/flyer/mcp/none", "/roles/tester/mcp/": "/roles/none/mcp/"} {
		got, none := f.post(t, "ann@flyer", path, `{"id":1}`, nil), f.post(t, "ann@flyer", other, `{"id":1}`, nil)
		if got.status != none.status || strings.ReplaceAll(got.body, "tester", "none") != none.body {
			t.Errorf("%s: got %d %s, an unknown path gets %d %s", path, got.status, got.body, none.status, none.body)
		}
	}
}

func TestToolbox_ListsAuthServices(t *testing.T) {
	f := openFixture(t)
	f.declareTools(t)
	inSession, stateless := f.postToolbox(t, "/mcp/", "tools/list", "", nil).body, f.postToolboxStateless(t, "/mcp/", "tools/list", "", "", secureExtensions, nil).body
	id := f.initialize(t, "ann@flyer", "/mcp", nil)
	other := f.post(t, "ann@flyer", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id}).body
	for name, want := range map[string]struct{ body, at, json string }{
		"claims are properties":                    {inSession, `tools.#(name=="claim").inputSchema`, `{"type":"object","properties":{"uid":{"type":"string","description":"d"}},"required":["uid"]}`},
		"old key for parameters":                   {inSession, `tools.#(name=="claim")._meta.toolbox/authParam`, `{"uid":["my_auth"]}`},
		"old key for the call":                     {inSession, `tools.#(name=="claim")._meta.toolbox/authInvoke`, `["my_auth"]`},
		"new key for parameters":                   {stateless, `tools.#(name=="claim")._meta.com\.google\.cloud/authParam`, `{"uid":["my_auth"]}`},
		"new key for the call":                     {stateless, `tools.#(name=="claim")._meta.com\.google\.cloud/authInvoke`, `["my_auth"]`},
		"no meta without auth":                     {stateless, `tools.#(name=="s")._meta`, ``},
		"one type for declared tools":              {stateless, `tools.#(name=="s").inputSchema.properties.b.type`, `"string"`},
		"one type for tools that are not declared": {inSession, `tools.#(name=="loose").inputSchema.properties`, `{"type":{"items":{"type":"string"},"type":"array"}}`},
		"lists of types for other clients":         {other, `tools.#(name=="loose").inputSchema.properties`, `{"type":{"type":["null","array"],"items":{"type":["string","null"]}}}`},
		"secure arguments":                         {stateless, `tools.#(name=="secret").secureInputSchema`, `{"type":"object","properties":{"a":{"type":"string","description":"d"}},"required":["a"]}`},
		"plain arguments of the same tool":         {stateless, `tools.#(name=="secret").inputSchema`, `{"type":"object","properties":{"b":{"type":"string","description":"d"}}}`},
		"no secure arguments":                      {stateless, `tools.#(name=="s").secureInputSchema`, ``},
		"server info":                              {stateless, `_meta.io\.modelcontextprotocol/serverInfo.version`, `"1.2.3"`},
		"hints":                                    {stateless, `tools.#(name=="s").annotations.destructiveHint`, `true`},
		"no secure tools in sessions":              {other, `tools.#(name=="secret")`, ``},
	} {
		if got := gjson.Get(want.body, "result."+want.at).Raw; got != want.json {
			t.Errorf("%s: got %s, want %s\n%s", name, got, want.json, want.body)
		}
	}
}

func TestToolbox_CallsWithoutSession(t *testing.T) {
	f := openFixture(t)
	f.declareTools(t)
	token := map[string]string{"my_auth_token": "good my_auth"}
	for name, c := range map[string]struct {
		tool, params string
		header       map[string]string
		want         string // the texts of the result, as a JSON list
	}{
		"a row":                    {"s", `"arguments":{"b":"x"}`, nil, `["{\"row\":[\"x\"]}"]`},
		"one text per row":         {"rows", `"arguments":{}`, nil, `["{\"id\":1,\"id\":2}","text","{\"id\":9007199254740993}"]`},
		"no rows":                  {"none", `"arguments":{}`, nil, `[]`},
		"null":                     {"none", `"arguments":null`, nil, `[]`},
		"no arguments":             {"none", ``, nil, `[]`},
		"a claim":                  {"claim", `"arguments":{}`, token, `["{\"row\":[\"ann of my_auth\"]}"]`},
		"a claim in arguments":     {"claim", `"arguments":{"uid":"eve"}`, token, `["{\"row\":[\"ann of my_auth\"]}"]`},
		"with a progress token":    {"none", `"arguments":{},"_meta":{"progressToken":1}`, nil, `[]`},
		"no token":                 {"claim", `"arguments":{"uid":"eve"}`, nil, ``},
		"token with Bearer prefix": {"claim", `"arguments":{}`, map[string]string{"my_auth_token": "Bearer good my_auth"}, ``},
		"token in Authorization":   {"claim", `"arguments":{}`, map[string]string{"Authorization": "Bearer good my_auth"}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			params := `"name":"` + c.tool + `"`
			if c.params != "" {
				params += "," + c.params
			}
			bodies := []string{f.postToolbox(t, "/mcp/", "tools/call", params, c.header).body}
			if !strings.Contains(params, "_meta") {
				bodies = append(bodies, f.postToolboxStateless(t, "/mcp/", "tools/call", c.tool, params, secureExtensions, c.header).body)
			}
			for _, body := range bodies {
				wantTexts(t, body, c.want)
			}
		})
	}
}

// wantTexts checks the texts of a result; "" requires the error of an
// unauthenticated call.
func wantTexts(t *testing.T, body, want string) {
	t.Helper()
	result := gjson.Get(body, "result")
	got := gjson.Get(body, "result.content.#.text").Raw
	switch {
	case want == "" && (result.Exists() || gjson.Get(body, "error.code").Int() != -32600 || !strings.Contains(body, "unauthorized Tool call: Please make sure you specify correct auth headers")):
		t.Errorf("%s", body)
	case want != "" && (got != want || result.Get("isError").Bool() || gjson.Get(body, "id").Raw != `"3f1b"`):
		t.Errorf("%s, want %s", body, want)
	}
}

func TestToolbox_SecureArgumentsNeedExtension(t *testing.T) {
	f := openFixture(t)
	f.declareTools(t)
	call := `"name":"secret","arguments":{"a":"theirs","b":"x"},"secureArguments":{"a":"ours"}`
	got := f.postToolboxStateless(t, "/mcp/", "tools/call", "secret", call, secureExtensions, nil)
	wantTexts(t, got.body, `["{\"row\":[\"ours\",\"x\"]}"]`)
	for name, params := range map[string]string{"in arguments": `"name":"secret","arguments":{"a":"ours"}`, "not an object": `"name":"secret","arguments":{},"secureArguments":["ours"]`} {
		if got := f.postToolboxStateless(t, "/mcp/", "tools/call", "secret", params, secureExtensions, nil); !gjson.Get(got.body, "result.isError").Bool() {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	none := strings.ReplaceAll(call, "secret", "nope")
	for name, got := range map[string][2]answer{
		"without the extension": {f.postToolboxStateless(t, "/mcp/", "tools/call", "secret", call, `{}`, nil), f.postToolboxStateless(t, "/mcp/", "tools/call", "nope", none, `{}`, nil)},
		"in an old version":     {f.postToolbox(t, "/mcp/", "tools/call", call, nil), f.postToolbox(t, "/mcp/", "tools/call", none, nil)},
	} {
		if gjson.Get(got[0].body, "error.code").Int() != -32602 || got[0].status != got[1].status || strings.ReplaceAll(got[0].body, "secret", "nope") != got[1].body {
			t.Errorf("%s: %d %s, want what an unknown tool gets: %d %s", name, got[0].status, got[0].body, got[1].status, got[1].body)
		}
	}
	if err := f.rt.Flush(); err != nil {
		t.Fatal(err)
	}
	for e, err := range f.rt.JournalStore().FollowEvents(t.Context(), 0, false) {
		text, _ := json.Marshal(e)
		if err != nil || strings.Contains(string(text), `"secureArguments`) {
			t.Errorf("on record: %s, %v", text, err)
		}
	}
}

// A client of version 2025-03-26 starts a session at the role and lists a group
// of the role in the same session.
func TestToolbox_RoleSessionListsGroups(t *testing.T) {
	f := openFixture(t)
	f.declareTools(t)
	id := f.initialize(t, "ann@flyer", "/mcp/", map[string]string{"Accept": toolboxAccept})
	list := `{"jsonrpc":"2.0","id":"3f1b","method":"tools/list","params":{}}`
	header := map[string]string{"Accept": toolboxAccept, "Mcp-Session-Id": id}
	if got := f.post(t, "ann@flyer", "/mcp/flights/book", list, header); listedNames(got.body) != "claim" {
		t.Errorf("a group: %d %s", got.status, got.body)
	}
	if got := f.post(t, "ann@flyer", "/mcp/probe", list, header); !strings.Contains(got.body, "toolset does not exist") {
		t.Errorf("a group of another role: %d %s", got.status, got.body)
	}
	for name, c := range map[string]struct{ sender, path, body string }{
		"another user":     {"bob@flyer", "/mcp/flights/book", list},
		"another role":     {"ann@tester", "/mcp/probe", list},
		"something else":   {"ann@flyer", "/mcp/flights/book", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		"a call elsewhere": {"ann@flyer", "/mcp/flights/book", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s"}}`},
	} {
		if got := f.post(t, c.sender, c.path, c.body, header); got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// Requests that the SDK answers get the same results: claims, rows, and no tools
// with secure arguments.
func TestToolbox_DeclaredToolsThroughSDK(t *testing.T) {
	f := openFixture(t)
	f.declareTools(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: f.url + "/mcp/", MaxRetries: -1,
				HTTPClient: &http.Client{Transport: senderTransport{"ann@flyer", map[string]string{"my_auth_token": "good my_auth"}}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := toolNames(t, session); got != "claim loose none rows s" {
				t.Errorf("tools %s", got)
			}
			for name, want := range map[string]int{"claim": 1, "rows": 3, "none": 0} {
				params := &sdk.CallToolParams{Name: name, Arguments: raw(`{}`), Meta: sdk.Meta{"example.com/more": 1}}
				got, err := session.CallTool(t.Context(), params)
				if err != nil || got.IsError || len(got.Content) != want {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
			}
			if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "secret", Arguments: raw(`{}`)}); err == nil || !strings.Contains(err.Error(), "Unknown tool: secret") {
				t.Errorf("a secure tool: %v", err)
			}
		})
	}
}
