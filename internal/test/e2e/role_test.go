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

	"github.com/rolecall/rolecall/internal/test/short"
)

// The tools of the three groups of examples/three-groups.
var threeGroups = []string{
	"chrome_click", "chrome_close_tab", "chrome_content", "chrome_evaluate", "chrome_launch",
	"chrome_list_tabs", "chrome_navigate", "chrome_new_tab", "chrome_screenshot", "chrome_type",
	"files__create_directory", "files__directory_tree", "files__edit_file", "files__get_file_info", "files__list_allowed_directories",
	"files__list_directory", "files__list_directory_with_sizes", "files__move_file", "files__read_file", "files__read_media_file",
	"files__read_multiple_files", "files__read_text_file", "files__search_files", "files__write_file",
	"get_workspace_info", "list_files", "read_file", "write_file",
}

// What the buyer makes of order and prices.
const bill = `7 lamp at 12.50: 87.50
4 chair at 39.00: 156.00
1 table at 180.00: 180.00
total: 423.50
`

// Tools of the runtime, of an MCP server and of a browser are in one role, and
// the gate looks at all of them; the shop is on this machine.
func TestThreeGroups(t *testing.T) {
	short.SkipReal(t, "a browser and a program of npm")
	shop := httptest.NewServer(http.FileServer(http.Dir(filepath.Join("..", "..", "..", "examples", "three-groups", "site"))))
	t.Cleanup(shop.Close)
	h := newHouse(t, "three-groups", []string{"orders/order.txt"}, nil)
	env := []string{"FILES_SERVER=" + absolute(t, "node_modules", ".bin", "mcp-server-filesystem"), "FILES_FOLDER=" + h.path("example", "orders")}
	o := h.run(t, env, "--json", "What does the order cost at "+shop.URL+"/prices.html?")
	if o.status != 0 {
		t.Fatalf("status %d; stderr:\n%s", o.status, o.stderr)
	}
	events := o.events(t)
	if status, text := result(t, events); status != "done" || text != bill+"kept: yes, printed: tool_not_available" {
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
	if got := read(t, h.path("work", "bill.txt")); got != bill {
		t.Errorf("the bill is %q", got)
	}
}

// The same role over MCP: the inspector and the SDK see exactly its tools, and
// there is no other.
func TestThreeGroupsFromOutside(t *testing.T) {
	h := newHouse(t, "three-groups", nil, nil)
	text := read(t, h.path("example", "organization.yaml"))
	text += fmt.Sprintf("---\nkind: gateway\nname: door\ntokens:\n  - {name: somebody, role: buyer, sha256: %s}\n", digest("buyer"))
	e := newEstate(t, text, "FILES_SERVER="+absolute(t, "node_modules", ".bin", "mcp-server-filesystem"), "FILES_FOLDER="+h.path("example", "orders"))
	copyFile(t, h.path("example", "buyer.js"), e.path("buyer.js"))
	url, _ := e.serve(t)
	for _, endpoint := range []string{url + "/mcp", url + "/roles/buyer/mcp"} {
		names := inspected(t, endpoint, tokenOf("buyer"))
		slices.Sort(names)
		if diff := cmp.Diff(threeGroups, names); diff != "" {
			t.Errorf("%s: tools (- want, + got):\n%s", endpoint, diff)
		}
	}
	t.Run("a call of the inspector", func(t *testing.T) {
		o := inspect(t, url+"/mcp", tokenOf("buyer"), "tools/call", "--tool-name", "files__read_text_file", "--tool-arg", "path="+h.path("example", "orders", "order.txt"))
		if o.status != 0 || !strings.Contains(o.stdout, "lamp 7") {
			t.Errorf("status %d:\n%s%s", o.status, o.stdout, o.stderr)
		}
	})
	t.Run("a call of the browser", func(t *testing.T) {
		o := inspect(t, url+"/mcp", tokenOf("buyer"), "tools/call", "--tool-name", "chrome_list_tabs")
		if o.status != 0 {
			t.Errorf("status %d:\n%s%s", o.status, o.stdout, o.stderr)
		}
	})
	t.Run("there is no other tool", func(t *testing.T) { noOther(t, url+"/mcp", "buyer") })
}

// noOther wants what is another's and what is nowhere to be one and the same,
// for the inspector and for a client that calls without looking.
func noOther(t *testing.T, endpoint, role string) {
	t.Helper()
	c, first := newSDK(t, endpoint, tokenOf(role)), ""
	for _, name := range []string{"run_command", "console_print", "spawn_agent", "no_such_tool"} {
		o := inspect(t, endpoint, tokenOf(role), "tools/call", "--tool-name", name)
		if o.status == 0 || !strings.Contains(o.stderr, "not found") {
			t.Errorf("%s: status %d:\n%s%s", name, o.status, o.stdout, o.stderr)
		}
		r := c.ask(t, map[string]any{"op": "call", "name": name, "args": map[string]any{}})
		said := strings.ReplaceAll(r.Error.Message, name, "X")
		if r.Error.Code != -32602 || !strings.Contains(said, "Unknown tool") || first != "" && said != first {
			t.Errorf("%s: %+v, want it to be unknown as any other", name, r)
		}
		first = said
	}
}

// clerks is an organization in which nobody thinks; the role clerk has one
// group, and a token.
const clerks = `kind: organization
name: clerks
model: nobody
---
kind: model
name: nobody
type: script
file: nobody.js
---
kind: role
name: clerk
toolGroups: [workspace]
---
kind: gateway
name: door
tokens:
  - {name: somebody, role: clerk, sha256: %s}
  - {name: boss, operator: true, sha256: %s}
`

func newClerks(t *testing.T) estate {
	t.Helper()
	e := newEstate(t, fmt.Sprintf(clerks, digest("clerk"), digest("boss")))
	write(t, e.path("nobody.js"), `role("*", function* () { return "nobody thinks here"; });`)
	return e
}

var workspaceTools = []string{"get_workspace_info", "list_files", "read_file", "write_file"}

// A client that starts rolecall as a program gets the role's tools, from that
// program or from the one that serves the data directory.
func TestARoleOnStandardInput(t *testing.T) {
	e := newClerks(t)
	t.Run("alone", func(t *testing.T) { e.offersTheWorkspace(t) })
	e.serve(t)
	t.Run("beside a process that serves", func(t *testing.T) { e.offersTheWorkspace(t) })
}

// offersTheWorkspace lets the inspector start rolecall mcp.
func (e estate) offersTheWorkspace(t *testing.T) {
	t.Helper()
	command := e.command(t, "mcp", "--role", "clerk", "-f", e.path("organization.yaml")).Args
	run := func(args ...string) outcome {
		args = append(append([]string{"--cli"}, args...), append([]string{"--"}, command...)...)
		return script(t, nil, part(t, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"), args...)
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

// One token is good for MCP, for the API and for commands, and shows the same
// everywhere.
func TestOneTokenOnEveryDoor(t *testing.T) {
	e := newClerks(t)
	url, _ := e.serve(t)
	if diff := cmp.Diff(workspaceTools, inspected(t, url+"/mcp", tokenOf("clerk"))); diff != "" {
		t.Errorf("by MCP (- want, + got):\n%s", diff)
	}
	e.env = append(e.env, "ROLECALL_URL="+url, "ROLECALL_TOKEN="+tokenOf("clerk"))
	var list struct{ Items []struct{ Name string } }
	if err := json.Unmarshal([]byte(e.must(t, "tool", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Items {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff(workspaceTools, names); diff != "" {
		t.Errorf("by commands (- want, + got):\n%s", diff)
	}
	e.must(t, "can", "--role", "clerk", "read_file")
	for _, args := range [][]string{{"can", "--role", "clerk", "run_command"}, {"role", "update", "clerk", "--use-all"}, {"tool", "show", "run_command"}} {
		if o := e.rolecall(t, args...); o.status != 1 {
			t.Errorf("rolecall %v: status %d, want 1\n%s%s", args, o.status, o.stdout, o.stderr)
		}
	}
	o := inspect(t, url+"/mcp", "token-of-nobody", "tools/list")
	if o.status == 0 || !strings.Contains(o.stderr, "auth_required") {
		t.Errorf("a token that is none: status %d\n%s%s", o.status, o.stdout, o.stderr)
	}
}

// A client is told when its role has other tools, has them at once, and can
// call no other from then on.
func TestARoleThatChanges(t *testing.T) {
	e := newClerks(t)
	e.must(t, "role", "create", "temp", "--use", "workspace", "-f", e.path("organization.yaml"))
	url, _ := e.serve(t)
	c := newSDK(t, url+"/roles/temp/mcp", tokenOf("boss"))
	awaitTools(t, c, "temp", []string{"read_file"}, []string{"console_print"})
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
	e.must(t, "role", "update", "temp", "--use", "console")
	awaitTools(t, c, "temp", []string{"console_print"}, []string{"read_file"})
	if r := c.ask(t, map[string]any{"op": "call", "name": "read_file", "args": map[string]any{"path": "a.txt"}}); r.Error.Code != -32602 {
		t.Errorf("%+v, want read_file to be unknown", r)
	}
	e.must(t, "role", "delete", "temp")
	if r := c.ask(t, map[string]any{"op": "call", "name": "console_print", "args": map[string]any{"text": "still here"}}); r.Error.Message == "" {
		t.Errorf("%+v, want a refusal: the role is gone", r)
	}
}

// What the file says of a role is in force as soon as it is saved, and its
// clients are told.
func TestAFileThatChanges(t *testing.T) {
	e := newClerks(t)
	url, _ := e.serve(t)
	c := newSDK(t, url+"/mcp", tokenOf("clerk"))
	awaitTools(t, c, "clerk", workspaceTools, []string{"console_print"})
	file := e.path("organization.yaml")
	write(t, file, strings.Replace(read(t, file), "toolGroups: [workspace]", "toolGroups: [console]", 1))
	awaitTools(t, c, "clerk", []string{"console_print"}, workspaceTools)
}
