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
	"github.com/rolecall/rolecall/parameter"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// declare adds a role flyer with declared tools, and one without a single type.
func (h *house) declare(t *testing.T) {
	t.Helper()
	no := false
	word := parameter.Spec{Name: "b", Type: "string", Description: "d", Required: &no}
	loose := made(t)(tool.New("loose", "d", func(context.Context, map[string]any) (string, error) { return "x", nil },
		&tool.Options{Input: json.RawMessage(`{"type":"object","properties":{"type":{"type":["null","array"],"items":{"type":["string","null"]}}}}`)}))
	h.register(t, toolgroups.Group{ID: "flights/find", Tools: []tool.Tool{
		gatewaytest.Declare(t, "s", "", nil, word),
		gatewaytest.Declare(t, "rows", `[{"id":1,"id":2},"text",{"id":9007199254740993}]`, nil),
		gatewaytest.Declare(t, "none", `[]`, nil), loose,
	}})
	h.register(t, toolgroups.Group{ID: "flights/book", Tools: []tool.Tool{
		gatewaytest.Declare(t, "claim", "", []string{"my_auth"}, parameter.Spec{Name: "uid", Type: "string", Description: "d", Auth: []parameter.Claim{{Service: "my_auth", Field: "sub"}}}),
		gatewaytest.Declare(t, "secret", "", nil, parameter.Spec{Name: "a", Type: "string", Description: "d", Secure: true}, word),
	}})
	h.role(t, "flyer", "flights/find", "flights/book")
}

const toolboxAccept = "application/json, text/plain, */*"

// toolbox sends a request as the official client does: without a session, to a
// path with a slash at its end.
func (h *house) toolbox(t *testing.T, path, method, params string, header map[string]string) answer {
	t.Helper()
	all := map[string]string{"Accept": toolboxAccept, "Mcp-Protocol-Version": "2025-11-25"}
	for name, value := range header {
		all[name] = value
	}
	got := h.post(t, "ann@flyer", path, `{"jsonrpc":"2.0","id":"3f1b","method":"`+method+`","params":{`+params+`}}`, all)
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s is answered with %s", method, params, kind)
	}
	return got
}

// fresh is toolbox of the version without sessions; extensions are what the
// client states.
func (h *house) fresh(t *testing.T, path, method, name, params, extensions string, header map[string]string) answer {
	t.Helper()
	all := modern(method, name)
	for name, value := range header {
		all[name] = value
	}
	if params != "" {
		params += ","
	}
	return h.toolbox(t, path, method, params+strings.Replace(meta, `clientCapabilities":{}`, `clientCapabilities":{"extensions":`+extensions+`}`, 1), all)
}

const secureArguments = `{"com.google.cloud/toolbox.v1":{}}`

func listed(body string) string {
	var names []string
	for _, name := range gjson.Get(body, "result.tools.#.name").Array() {
		names = append(names, name.Str)
	}
	return strings.Join(names, " ")
}

func TestClientsOfToolboxListWithoutASession(t *testing.T) {
	h := open(t)
	h.declare(t)
	for path, want := range map[string]string{
		"/mcp": "claim loose none rows s", "/mcp/": "claim loose none rows s", "/roles/flyer/mcp/": "claim loose none rows s",
		"/mcp/flights/find": "loose none rows s", "/roles/flyer/mcp/flights/book": "claim",
	} {
		if got := h.toolbox(t, path, "tools/list", "", nil); got.status != 200 || listed(got.body) != want {
			t.Errorf("%s: %d %s, want %s", path, got.status, got.body, want)
		}
		if got := h.fresh(t, path, "tools/list", "", "", `{}`, nil); got.status != 200 || listed(got.body) != want {
			t.Errorf("%s in the version without sessions: %d %s, want %s", path, got.status, got.body, want)
		}
	}
	if got := h.fresh(t, "/mcp/", "tools/list", "", "", secureArguments, nil); listed(got.body) != "claim loose none rows s secret" {
		t.Errorf("with the extension: %s", got.body)
	}
	if got := h.post(t, "ann@flyer", "/mcp/", `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`, map[string]string{"Accept": toolboxAccept}); got.status != http.StatusAccepted || got.body != "" {
		t.Errorf("initialized: %d %s", got.status, got.body)
	}
	for path, other := range map[string]string{"/mcp/probe": "/mcp/none", "/roles/flyer/mcp/probe": "/roles/flyer/mcp/none", "/roles/tester/mcp/": "/roles/none/mcp/"} {
		got, none := h.post(t, "ann@flyer", path, `{"id":1}`, nil), h.post(t, "ann@flyer", other, `{"id":1}`, nil)
		if got.status != none.status || strings.ReplaceAll(got.body, "tester", "none") != none.body {
			t.Errorf("%s: %d %s, want what is answered where nothing is: %d %s", path, got.status, got.body, none.status, none.body)
		}
	}
}

func TestClientsOfToolboxAreToldOfAuthServices(t *testing.T) {
	h := open(t)
	h.declare(t)
	old, new := h.toolbox(t, "/mcp/", "tools/list", "", nil).body, h.fresh(t, "/mcp/", "tools/list", "", "", secureArguments, nil).body
	id := h.initialize(t, "ann@flyer", "/mcp", nil)
	other := h.post(t, "ann@flyer", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id}).body
	for name, want := range map[string]struct{ body, at, json string }{
		"claims are properties":     {old, `tools.#(name=="claim").inputSchema`, `{"type":"object","properties":{"uid":{"type":"string","description":"d"}},"required":["uid"]}`},
		"the old names":             {old, `tools.#(name=="claim")._meta.toolbox/authParam`, `{"uid":["my_auth"]}`},
		"the old name of the call":  {old, `tools.#(name=="claim")._meta.toolbox/authInvoke`, `["my_auth"]`},
		"the new names":             {new, `tools.#(name=="claim")._meta.com\.google\.cloud/authParam`, `{"uid":["my_auth"]}`},
		"the new name of the call":  {new, `tools.#(name=="claim")._meta.com\.google\.cloud/authInvoke`, `["my_auth"]`},
		"nothing to say":            {new, `tools.#(name=="s")._meta`, ``},
		"one type":                  {new, `tools.#(name=="s").inputSchema.properties.b.type`, `"string"`},
		"one type of other tools":   {old, `tools.#(name=="loose").inputSchema.properties`, `{"type":{"items":{"type":"string"},"type":"array"}}`},
		"two types, to others":      {other, `tools.#(name=="loose").inputSchema.properties`, `{"type":{"type":["null","array"],"items":{"type":["string","null"]}}}`},
		"secure arguments":          {new, `tools.#(name=="secret").secureInputSchema`, `{"type":"object","properties":{"a":{"type":"string","description":"d"}},"required":["a"]}`},
		"arguments beside them":     {new, `tools.#(name=="secret").inputSchema`, `{"type":"object","properties":{"b":{"type":"string","description":"d"}}}`},
		"no secure ones elsewhere":  {new, `tools.#(name=="s").secureInputSchema`, ``},
		"who serves":                {new, `_meta.io\.modelcontextprotocol/serverInfo.version`, `"1.2.3"`},
		"hints":                     {new, `tools.#(name=="s").annotations.destructiveHint`, `true`},
		"sessions have no new tool": {other, `tools.#(name=="secret")`, ``},
	} {
		if got := gjson.Get(want.body, "result."+want.at).Raw; got != want.json {
			t.Errorf("%s: got %s, want %s\n%s", name, got, want.json, want.body)
		}
	}
}

func TestClientsOfToolboxCallWithoutASession(t *testing.T) {
	h := open(t)
	h.declare(t)
	token := map[string]string{"my_auth_token": "good my_auth"}
	for name, c := range map[string]struct {
		tool, params string
		header       map[string]string
		want         string // content's texts, as a list
	}{
		"a row":                  {"s", `"arguments":{"b":"x"}`, nil, `["{\"row\":[\"x\"]}"]`},
		"a part of each row":     {"rows", `"arguments":{}`, nil, `["{\"id\":1,\"id\":2}","text","{\"id\":9007199254740993}"]`},
		"no rows":                {"none", `"arguments":{}`, nil, `[]`},
		"null":                   {"none", `"arguments":null`, nil, `[]`},
		"no arguments":           {"none", ``, nil, `[]`},
		"a claim":                {"claim", `"arguments":{}`, token, `["{\"row\":[\"ann of my_auth\"]}"]`},
		"a claim in arguments":   {"claim", `"arguments":{"uid":"eve"}`, token, `["{\"row\":[\"ann of my_auth\"]}"]`},
		"progress, as one":       {"none", `"arguments":{},"_meta":{"progressToken":1}`, nil, `[]`},
		"no token":               {"claim", `"arguments":{"uid":"eve"}`, nil, ``},
		"a token in Bearer":      {"claim", `"arguments":{}`, map[string]string{"my_auth_token": "Bearer good my_auth"}, ``},
		"a token of the request": {"claim", `"arguments":{}`, map[string]string{"Authorization": "Bearer good my_auth"}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			params := `"name":"` + c.tool + `"`
			if c.params != "" {
				params += "," + c.params
			}
			bodies := []string{h.toolbox(t, "/mcp/", "tools/call", params, c.header).body}
			if !strings.Contains(params, "_meta") {
				bodies = append(bodies, h.fresh(t, "/mcp/", "tools/call", c.tool, params, secureArguments, c.header).body)
			}
			for _, body := range bodies {
				wantTexts(t, body, c.want)
			}
		})
	}
}

// wantTexts checks what a call is answered with; "" is that nobody vouches for
// the caller.
func wantTexts(t *testing.T, body, want string) {
	t.Helper()
	result := gjson.Get(body, "result")
	got := gjson.Get(body, "result.content.#.text").Raw
	switch {
	case want == "" && (!result.Get("isError").Bool() || !strings.Contains(got, "unauthenticated")):
		t.Errorf("%s", body)
	case want != "" && (got != want || result.Get("isError").Bool() || gjson.Get(body, "id").Raw != `"3f1b"`):
		t.Errorf("%s, want %s", body, want)
	}
}

func TestSecureArgumentsNeedTheExtension(t *testing.T) {
	h := open(t)
	h.declare(t)
	call := `"name":"secret","arguments":{"a":"theirs","b":"x"},"secureArguments":{"a":"ours"}`
	got := h.fresh(t, "/mcp/", "tools/call", "secret", call, secureArguments, nil)
	wantTexts(t, got.body, `["{\"row\":[\"ours\",\"x\"]}"]`)
	for name, params := range map[string]string{"in arguments": `"name":"secret","arguments":{"a":"ours"}`, "no object": `"name":"secret","arguments":{},"secureArguments":["ours"]`} {
		if got := h.fresh(t, "/mcp/", "tools/call", "secret", params, secureArguments, nil); !gjson.Get(got.body, "result.isError").Bool() {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	none := strings.ReplaceAll(call, "secret", "nope")
	for name, got := range map[string][2]answer{
		"without the extension": {h.fresh(t, "/mcp/", "tools/call", "secret", call, `{}`, nil), h.fresh(t, "/mcp/", "tools/call", "nope", none, `{}`, nil)},
		"in an old version":     {h.toolbox(t, "/mcp/", "tools/call", call, nil), h.toolbox(t, "/mcp/", "tools/call", none, nil)},
	} {
		if gjson.Get(got[0].body, "error.code").Int() != -32602 || got[0].status != got[1].status || strings.ReplaceAll(got[0].body, "secret", "nope") != got[1].body {
			t.Errorf("%s: %d %s, want what an unknown tool gets: %d %s", name, got[0].status, got[0].body, got[1].status, got[1].body)
		}
	}
	if err := h.rt.Flush(); err != nil {
		t.Fatal(err)
	}
	for e, err := range h.rt.Store().Follow(t.Context(), 0, false) {
		text, _ := json.Marshal(e)
		if err != nil || strings.Contains(string(text), `"secureArguments`) {
			t.Errorf("on record: %s, %v", text, err)
		}
	}
}

// The version 2025-03-26 begins a session at the role, and lists a group of it in
// the same.
func TestASessionAtARoleListsItsGroups(t *testing.T) {
	h := open(t)
	h.declare(t)
	id := h.initialize(t, "ann@flyer", "/mcp/", map[string]string{"Accept": toolboxAccept})
	list := `{"jsonrpc":"2.0","id":"3f1b","method":"tools/list","params":{}}`
	header := map[string]string{"Accept": toolboxAccept, "Mcp-Session-Id": id}
	if got := h.post(t, "ann@flyer", "/mcp/flights/book", list, header); listed(got.body) != "claim" {
		t.Errorf("a group: %d %s", got.status, got.body)
	}
	if got := h.post(t, "ann@flyer", "/mcp/probe", list, header); !strings.Contains(got.body, "toolset does not exist") {
		t.Errorf("another's group: %d %s", got.status, got.body)
	}
	for name, c := range map[string]struct{ sender, path, body string }{
		"another user":     {"bob@flyer", "/mcp/flights/book", list},
		"another role":     {"ann@tester", "/mcp/probe", list},
		"something else":   {"ann@flyer", "/mcp/flights/book", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		"a call elsewhere": {"ann@flyer", "/mcp/flights/book", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s"}}`},
	} {
		if got := h.post(t, c.sender, c.path, c.body, header); got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// What the SDK reads gets the same answers: a claim, rows, and no secure tools.
func TestDeclaredToolsThroughTheSDK(t *testing.T) {
	h := open(t)
	h.declare(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: h.url + "/mcp/", MaxRetries: -1,
				HTTPClient: &http.Client{Transport: as{"ann@flyer", map[string]string{"my_auth_token": "good my_auth"}}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := names(t, session); got != "claim loose none rows s" {
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
