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

	"github.com/rolecall/rolecall/internal/test/buffer"
)

// referenceConfig configures the reference servers and a role that may use all of
// them.
const referenceConfig = `kind: organization
name: reference
model: unused
---
kind: model
name: unused
type: script
file: unused.js
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
name: api
tokens:
  - {name: guest, role: guest, sha256: %s}
  - {name: reader, role: reader, sha256: %s}
  - {name: all, role: all, sha256: %s}
`

// newReferenceFixture returns a fixture with the reference servers, and serves remote.
func newReferenceFixture(t *testing.T) serveFixture {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return dir + "/" + name }
	server := func(name string) string {
		return nodeModule(t, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	writeFile(t, at("folder/note.txt"), "a note\n")
	e := newServeFixture(t, fmt.Sprintf(referenceConfig, digest("guest"), digest("reader"), digest("all")),
		"NODE="+nodePath(t), "REMOTE="+startEverything(t), "ALTERED="+absPath(t, "mcp", "altered.mjs"), "FLAG="+at("flag"),
		"EVERYTHING="+server("everything"), "FILES="+server("filesystem"), "MEMORY="+server("memory"), "FOLDER="+at("folder"), "GRAPH="+at("graph.jsonl"))
	writeFile(t, e.path("unused.js"), `role("*", function* () { return "not used"; });`)
	e.paths = map[string]string{"flag": at("flag"), "folder": at("folder"), "graph": at("graph.jsonl")}
	return e
}

// startEverything serves server-everything over HTTP until the test ends.
func startEverything(t *testing.T) (url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), nodePath(t), absPath(t, "mcp", "port.mjs"), nodeModule(t, "@modelcontextprotocol", "server-everything", "dist", "index.js"), "streamableHttp")
	startProgram(t, cmd, func(line string) bool {
		var ready struct{ Port int }
		if json.Unmarshal([]byte(line), &ready) != nil || ready.Port == 0 {
			return false
		}
		url = fmt.Sprintf("http://127.0.0.1:%d/mcp", ready.Port)
		return true
	})
	return url
}

// A role's client calls the tools of real servers, over stdio and HTTP, through the
// gate: results, failures, progress, cancellation.
func TestReferenceServers_CallTools(t *testing.T) {
	e := newReferenceFixture(t)
	url, _ := e.serve(t)
	guest := newSDK(t, url+"/mcp", tokenOf("guest"))
	names := guest.tools(t)
	for _, name := range []string{"everything__echo", "remote__echo", "files__read_text_file", "memory__read_graph", "everything__read_resource", "everything__get_prompt"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing in %v", name, names)
		}
	}
	for _, tt := range []struct {
		name string
		args map[string]any
		want string
	}{
		{"everything__echo", map[string]any{"message": "hello"}, "Echo: hello"},
		{"remote__get-sum", map[string]any{"a": 2, "b": 3}, "The sum of 2 and 3 is 5."},
		{"files__read_text_file", map[string]any{"path": e.paths["folder"] + "/note.txt"}, "a note"},
		{"everything__get-structured-content", map[string]any{"location": "New York"}, "conditions"}, // the SDK checks the result with the output schema
		{"memory__create_entities", map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"counts"}}}}, "Ada"},
		{"memory__read_graph", nil, "Ada"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if a := guest.call(t, tt.name, tt.args); a.IsError || !strings.Contains(a.text(), tt.want) {
				t.Errorf("%+v, want %q", a, tt.want)
			}
		})
	}
	t.Run("failure of a tool", func(t *testing.T) {
		if a := guest.call(t, "files__read_text_file", map[string]any{"path": "/etc/passwd"}); !a.IsError || !strings.Contains(a.text(), "Access denied") {
			t.Errorf("%+v, want an error of the server", a)
		}
	})
	for _, server := range []string{"everything", "remote"} {
		long := server + "__trigger-long-running-operation"
		t.Run("progress of "+server, func(t *testing.T) {
			a := guest.call(t, long, map[string]any{"duration": 0.2, "steps": 4})
			if a.IsError || len(a.Progress) < 2 || !slices.IsSorted(a.Progress) {
				t.Errorf("%+v, want some progress", a)
			}
		})
		t.Run("cancellation of "+server, func(t *testing.T) {
			if a := guest.callOp(t, "cancel", long, map[string]any{"duration": 600, "steps": 6000}); !a.Cancelled {
				t.Errorf("%+v, want the call to be cancelled", a)
			}
		})
	}
}

// Stored tool definitions are shown also when the servers do not run.
func TestToolList_ShowsStoppedServers(t *testing.T) {
	e := newReferenceFixture(t)
	file := e.path("organization.yaml")
	_, stop := e.serve(t)
	stop()
	e.env = append(e.env, "NODE=/nowhere/node")
	if list := e.mustRun(t, "tool", "list", "-f", file); !strings.Contains(list, "files__read_text_file") || !strings.Contains(list, "memory__read_graph") {
		t.Errorf("the tools are not listed:\n%s", list)
	}
	e.mustRun(t, "can", "--role", "reader", "files__read_text_file", "-f", file)
	if o := e.runProgram(t, "can", "--role", "reader", "memory__read_graph", "-f", file); o.status != 1 {
		t.Errorf("status %d, want a denial:\n%s", o.status, o.stdout)
	}
}

// A changed description and a new tool are in no view, not even in that of a role with
// all groups, until they are accepted.
func TestQuarantine_HidesChangedTools(t *testing.T) {
	e := newReferenceFixture(t)
	_, stop := e.serve(t)
	stop()
	writeFile(t, e.paths["flag"], "")
	url, stop := e.serve(t)
	for _, role := range []string{"reader", "all"} {
		c := newSDK(t, url+"/mcp", tokenOf(role))
		if a := c.call(t, "files__list_allowed_directories", nil); a.IsError {
			t.Fatalf("%s cannot call an unchanged tool: %+v", role, a)
		}
		waitTools(t, c, role, []string{"files__read_text_file"}, []string{"files__write_file", "files__write_file_too"})
		if r := c.request(t, map[string]any{"op": "call", "name": "files__write_file", "args": map[string]any{"path": "x", "content": "y"}}); r.Error.Code != -32602 {
			t.Errorf("%s calls a tool in quarantine: %+v", role, r)
		}
	}
	e.mustRun(t, "tool", "accept", "files__write_file")
	c := newSDK(t, url+"/mcp", tokenOf("reader"))
	waitTools(t, c, "reader", []string{"files__write_file"}, []string{"files__write_file_too"})
	stop()
}

// waitTools waits for change notifications until a client has some tools and lacks
// others.
func waitTools(t *testing.T, c *sdkClient, role string, has, lacks []string) {
	t.Helper()
	for {
		names := c.tools(t)
		missing := slices.ContainsFunc(has, func(name string) bool { return !slices.Contains(names, name) })
		surplus := slices.ContainsFunc(lacks, func(name string) bool { return slices.Contains(names, name) })
		if !missing && !surplus {
			return
		}
		if r := c.request(t, map[string]any{"op": "changed"}); r.Error.Message != "" {
			t.Fatalf("%s has %v: %+v", role, names, r)
		}
	}
}

// A server's processes exit with rolecall, also when rolecall is killed.
func TestServe_ServersExitWhenKilled(t *testing.T) {
	e := newReferenceFixture(t)
	cmd := e.command(t, "serve", "-f", e.path("organization.yaml"), "--addr", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, output := "", &buffer.SyncBuffer{}
	readUntil(bufio.NewReader(stderr), output, func(line string) bool { url = address.FindString(line); return url != "" })
	c := newSDK(t, url+"/mcp", tokenOf("guest"))
	c.call(t, "memory__read_graph", nil)
	if len(findProcesses(t, e.paths["graph"])) == 0 {
		t.Fatal("the process of the server memory was not found")
	}
	cmd.Process.Kill()
	cmd.Wait()
	for deadline := time.Now().Add(exitTimeout); len(findProcesses(t, e.paths["graph"])) > 0; goruntime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the server of memory outlives rolecall")
		}
	}
}

// findProcesses returns the processes whose environment contains a path.
func findProcesses(t *testing.T, path string) (pids []string) {
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
