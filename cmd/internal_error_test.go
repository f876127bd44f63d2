package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/buffer"
)

// An internal error tells its reader to see the log, and the log has the cause: here, that
// the folder of all workspaces is a file.
func TestMCP_LogHasCauseOfInternalErrors(t *testing.T) {
	dir := t.TempDir()
	file, data := filepath.Join(dir, "org.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte("{kind: role, name: worker, prompt: p, toolGroups: [workspace, command]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "workspaces"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{
		"read_file": `{"path":"a"}`, "write_file": `{"path":"a","content":"c"}`, "list_files": `{}`, "get_workspace_info": `{}`, "run_command": `{"command":"true"}`,
	}
	for name, args := range names {
		t.Run(name, func(t *testing.T) {
			var out, log buffer.SyncBuffer
			c := &common{launcher: launcher, in: strings.NewReader(toolCall(name, args)), out: &out, err: &log, env: func(string) (string, bool) { return "", false }}
			run(t.Context(), c, []string{"mcp", "--role", "worker", "-f", file, "--data", data})
			if answer := out.String(); !strings.Contains(answer, "see the log") || strings.Contains(answer, "not a directory") {
				t.Errorf("got %s", answer)
			}
			if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "not a directory") || !strings.Contains(text, "tool="+name) {
				t.Errorf("got the log %q", text)
			}
		})
	}
}

// toolCall returns what an MCP client sends to call a tool.
func toolCall(name, args string) string {
	params, _ := json.Marshal(map[string]any{"name": name, "arguments": json.RawMessage(args)}) // a map of JSON always marshals
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
` + fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}`, params) + "\n"
}
