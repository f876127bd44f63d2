package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/test/external"
)

// threeGroupsTools are the tools of the three groups of examples/three-groups.
var threeGroupsTools = []string{
	"chrome_click", "chrome_close_tab", "chrome_content", "chrome_evaluate", "chrome_launch",
	"chrome_list_tabs", "chrome_navigate", "chrome_new_tab", "chrome_screenshot", "chrome_type",
	"files__create_directory", "files__directory_tree", "files__edit_file", "files__get_file_info", "files__list_allowed_directories",
	"files__list_directory", "files__list_directory_with_sizes", "files__move_file", "files__read_file", "files__read_media_file",
	"files__read_multiple_files", "files__read_text_file", "files__search_files", "files__write_file",
	"get_workspace_info", "list_files", "read_file", "write_file",
}

// bill is what the buyer computes from order and prices.
const bill = `7 lamp at 12.50: 87.50
4 chair at 39.00: 156.00
1 table at 180.00: 180.00
total: 423.50
`

// One role combines tools of the runtime, of an MCP server and of a browser. The gate
// checks all of them. The test serves the shop on loopback.
func TestThreeGroups_Run(t *testing.T) {
	external.Skip(t, "a browser and a program of npm")
	shop := httptest.NewServer(http.FileServer(http.Dir(filepath.Join("..", "..", "..", "examples", "three-groups", "site"))))
	t.Cleanup(shop.Close)
	fx := newFixture(t, "three-groups", []string{"orders/order.txt"}, nil)
	env := []string{"FILES_SERVER=" + absPath(t, "node_modules", ".bin", "mcp-server-filesystem"), "FILES_FOLDER=" + fx.path("example", "orders")}
	o := fx.run(t, env, "--json", "What does the order cost at "+shop.URL+"/prices.html?")
	if o.status != 0 {
		t.Fatalf("status %d; stderr:\n%s", o.status, o.stderr)
	}
	events := o.events(t)
	if status, text := finalResult(t, events); status != "done" || text != bill+"kept: yes, printed: tool_not_available" {
		t.Errorf("%s: %q", status, text)
	}
	want := `root find_role_by_name allowed 
root spawn_agent_with_task allowed 
buyer files__read_text_file allowed 
buyer chrome_navigate allowed 
buyer chrome_evaluate allowed 
buyer write_file allowed 
buyer console_print denied tool_not_available
`
	if diff := cmp.Diff(want, decisions(events)); diff != "" {
		t.Errorf("decisions (- want, + got):\n%s", diff)
	}
	if got := readFile(t, fx.path("work", "bill.txt")); got != bill {
		t.Errorf("the bill is %q", got)
	}
}

// The same role over MCP: the inspector and the SDK see exactly its tools.
func TestThreeGroups_OverMCP(t *testing.T) {
	fx := newFixture(t, "three-groups", nil, nil)
	text := readFile(t, fx.path("example", "organization.yaml"))
	text += fmt.Sprintf("---\nkind: gateway\nname: api\ntokens:\n  - {name: user, role: buyer, sha256: %s}\n", digest("buyer"))
	e := newServeFixture(t, text, "FILES_SERVER="+absPath(t, "node_modules", ".bin", "mcp-server-filesystem"), "FILES_FOLDER="+fx.path("example", "orders"))
	copyFile(t, fx.path("example", "buyer.js"), e.path("buyer.js"))
	url, _ := e.serve(t)
	for _, endpoint := range []string{url + "/mcp", url + "/roles/buyer/mcp"} {
		names := inspectorTools(t, endpoint, tokenOf("buyer"))
		slices.Sort(names)
		if diff := cmp.Diff(threeGroupsTools, names); diff != "" {
			t.Errorf("%s: tools (- want, + got):\n%s", endpoint, diff)
		}
	}
	t.Run("a call of the inspector", func(t *testing.T) {
		o := runInspector(t, url+"/mcp", tokenOf("buyer"), "tools/call", "--tool-name", "files__read_text_file", "--tool-arg", "path="+fx.path("example", "orders", "order.txt"))
		if o.status != 0 || !strings.Contains(o.stdout, "lamp 7") {
			t.Errorf("status %d:\n%s%s", o.status, o.stdout, o.stderr)
		}
	})
	t.Run("a call of the browser", func(t *testing.T) {
		o := runInspector(t, url+"/mcp", tokenOf("buyer"), "tools/call", "--tool-name", "chrome_list_tabs")
		if o.status != 0 {
			t.Errorf("status %d:\n%s%s", o.status, o.stdout, o.stderr)
		}
	})
	t.Run("other tools are unknown", func(t *testing.T) { checkUnknownTools(t, url+"/mcp", "buyer") })
}

// checkUnknownTools checks that tools of other groups and tools that do not exist get
// the same answer, for the inspector and for a client that calls without listing.
func checkUnknownTools(t *testing.T, endpoint, role string) {
	t.Helper()
	c, first := newSDK(t, endpoint, tokenOf(role)), ""
	for _, name := range []string{"run_command", "console_print", "spawn_agent", "no_such_tool"} {
		o := runInspector(t, endpoint, tokenOf(role), "tools/call", "--tool-name", name)
		if o.status == 0 || !strings.Contains(o.stderr, "not found") {
			t.Errorf("%s: status %d:\n%s%s", name, o.status, o.stdout, o.stderr)
		}
		r := c.request(t, map[string]any{"op": "call", "name": name, "args": map[string]any{}})
		message := strings.ReplaceAll(r.Error.Message, name, "X")
		if r.Error.Code != -32602 || !strings.Contains(message, "Unknown tool") || first != "" && message != first {
			t.Errorf("%s: %+v, want the answer for an unknown tool", name, r)
		}
		first = message
	}
}

// clerkConfig is an organization without a model. The role clerk has one group and a
// token.
const clerkConfig = `kind: organization
name: clerks
model: unused
---
kind: model
name: unused
type: script
file: unused.js
---
kind: role
name: clerk
toolGroups: [workspace]
---
kind: gateway
name: api
tokens:
  - {name: user, role: clerk, sha256: %s}
  - {name: boss, operator: true, sha256: %s}
`

func newClerkFixture(t *testing.T) serveFixture {
	t.Helper()
	e := newServeFixture(t, fmt.Sprintf(clerkConfig, digest("clerk"), digest("boss")))
	writeFile(t, e.path("unused.js"), `role("*", function* () { return "not used"; });`)
	return e
}

var workspaceTools = []string{"get_workspace_info", "list_files", "read_file", "write_file"}

// A client that starts rolecall mcp gets the role's tools, from that program or from
// the one that serves the data directory.
func TestMCPCommand_OffersRoleTools(t *testing.T) {
	e := newClerkFixture(t)
	t.Run("own process", func(t *testing.T) { e.checkWorkspaceTools(t) })
	e.serve(t)
	t.Run("through a serving process", func(t *testing.T) { e.checkWorkspaceTools(t) })
}

// checkWorkspaceTools lets the inspector start rolecall mcp.
func (e serveFixture) checkWorkspaceTools(t *testing.T) {
	t.Helper()
	command := e.command(t, "mcp", "--role", "clerk", "-f", e.path("organization.yaml")).Args
	run := func(args ...string) outcome {
		args = append(append([]string{"--cli"}, args...), append([]string{"--"}, command...)...)
		return runScript(t, nil, nodeModule(t, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"), args...)
	}
	o := run("--method", "tools/list")
	if diff := cmp.Diff(workspaceTools, toolNames(t, o)); diff != "" {
		t.Errorf("tools (- want, + got):\n%s", diff)
	}
	if o := run("--method", "tools/call", "--tool-name", "get_workspace_info"); o.status != 0 || !strings.Contains(o.stdout, "totalSize") {
		t.Errorf("status %d:\n%s%s", o.status, o.stdout, o.stderr)
	}
	if o := run("--method", "tools/call", "--tool-name", "run_command"); o.status == 0 || !strings.Contains(o.stderr, "not found") {
		t.Errorf("status %d:\n%s%s", o.status, o.stdout, o.stderr)
	}
}

// One token works for MCP, for the API and for commands, and shows the same tools
// everywhere.
func TestToken_WorksOnEveryInterface(t *testing.T) {
	e := newClerkFixture(t)
	url, _ := e.serve(t)
	if diff := cmp.Diff(workspaceTools, inspectorTools(t, url+"/mcp", tokenOf("clerk"))); diff != "" {
		t.Errorf("over MCP (- want, + got):\n%s", diff)
	}
	e.env = append(e.env, "ROLECALL_URL="+url, "ROLECALL_TOKEN="+tokenOf("clerk"))
	var list struct{ Items []struct{ Name string } }
	if err := json.Unmarshal([]byte(e.mustRun(t, "tool", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Items {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff(workspaceTools, names); diff != "" {
		t.Errorf("by commands (- want, + got):\n%s", diff)
	}
	e.mustRun(t, "can", "--role", "clerk", "read_file")
	for _, args := range [][]string{{"can", "--role", "clerk", "run_command"}, {"role", "update", "clerk", "--use-all"}, {"tool", "show", "run_command"}} {
		if o := e.runProgram(t, args...); o.status != 1 {
			t.Errorf("rolecall %v: status %d, want 1\n%s%s", args, o.status, o.stdout, o.stderr)
		}
	}
	o := runInspector(t, url+"/mcp", "token-of-unknown", "tools/list")
	if o.status == 0 || !strings.Contains(o.stderr, "auth_required") {
		t.Errorf("unknown token: status %d\n%s%s", o.status, o.stdout, o.stderr)
	}
}

// A client is notified when the tools of its role change. The new tools are active at
// once, and the old ones cannot be called any more.
func TestRoleUpdate_NotifiesClients(t *testing.T) {
	e := newClerkFixture(t)
	e.mustRun(t, "role", "create", "temp", "--use", "workspace", "-f", e.path("organization.yaml"))
	url, _ := e.serve(t)
	c := newSDK(t, url+"/roles/temp/mcp", tokenOf("boss"))
	waitTools(t, c, "temp", []string{"read_file"}, []string{"console_print"})
	if a := c.call(t, "write_file", map[string]any{"path": "a.txt", "content": "kept"}); a.IsError {
		t.Errorf("%+v", a)
	}
	if a := c.call(t, "read_file", map[string]any{"path": "a.txt"}); a.IsError || !strings.Contains(a.text(), "kept") || !json.Valid(a.StructuredContent) {
		t.Errorf("%+v", a)
	}
	if a := c.call(t, "read_file", map[string]any{"path": "../data"}); !a.IsError {
		t.Errorf("%+v, want a failure", a)
	}
	if a := c.call(t, "read_file", map[string]any{"file": 7}); !a.IsError || !strings.Contains(a.text(), "invalid_arguments") {
		t.Errorf("%+v, want invalid_arguments", a)
	}
	e.mustRun(t, "role", "update", "temp", "--use", "console")
	waitTools(t, c, "temp", []string{"console_print"}, []string{"read_file"})
	if r := c.request(t, map[string]any{"op": "call", "name": "read_file", "args": map[string]any{"path": "a.txt"}}); r.Error.Code != -32602 {
		t.Errorf("%+v, want read_file to be unknown", r)
	}
	e.mustRun(t, "role", "delete", "temp")
	if r := c.request(t, map[string]any{"op": "call", "name": "console_print", "args": map[string]any{"text": "still here"}}); r.Error.Message == "" {
		t.Errorf("%+v, want an error: the role was deleted", r)
	}
}

// A changed role is active as soon as the file is saved, and its clients are notified.
func TestReload_NotifiesClients(t *testing.T) {
	e := newClerkFixture(t)
	url, _ := e.serve(t)
	c := newSDK(t, url+"/mcp", tokenOf("clerk"))
	waitTools(t, c, "clerk", workspaceTools, []string{"console_print"})
	file := e.path("organization.yaml")
	writeFile(t, file, strings.Replace(readFile(t, file), "toolGroups: [workspace]", "toolGroups: [console]", 1))
	waitTools(t, c, "clerk", []string{"console_print"}, workspaceTools)
}
