package mcpserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

func TestToolsCall_ReturnsResult(t *testing.T) {
	f := openFixture(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := f.connect(t, "ann"+version+"@tester", "/mcp", version, nil)
			for _, c := range []struct {
				tool, args string
				text       string // "" is not checked
				structured string
				failed     bool
			}{
				{"echo", `{"text":"a<b"}`, `{"text":"a\u003cb"}`, "map[text:a<b]", false},
				{"say", `{"text":"hello"}`, "hello", "<nil>", false},
				{"fail", `{}`, "", "map[error:file_not_found message:no file of this name toolName:fail]", true},
				{"late", `{"text":"x"}`, "", "map[error:tool_not_available message:tool late is not available in this workflow state toolName:late]", true},
				{"advance", `{}`, "moved", "<nil>", false},
				{"late", `{"text":"x"}`, "x", "<nil>", false},
			} {
				got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: []byte(nil)})
				if c.args != "" {
					got, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: raw(c.args)})
				}
				if err != nil {
					t.Fatalf("%s: %v", c.tool, err)
				}
				if text := textOf(got); c.text != "" && text != c.text {
					t.Errorf("%s said %q, want %q", c.tool, text, c.text)
				}
				if s := fmt.Sprint(got.StructuredContent); s != c.structured || got.IsError != c.failed {
					t.Errorf("%s: %s, error %v; want %s, %v", c.tool, s, got.IsError, c.structured, c.failed)
				}
			}
		})
	}
}

func TestToolsCall_InvalidArgumentsAreToolErrors(t *testing.T) {
	f := openFixture(t)
	for _, version := range versions {
		got, err := f.connect(t, "ann@tester", "/mcp", version, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: raw(`{"text":7}`)})
		if err != nil {
			t.Fatal(err)
		}
		if !got.IsError || !strings.Contains(textOf(got), "invalid_arguments") || !strings.Contains(textOf(got), "text") {
			t.Errorf("%s: %+v %s", version, got, textOf(got))
		}
	}
}

// A tool of another role and a tool that does not exist are answered with the
// same bytes, apart from the name.
func TestToolsCall_HidesToolsOfOtherRoles(t *testing.T) {
	f := openFixture(t)
	session := f.initialize(t, "ann@tester", "/mcp", nil)
	group := f.initialize(t, "ann@tester", "/mcp/probe", nil)
	stateless := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + statelessMeta + `,"name":"%s","arguments":%s}}`
	inSession := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}`
	forSDK := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s,"requestState":"x"}}` // not simple, so the SDK answers
	for name, c := range map[string]struct {
		path, body string
		header     func(tool string) map[string]string
	}{
		"without a session":       {"/mcp", stateless, func(tool string) map[string]string { return statelessHeader("tools/call", tool) }},
		"in a session":            {"/mcp", inSession, func(string) map[string]string { return map[string]string{"Mcp-Session-Id": session} }},
		"in a session of a group": {"/mcp/probe", inSession, func(string) map[string]string { return map[string]string{"Mcp-Session-Id": group} }},
		"by the SDK":              {"/mcp", forSDK, func(string) map[string]string { return map[string]string{"Mcp-Session-Id": session} }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range []string{`{}`, `{"command":"true"}`, `{"x":[1,{"y":null}]}`, `[]`, `"x"`} {
				var answers []string
				for _, tool := range []string{"run_command", "ran_command", "spawn_agent", "spawn_egant", "never", "nevar", mcpserver.AskName, "ask_organizations"} {
					got := f.post(t, "ann@tester", c.path, fmt.Sprintf(c.body, tool, args), c.header(tool))
					answers = append(answers, fmt.Sprint(got.status, got.header["Content-Type"], strings.ReplaceAll(got.body, tool, "TOOL")))
				}
				for _, got := range answers {
					if got != answers[0] || !strings.Contains(got, "-32602") || !strings.Contains(got, "Unknown tool: TOOL") {
						t.Errorf("arguments %s: %s\nand %s", args, got, answers[0])
					}
				}
			}
		})
	}
}

func TestToolsCall_SameAnswerWithAndWithoutSDK(t *testing.T) {
	f := openFixture(t)
	f.registerShow(t, "tester", "probe")
	id := f.initialize(t, "ann@tester", "/mcp", map[string]string{"Accept": "application/json"})
	header := map[string]string{"Mcp-Session-Id": id, "Accept": "application/json"}
	for _, call := range []string{
		`"name":"echo","arguments":{"text":"é\u2028\n\"<"}`, `"name":"say","arguments":{"text":"x"}`, `"name":"fail"`, `"name":"none"`,
		`"name":"show","arguments":{"text":""}`, `"name":"show","arguments":{"text":"{\"a\":1}"}`, `"name":"show","arguments":{"text":"fail"}`, `"name":"echo"`,
	} {
		direct := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call+`}}`, header)
		bySDK := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call+`},"other":1}`, header)
		if withoutRefs(direct.body) != withoutRefs(bySDK.body) || direct.status != bySDK.status {
			t.Errorf("%s: got %d %s, the SDK answers %d %s", call, direct.status, direct.body, bySDK.status, bySDK.body)
		}
	}
	direct := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header)
	bySDK := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","other":1}`, header)
	if fmt.Sprint(decodeJSON(t, direct.body)) != fmt.Sprint(decodeJSON(t, bySDK.body)) {
		t.Errorf("tools/list: got %s, the SDK answers %s", direct.body, bySDK.body)
	}
}

func TestToolsCall_RecordsEveryCall(t *testing.T) {
	f := openFixture(t)
	session := f.connect(t, "ann@tester", "/mcp", "", nil)
	for _, name := range []string{"say", "run_command"} {
		_, _ = session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: raw(`{"text":"x"}`)}) // the record shows the outcome
	}
	var got []string
	if err := f.rt.Flush(); err != nil {
		t.Fatal(err)
	}
	for e, err := range f.rt.JournalStore().FollowEvents(t.Context(), 0, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := e.Body.(journal.ToolCall); ok {
			got = append(got, fmt.Sprint(c.Tool, " ", c.Decision, " ", c.Caller == identity.ByCaller("ann", f.roles["tester"]).String()))
		}
	}
	if want := "say allowed true, run_command denied true"; strings.Join(got, ", ") != want {
		t.Errorf("the record has %q, want %s", got, want)
	}
}

func TestToolsCall_CancellationReachesTool(t *testing.T) {
	f := openFixture(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := f.connect(t, "ann@tester", "/mcp", version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "wait", Arguments: raw(`{}`)})
			}()
			waitFor(t, "the tool starts", f.probe.began)
			cancel()
			waitFor(t, "the tool is cancelled", f.probe.ended)
			waitFor(t, "the client returns", done)
		})
	}
}

func TestToolsCall_DisconnectCancelsTool(t *testing.T) {
	f := openFixture(t)
	id := f.initialize(t, "ann@tester", "/mcp", nil)
	for name, header := range map[string]map[string]string{
		"in a session": {"Mcp-Session-Id": id}, "without": statelessHeader("tools/call", "wait"),
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}}`
			if name == "without" {
				body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + statelessMeta + `,"name":"wait"}}`
			}
			ctx, cancel := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			done := make(chan struct{})
			go func() {
				defer close(done)
				if got, err := (senderTransport{"ann@tester", header}).RoundTrip(r); err == nil {
					got.Body.Close()
				}
			}()
			waitFor(t, "the tool starts", f.probe.began)
			cancel()
			waitFor(t, "the tool is cancelled", f.probe.ended)
			waitFor(t, "the request ends", done)
		})
	}
}

// A call in a suspended role is answered with a failure that says so, whether the tool is
// the role's, another's or unknown.
func TestToolsCall_SuspendedRole(t *testing.T) {
	f := openFixture(t)
	session := f.initialize(t, "ann@tester", "/mcp", nil)
	role, _ := f.rt.Org().RoleByName("tester")
	if _, _, err := f.rt.PauseRole(identity.ByOperator("op"), role.ID, ""); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"echo", "run_command", "no_such", mcpserver.AskName} {
		got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`, map[string]string{"Mcp-Session-Id": session})
		if !strings.Contains(got.body, `tool `+tool+` is not available: role tester is paused`) || !strings.Contains(got.body, `"isError":true`) {
			t.Errorf("%s: %d %s", tool, got.status, got.body)
		}
	}
	got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": session})
	if !strings.Contains(got.body, `"tools":[]`) {
		t.Errorf("tools/list: %s", got.body)
	}
}
