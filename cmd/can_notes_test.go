package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tools of an MCP server that was never connected are not known. can says so, and which
// command connects it.
func TestCan_UnknownToolsOfServer(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	text := fmt.Sprintf("{kind: mcpServer, name: echo, command: %q, env: {%s: echo}}\n---\n{kind: role, name: r, toolGroups: [echo]}\n", program, echoMode)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	const want = `the tools of MCP server "echo" are not known, because it was never connected: "rolecall serve -f `
	for _, args := range [][]string{{"--role", "r", "echo"}, {"--role", "r", "echo", "--json"}, {"--who", "echo"}, {"--role", "r"}} {
		_, stdout, stderr := runCommand(t, data, append([]string{"can", "-f", file}, args...)...)
		if !strings.Contains(strings.ReplaceAll(stdout+stderr, `\"`, `"`), want) {
			t.Errorf("%v: no %q in\n%s%s", args, want, stdout, stderr)
		}
	}
	if _, stdout, stderr := runCommand(t, data, "can", "-f", file, "--role", "r", "run_command"); strings.Contains(stdout+stderr, "never connected") {
		t.Errorf("a tool that is known:\n%s%s", stdout, stderr)
	}
}

// Without -f and a serving process, the tools of a configuration are not known. The reason of
// an unknown tool says so.
func TestCan_UnknownToolsOfConfig(t *testing.T) {
	file, data := callOrg(t)
	mustRun(t, data, "tool", "call", "-f", file, "--role", "reader", "list_files")
	const want = "ithout -f the tools of sources, MCP servers and modules are not known"
	for _, args := range [][]string{
		{"can", "--role", "reader", "count_orders"}, {"can", "--role", "reader", "raed_file", "--json"}, {"can", "--who", "count_orders"},
		{"tool", "call", "--role", "reader", "count_orders"},
	} {
		if status, stdout, stderr := runCommand(t, data, args...); status != 1 || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%v: status %d, no %q in\n%s%s", args, status, want, stdout, stderr)
		}
		if _, stdout, stderr := runCommand(t, data, append(args, "-f", file)...); strings.Contains(stdout+stderr, want) {
			t.Errorf("%v with -f:\n%s%s", args, stdout, stderr)
		}
	}
	if _, stdout, stderr := runCommand(t, data, "can", "--role", "reader", "run_command"); strings.Contains(stdout+stderr, want) {
		t.Errorf("a tool that is known:\n%s%s", stdout, stderr)
	}
}

// The answer for an agent whose task has ended says so.
func TestCan_AgentOfEndedTask(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	for _, args := range [][]string{{"--agent", "root", "send_message"}, {"--agent", "root"}} {
		if _, stdout, stderr := runCommand(t, dir, append([]string{"can"}, args...)...); !strings.Contains(stderr, "the task of this agent has ended (done)") || stdout == "" {
			t.Errorf("%v: %s%s", args, stdout, stderr)
		}
	}
	if _, _, stderr := runCommand(t, dir, "can", "--agent", "nobody", "send_message"); stderr != "" {
		t.Errorf("an unknown agent: %s", stderr)
	}
}
