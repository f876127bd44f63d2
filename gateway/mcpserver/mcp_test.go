package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// versions of the protocol, each spoken to the end by the SDK's client.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const testerTools = "advance count echo fail late say wait"

func TestAClientSeesExactlyTheToolsOfItsRole(t *testing.T) {
	h := open(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			for path, want := range map[string]string{"/mcp": testerTools, "/roles/tester/mcp": testerTools, "/mcp/probe": testerTools} {
				if got := names(t, h.connect(t, "ann@tester", path, version, nil)); got != want {
					t.Errorf("at %s: %s, want %s", path, got, want)
				}
			}
			if got, want := names(t, h.connect(t, "operator", "/roles/clerk/mcp", version, nil)), "console_print get_workspace_info list_files read_file write_file"; got != want {
				t.Errorf("the operator at clerk: %s, want %s", got, want)
			}
			if got, want := names(t, h.connect(t, "ann@clerk", "/mcp/console", version, nil)), "console_print"; got != want {
				t.Errorf("clerk at console: %s, want %s", got, want)
			}
		})
	}
}

func TestToolsSayWhatTheyDo(t *testing.T) {
	h := open(t)
	list, err := h.connect(t, "ann@tester", "/mcp", "", nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][3]bool{"echo": {true, true, false}, "say": {false, true, false}, "fail": {false, false, true}} // read only, idempotent, destructive
	for _, tool := range list.Tools {
		a := tool.Annotations
		if w, ok := want[tool.Name]; ok && w != [3]bool{a.ReadOnlyHint, a.IdempotentHint, *a.DestructiveHint} {
			t.Errorf("%s: %+v, want %v", tool.Name, a, w)
		}
	}
	if list.CacheScope != "private" {
		t.Errorf("the list may be cached for others: %q", list.CacheScope)
	}
}

func TestACallIsAnswered(t *testing.T) {
	h := open(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := h.connect(t, "ann"+version+"@tester", "/mcp", version, nil)
			for _, c := range []struct {
				tool, args string
				text       string // "" is not looked at
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
				if text := said(got); c.text != "" && text != c.text {
					t.Errorf("%s said %q, want %q", c.tool, text, c.text)
				}
				if s := fmt.Sprint(got.StructuredContent); s != c.structured || got.IsError != c.failed {
					t.Errorf("%s: %s, error %v; want %s, %v", c.tool, s, got.IsError, c.structured, c.failed)
				}
			}
		})
	}
}

func TestArgumentsThatDoNotFitAreForTheModelToRepair(t *testing.T) {
	h := open(t)
	for _, version := range versions {
		got, err := h.connect(t, "ann@tester", "/mcp", version, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: raw(`{"text":7}`)})
		if err != nil {
			t.Fatal(err)
		}
		if !got.IsError || !strings.Contains(said(got), "invalid_arguments") || !strings.Contains(said(got), "text") {
			t.Errorf("%s: %+v %s", version, got, said(got))
		}
	}
}

// A tool of somebody else's and a tool of nobody's differ in nothing but the
// name that was asked for.
func TestWhatIsNotTheRolesDoesNotExist(t *testing.T) {
	h := open(t)
	session := h.initialize(t, "ann@tester", "/mcp", nil)
	group := h.initialize(t, "ann@tester", "/mcp/probe", nil)
	alone := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `,"name":"%s","arguments":%s}}`
	old := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}`
	odd := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s,"requestState":"x"}}` // the SDK reads it
	for name, c := range map[string]struct {
		path, body string
		header     func(tool string) map[string]string
	}{
		"without a session":       {"/mcp", alone, func(tool string) map[string]string { return modern("tools/call", tool) }},
		"in a session":            {"/mcp", old, func(string) map[string]string { return map[string]string{"Mcp-Session-Id": session} }},
		"in a session of a group": {"/mcp/probe", old, func(string) map[string]string { return map[string]string{"Mcp-Session-Id": group} }},
		"by the SDK":              {"/mcp", odd, func(string) map[string]string { return map[string]string{"Mcp-Session-Id": session} }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range []string{`{}`, `{"command":"true"}`, `{"x":[1,{"y":null}]}`, `[]`, `"x"`} {
				var answers []string
				for _, tool := range []string{"run_command", "ran_command", "spawn_agent", "spawn_egant", "never", "nevar", mcpserver.AskName, "ask_organizations"} {
					got := h.post(t, "ann@tester", c.path, fmt.Sprintf(c.body, tool, args), c.header(tool))
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

func TestTheSDKAndTheShortWaySayTheSame(t *testing.T) {
	h := open(t)
	id := h.initialize(t, "ann@tester", "/mcp", map[string]string{"Accept": "application/json"})
	header := map[string]string{"Mcp-Session-Id": id, "Accept": "application/json"}
	for _, call := range []string{
		`"name":"echo","arguments":{"text":"é\u2028\n\"<"}`, `"name":"say","arguments":{"text":"x"}`, `"name":"fail"`, `"name":"none"`, `"name":"echo"`,
	} {
		short := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call+`}}`, header)
		long := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call+`,"requestState":"x"}}`, header)
		if fmt.Sprint(decode(t, short.body)) != fmt.Sprint(decode(t, long.body)) || short.status != long.status {
			t.Errorf("%s: %d %s, and by the SDK %d %s", call, short.status, short.body, long.status, long.body)
		}
	}
	short := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header)
	long := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"other":1}}`, header)
	if fmt.Sprint(decode(t, short.body)) != fmt.Sprint(decode(t, long.body)) {
		t.Errorf("tools/list: %s, and by the SDK %s", short.body, long.body)
	}
}

func TestAnotherRoleDoesNotExist(t *testing.T) {
	h := open(t)
	there := h.post(t, "ann@tester", "/roles/clerk/mcp", `{}`, nil)
	not := h.post(t, "ann@tester", "/roles/clark/mcp", `{}`, nil)
	if strings.ReplaceAll(there.body, "clerk", "R") != strings.ReplaceAll(not.body, "clark", "R") || there.status != http.StatusNotFound {
		t.Errorf("%d %s; and of one that is not there %s", there.status, there.body, not.body)
	}
	byID := h.post(t, "ann@tester", "/roles/"+string(h.roles["clerk"])+"/mcp", `{}`, nil)
	if !strings.Contains(byID.body, string(errcode.RoleNotFound)) {
		t.Errorf("by id: %s", byID.body)
	}
	for _, group := range []string{"workspace", "no_such_group"} {
		if got := h.post(t, "ann@tester", "/mcp/"+group, `{}`, nil); !strings.Contains(got.body, "toolset does not exist") {
			t.Errorf("group %s: %d %s", group, got.status, got.body)
		}
	}
}

func TestTheOperatorNamesARole(t *testing.T) {
	h := open(t)
	if got := h.post(t, "operator", "/mcp", `{}`, nil); !strings.Contains(got.body, "/roles/ROLE/mcp") {
		t.Errorf("%s", got.body)
	}
	if got := h.post(t, "", "/mcp", `{}`, nil); !strings.Contains(got.body, string(errcode.Unauthenticated)) {
		t.Errorf("nobody: %s", got.body)
	}
}

func TestASessionIsItsSendersAlone(t *testing.T) {
	h := open(t)
	id := h.initialize(t, "ann@tester", "/mcp", nil)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`
	if got := h.post(t, "ann@tester", "/mcp", call, map[string]string{"Mcp-Session-Id": id}); got.status != http.StatusOK {
		t.Fatalf("its sender: %d %s", got.status, got.body)
	}
	unknown := h.post(t, "bob@tester", "/mcp", call, map[string]string{"Mcp-Session-Id": "no-such-session"})
	for name, c := range map[string]struct{ sender, path string }{
		"another user":          {"bob@tester", "/mcp"},
		"another role":          {"ann@boss", "/mcp"},
		"the operator":          {"operator", "/roles/tester/mcp"},
		"at another set":        {"ann@tester", "/mcp/probe"},
		"at the role by itself": {"eve@tester", "/roles/tester/mcp"},
	} {
		for _, body := range []string{call, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
			got := h.post(t, c.sender, c.path, body, map[string]string{"Mcp-Session-Id": id})
			if got.status != unknown.status || !strings.Contains(got.body, "there is no such session") {
				t.Errorf("%s: %d %s, want what an unknown session gets: %d %s", name, got.status, got.body, unknown.status, unknown.body)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			r, _ := http.NewRequestWithContext(t.Context(), method, h.url+c.path, nil)
			if got := h.send(t, c.sender, r, map[string]string{"Mcp-Session-Id": id}); got.status != http.StatusNotFound {
				t.Errorf("%s, %s: %d %s", name, method, got.status, got.body)
			}
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.url+"/mcp", nil)
	if got := h.send(t, "ann@tester", r, map[string]string{"Mcp-Session-Id": id}); got.status != http.StatusNoContent {
		t.Errorf("its sender ends it: %d %s", got.status, got.body)
	}
	if got := h.post(t, "ann@tester", "/mcp", call, map[string]string{"Mcp-Session-Id": id}); got.status != http.StatusNotFound {
		t.Errorf("after its end: %d %s", got.status, got.body)
	}
}

func TestClientsAreToldThatTheirToolsChanged(t *testing.T) {
	h := open(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			h.give(t, "tester", "probe")
			told := make(chan struct{}, 16)
			session := h.connect(t, "ann@tester", "/mcp", version, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} },
			})
			if got := names(t, session); got != testerTools {
				t.Fatal(got)
			}
			for { // the stream may open after the first change
				h.give(t, "tester", "console")
				if got := names(t, session); got != "console_print" {
					t.Errorf("after the change: %s", got)
				}
				if arrived(told) {
					break
				}
				h.give(t, "tester", "probe")
			}
			var gone *jsonrpc.Error
			if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "say", Arguments: raw(`{"text":"x"}`)}); !errors.As(err, &gone) || gone.Code != jsonrpc.CodeInvalidParams || gone.Message != "Unknown tool: say" {
				t.Errorf("what was revoked: %v", err)
			}
		})
	}
}

func TestTheSessionsOfARoleEndWithIt(t *testing.T) {
	h := open(t)
	id := h.initialize(t, "operator", "/roles/clerk/mcp", nil)
	if _, err := h.rt.DeleteRole(operator, h.roles["clerk"], false); err != nil {
		t.Fatal(err)
	}
	got := h.post(t, "operator", "/roles/clerk/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id})
	if got.status != http.StatusNotFound || !strings.Contains(got.body, string(errcode.RoleNotFound)) {
		t.Errorf("%d %s", got.status, got.body)
	}
	h.role(t, "clerk", "console") // another one of this name
	got = h.post(t, "operator", "/roles/clerk/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id})
	if got.status != http.StatusNotFound || !strings.Contains(got.body, "no such session") {
		t.Errorf("the session of the role that was deleted: %d %s", got.status, got.body)
	}
}

func TestEveryCallIsOnRecord(t *testing.T) {
	h := open(t)
	session := h.connect(t, "ann@tester", "/mcp", "", nil)
	for _, name := range []string{"say", "run_command"} {
		_, _ = session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: raw(`{"text":"x"}`)}) // the record says what came of it
	}
	var got []string
	if err := h.rt.Flush(); err != nil {
		t.Fatal(err)
	}
	for e, err := range h.rt.Store().Follow(t.Context(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := e.Body.(journal.ToolCall); ok {
			got = append(got, fmt.Sprint(c.Tool, " ", c.Decision, " ", c.Caller == identity.ByCaller("ann", h.roles["tester"]).String()))
		}
	}
	if want := "say allowed true, run_command denied true"; strings.Join(got, ", ") != want {
		t.Errorf("the record has %q, want %s", got, want)
	}
}

func TestConfigurationsThatCannotBe(t *testing.T) {
	h := open(t)
	for _, config := range []mcpserver.Config{{}, {Runtime: h.rt, Sessions: -1}, {Runtime: h.rt, Calls: -1}, {Runtime: h.rt, SessionTimeout: -1}} {
		if _, err := mcpserver.New(config); err == nil {
			t.Errorf("%+v is taken", config)
		}
	}
}
