package cmd

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const callable = `{kind: role, name: reader, toolGroups: [workspace]}
---
{kind: role, name: printer, toolGroups: [console]}
`

// callOrg writes the organization callable and returns its file and a data directory.
func callOrg(t *testing.T) (file, data string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "org.yaml")
	if err := os.WriteFile(file, []byte(callable), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, filepath.Join(dir, "data")
}

// A call passes the gate. Its result is JSON, and a denial is an error.
func TestToolCall_OnFiles(t *testing.T) {
	file, data := callOrg(t)
	for _, test := range []struct {
		name           string
		args           []string
		in             string
		status         int
		stdout, stderr string
	}{
		{"a result", []string{"--role", "reader", "write_file", `{"path":"a.txt","content":"<hello>"}`}, "", 0, "\"path\": \"a.txt\"", ""},
		{"arguments on stdin", []string{"--role", "reader", "read_file", "-"}, "{\"path\": \"a.txt\"}\n", 0, `hello`, ""},
		{"no arguments", []string{"--role", "reader", "list_files"}, "", 0, `"a.txt"`, ""},
		{"a failure", []string{"--role", "reader", "read_file", `{"path":"gone"}`}, "", 1, `"error": "file_not_found"`, ""},
		{"a denial", []string{"--role", "printer", "read_file", `{"path":"a.txt"}`}, "", 1, "", "rolecall: denied: tool_not_available: tool read_file is not available to this role\n"},
		{"a denial in JSON", []string{"--json", "--role", "printer", "read_file", `{"path":"a.txt"}`}, "", 1, `"denied": true`, ""},
		{"an unknown tool", []string{"--role", "reader", "raed_file"}, "", 1, "", "rolecall: denied: unknown_tool: "},
		{"invalid arguments", []string{"--role", "reader", "read_file", `{"path":5}`}, "", 1, "", "rolecall: denied: invalid_arguments: "},
		{"an unknown role", []string{"--role", "gone", "read_file"}, "", 1, "", `there is no role "gone"`},
		{"no object", []string{"--role", "reader", "read_file", `["a"]`}, "", 2, "", "the arguments are not one JSON object"},
		{"no JSON", []string{"--role", "reader", "read_file", `path=a`}, "", 2, "", "the arguments are not one JSON object"},
		{"an empty stdin", []string{"--role", "reader", "read_file", "-"}, "", 2, "", "the arguments are not one JSON object"},
		{"a name twice", []string{"--role", "reader", "read_file", `{"path":"a","path":"b"}`}, "", 2, "", "the arguments are not one JSON object"},
		{"huge arguments", []string{"--role", "reader", "read_file", "-"}, `{"path":"` + strings.Repeat("x", 2<<20) + `"}`, 2, "", "the arguments have more than 1048576 bytes"},
		{"huge when escaped", []string{"--role", "reader", "read_file", "-"}, `{"path":"` + strings.Repeat("<", 1<<19) + `"}`, 1, "", "the body has more than 1048576 bytes"},
		{"no role", []string{"read_file"}, "", 2, "", "tool call needs --role ROLE"},
		{"no tool", []string{"--role", "reader"}, "", 2, "", "takes a tool name and its arguments in JSON"},
	} {
		status, stdout, stderr := runIn(t, nil, test.in, append([]string{"tool", "call", "-f", file, "--data", data}, test.args...)...)
		if status != test.status || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || (test.stdout == "") != (stdout == "") {
			t.Errorf("%s: status %d, want %d\n%s%s", test.name, status, test.status, stdout, stderr)
		}
	}
}

// Without a configuration, the roles are those of the data directory. A missing directory
// is not created.
func TestToolCall_NeedsOrganization(t *testing.T) {
	file, data := callOrg(t)
	status, _, stderr := runIn(t, nil, "", "tool", "call", "--data", data, "--role", "reader", "list_files")
	if _, err := os.Stat(data); status != 2 || !strings.Contains(stderr, "no organization in "+data) || err == nil {
		t.Errorf("status %d, %v\n%s", status, err, stderr)
	}
	mustRun(t, data, "tool", "call", "-f", file, "--role", "reader", "list_files")
	mustRun(t, data, "tool", "call", "--role", "reader", "list_files")
}

// A process that serves the data directory, or the gateway in ROLECALL_URL, makes the call.
func TestToolCall_ThroughServer(t *testing.T) {
	file, data := callOrg(t)
	s := serveSession(t, file, data)
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	status, stdout, stderr := runIn(t, nil, "", "tool", "call", "-f", file, "--data", data, "--role", "reader", "write_file", `{"path":"a","content":"b"}`)
	if status != 0 || !strings.Contains(stdout, `"path": "a"`) || stderr != "" {
		t.Errorf("through the socket: status %d\n%s%s", status, stdout, stderr)
	}
	env := map[string]string{urlVariable: server.URL}
	if status, _, stderr := runIn(t, env, "", "tool", "call", "--role", "reader", "list_files"); status != 1 || !strings.Contains(stderr, "unauthenticated") && !strings.Contains(stderr, "token") {
		t.Errorf("without a token: status %d\n%s", status, stderr)
	}
	env[tokenVariable] = s.Tokens.StartupToken()
	if status, stdout, stderr := runIn(t, env, "", "tool", "call", "--role", "reader", "list_files"); status != 0 || !strings.Contains(stdout, `"a"`) {
		t.Errorf("through the gateway: status %d\n%s%s", status, stdout, stderr)
	}
}
