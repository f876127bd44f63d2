package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that did not do what was asked says so, or has another status than 0.
func TestRun_SaysWhatDidNotHappen(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "reader")
	tools := filepath.Join(dir, "tools.yaml")
	if err := os.WriteFile(tools, []byte("sources:\n  db: {kind: sqlite, database: x.db}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"resume --role reader", 0, "role reader was not paused"},
		{"pause --role reader", 0, "role reader paused"},
		{"pause --role reader", 0, "role reader was paused already"},
		{"resume --role reader", 0, "role reader resumed"},
		{"migrate " + tools + " --json", 2, "migrate prints YAML"},
		{"migrate " + tools + " -f nosuch.yaml", 2, "migrate FILE reads no configuration; omit -f"},
		{"token create ci --role nosuch -f nosuch.yaml", 2, "token create reads no configuration; omit -f"},
		{"backup " + filepath.Join(dir, "b") + " -f nosuch.yaml", 2, "backup reads no configuration; omit -f"},
		{"restore " + tools + " -f nosuch.yaml", 2, "restore reads no configuration; omit -f"},
	} {
		status, stdout, stderr := runCommand(t, dir, strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(stdout+stderr, test.says) {
			t.Errorf("%s: status %d, want %d and %q:\n%s%s", test.args, status, test.status, test.says, stdout, stderr)
		}
	}
}
