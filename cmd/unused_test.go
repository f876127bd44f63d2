package cmd

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A first command that fails leaves neither a data file nor a directory behind.
func TestRun_FailedCommandLeavesNoDataDirectory(t *testing.T) {
	parent := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(parent, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roles := file("roles.yaml", "{kind: role, name: reader, toolGroups: [workspace]}")
	broken := file("broken.yaml", "{kind: role, name: reader, toolGroups: [nonesuch]}")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, args := range [][]string{
		{"run", "x"},
		{"run", "-f", roles, "x"}, // no model
		{"run", "-f", broken, "x"},
		{"run", "-f", roles, "--group", "nonesuch", "x"},
		{"role", "create", "root"},
		{"role", "create", "a", "--use", "nonesuch"},
		{"role", "create", "a", "-f", broken},
		{"serve", "--addr", taken.Addr().String()},
		{"serve", "-f", broken},
		{"mcp", "--role", "reader", "-f", broken},
		{"restore", roles},
	} {
		dir := filepath.Join(parent, "new", "data")
		status, _, stderr := runCommand(t, dir, args...)
		if _, err := os.Lstat(filepath.Dir(dir)); status == 0 || !os.IsNotExist(err) {
			t.Errorf("%v: status %d, and the directory exists (%v): %s", args, status, err, stderr)
		}
		_ = os.RemoveAll(filepath.Dir(dir))
	}
}

// What a command has committed before it fails is kept.
func TestRun_FailedCommandKeepsCommits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	mustRun(t, dir, "role", "create", "a")
	if status, _, _ := runCommand(t, dir, "role", "create", "root"); status != 1 {
		t.Errorf("status %d", status)
	}
	if got := mustRun(t, dir, "role", "list"); !strings.Contains(got, "\na ") {
		t.Errorf("the role is lost: %s", got)
	}
}
