//go:build !cloudsql

package cmd

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The example of MCP Toolbox loads unchanged in a build without Google's connector. Its tools
// are listed, and check says which build can call them.
func TestToolboxExample_LoadsWithoutConnector(t *testing.T) {
	const file, note = "testdata/toolbox/plural.yaml", "source my-pg-instance cannot be used, its tools fail with tool_unavailable: this build of rolecall has no connector for cloud-sql-postgres"
	for command, want := range map[string]string{"check": "ok: 1 file, 0 roles, 0 models, 1 module, 2 declared tools", "tool list": "example_tool_2", "group show example_toolset": "example_tool"} {
		out, errOut := new(bytes.Buffer), new(bytes.Buffer)
		c := &common{launcher: launcher, out: out, err: errOut, env: os.LookupEnv}
		args := append(strings.Fields(command), "-f", file, "--data", t.TempDir())
		if status := run(t.Context(), c, args); status != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: status %d, %s%s; want %s", command, status, out, errOut, want)
		}
		if command == "check" && strings.Count(errOut.String(), note) != 1 {
			t.Errorf("check: got %s, want %s", errOut, note)
		}
	}
}
