package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// The reference servers, as a configuration names them, and a role that may use
// all of them; its token is the only one.
const referenceServers = `kind: organization
name: reference
model: nobody
---
kind: model
name: nobody
type: script
file: nobody.js
---
kind: mcpServer
name: everything
command: ${NODE}
args: ["${EVERYTHING}", stdio]
---
kind: mcpServer
name: remote
url: ${REMOTE}
---
kind: mcpServer
name: files
command: ${NODE}
args: ["${ALTERED}", "${FLAG}", write_file, "${FILES}", "${FOLDER}"]
---
kind: mcpServer
name: memory
command: ${NODE}
args: ["${MEMORY}"]
env:
  MEMORY_FILE_PATH: ${GRAPH}
---
kind: role
name: guest
toolGroups: [everything, remote, files, memory]
---
kind: role
name: reader
toolGroups: [files]
---
kind: role
name: all
toolGroups: all
---
kind: gateway
name: door
tokens:
  - {name: guest, role: guest, sha256: %s}
  - {name: reader, role: reader, sha256: %s}
  - {name: all, role: all, sha256: %s}
`

// newReference is an estate with the reference servers; remote is served for it.
func newReference(t *testing.T) estate {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return dir + "/" + name }
	server := func(name string) string {
		return part(t, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	write(t, at("folder/note.txt"), "a note\n")
	e := newEstate(t, fmt.Sprintf(referenceServers, digest("guest"), digest("reader"), digest("all")),
		"NODE="+nodePath(t), "REMOTE="+startEverything(t), "ALTERED="+absolute(t, "mcp", "altered.mjs"), "FLAG="+at("flag"),
		"EVERYTHING="+server("everything"), "FILES="+server("filesystem"), "MEMORY="+server("memory"), "FOLDER="+at("folder"), "GRAPH="+at("graph.jsonl"))
	write(t, e.path("nobody.js"), `role("*", function* () { return "nobody thinks here"; });`)
	e.dirs = map[string]string{"flag": at("flag"), "folder": at("folder"), "graph": at("graph.jsonl")}
	return e
}

// startEverything serves server-everything over HTTP until the test ends.
func startEverything(t *testing.T) (url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), nodePath(t), absolute(t, "mcp", "port.mjs"), part(t, "@modelcontextprotocol", "server-everything", "dist", "index.js"), "streamableHttp")
	start(t, cmd, func(line string) bool {
		var ready struct{ Port int }
		if json.Unmarshal([]byte(line), &ready) != nil || ready.Port == 0 {
			return false
		}
		url = fmt.Sprintf("http://127.0.0.1:%d/mcp", ready.Port)
		return true
	})
	return url
}

// A role's client gets the tools of real servers, over stdio and HTTP, through
// the gate: results, failures, reports, cancellation.
func TestReferenceServers(t *testing.T) {
	e := newReference(t)
	url, _ := e.serve(t)
	guest := newSDK(t, url+"/mcp", tokenOf("guest"))
	names := guest.tools(t)
	for _, name := range []string{"everything__echo", "remote__echo", "files__read_text_file", "memory__read_graph", "everything__read_resource", "everything__get_prompt"} {
		if !slices.Contains(names, name) {
			t.Errorf("there is no %s among %v", name, names)
		}
	}
	for _, tt := range []struct {
		name string
		args map[string]any
		want string
	}{
		{"everything__echo", map[string]any{"message": "hello"}, "Echo: hello"},
		{"remote__get-sum", map[string]any{"a": 2, "b": 3}, "The sum of 2 and 3 is 5."},
		{"files__read_text_file", map[string]any{"path": e.dirs["folder"] + "/note.txt"}, "a note"},
		{"memory__create_entities", map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"counts"}}}}, "Ada"},
		{"memory__read_graph", nil, "Ada"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if a := guest.call(t, tt.name, tt.args); a.IsError || !strings.Contains(a.text(), tt.want) {
				t.Errorf("%+v, want %q", a, tt.want)
			}
		})
	}
	t.Run("a failure is the tool's", func(t *testing.T) {
		if a := guest.call(t, "files__read_text_file", map[string]any{"path": "/etc/passwd"}); !a.IsError || !strings.Contains(a.text(), "Access denied") {
			t.Errorf("%+v, want a refusal of the server", a)
		}
	})
	for _, server := range []string{"everything", "remote"} {
		long := server + "__trigger-long-running-operation"
		t.Run("reports of "+server, func(t *testing.T) {
			a := guest.call(t, long, map[string]any{"duration": 0.2, "steps": 4})
			if a.IsError || len(a.Progress) < 2 || !slices.IsSorted(a.Progress) {
				t.Errorf("%+v, want some progress", a)
			}
		})
		t.Run("cancellation of "+server, func(t *testing.T) {
			if a := guest.order(t, "cancel", long, map[string]any{"duration": 600, "steps": 6000}); !a.Cancelled {
				t.Errorf("%+v, want the call to be cancelled", a)
			}
		})
	}
}

// What is known of the servers is on record: commands show it without them.
func TestToolsOfServersThatAreNotRunning(t *testing.T) {
	e := newReference(t)
	file := e.path("organization.yaml")
	_, stop := e.serve(t)
	stop()
	e.env = append(e.env, "NODE=/nowhere/node")
	if list := e.must(t, "tool", "list", "-f", file); !strings.Contains(list, "files__read_text_file") || !strings.Contains(list, "memory__read_graph") {
		t.Errorf("the tools are not listed:\n%s", list)
	}
	e.must(t, "can", "--role", "reader", "files__read_text_file", "-f", file)
	if o := e.rolecall(t, "can", "--role", "reader", "memory__read_graph", "-f", file); o.status != 1 {
		t.Errorf("status %d, want a denial:\n%s", o.status, o.stdout)
	}
}

// A description that changes, and a tool that is new, are in nobody's view, not
// even in that of a role with all groups, until they are accepted.
func TestAServerThatChanges(t *testing.T) {
	e := newReference(t)
	_, stop := e.serve(t)
	stop()
	write(t, e.dirs["flag"], "")
	url, stop := e.serve(t)
	for _, role := range []string{"reader", "all"} {
		c := newSDK(t, url+"/mcp", tokenOf(role))
		if a := c.call(t, "files__list_allowed_directories", nil); a.IsError {
			t.Fatalf("%s cannot call what has not changed: %+v", role, a)
		}
		awaitTools(t, c, role, []string{"files__read_text_file"}, []string{"files__write_file", "files__write_file_too"})
		if r := c.ask(t, map[string]any{"op": "call", "name": "files__write_file", "args": map[string]any{"path": "x", "content": "y"}}); r.Error.Code != -32602 {
			t.Errorf("%s calls a tool in quarantine: %+v", role, r)
		}
	}
	e.must(t, "tool", "accept", "files__write_file")
	c := newSDK(t, url+"/mcp", tokenOf("reader"))
	awaitTools(t, c, "reader", []string{"files__write_file"}, []string{"files__write_file_too"})
	stop()
}

// awaitTools wants a client to have some tools and not others, as soon as it is
// told of the last change.
func awaitTools(t *testing.T, c *sdk, who string, has, lacks []string) {
	t.Helper()
	for {
		names := c.tools(t)
		missing := slices.ContainsFunc(has, func(name string) bool { return !slices.Contains(names, name) })
		surplus := slices.ContainsFunc(lacks, func(name string) bool { return slices.Contains(names, name) })
		if !missing && !surplus {
			return
		}
		if r := c.ask(t, map[string]any{"op": "changed"}); r.Error.Message != "" {
			t.Fatalf("%s has %v: %+v", who, names, r)
		}
	}
}

// A server's processes end with rolecall's, also when it is killed.
func TestServersEndWithUs(t *testing.T) {
	e := newReference(t)
	cmd := e.command(t, "serve", "-f", e.path("organization.yaml"), "--addr", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, said := "", &log{}
	await(bufio.NewReader(stderr), said, func(line string) bool { url = address.FindString(line); return url != "" })
	c := newSDK(t, url+"/mcp", tokenOf("guest"))
	c.call(t, "memory__read_graph", nil)
	if len(childrenWith(t, e.dirs["graph"])) == 0 {
		t.Fatal("the server of memory is not found among the processes")
	}
	cmd.Process.Kill()
	cmd.Wait()
	for late := time.Now().Add(patience); len(childrenWith(t, e.dirs["graph"])) > 0; goruntime.Gosched() {
		if time.Now().After(late) {
			t.Fatal("the server of memory outlives rolecall")
		}
	}
}

// childrenWith lists processes whose environment names a path.
func childrenWith(t *testing.T, path string) (pids []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err == nil && strings.Contains(string(env), "MEMORY_FILE_PATH="+path) {
			pids = append(pids, entry.Name())
		}
	}
	return pids
}
