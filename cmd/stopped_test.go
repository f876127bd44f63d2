package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/persist"
)

// A process that accepts connections and does not answer, as after SIGSTOP, does not
// hang commands.
func TestConnect_GivesUpOnStoppedProcess(t *testing.T) {
	dir := t.TempDir()
	l, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, args := range [][]string{{"task", "list"}, {"can", "--role", "a", "read_file"}, {"role", "create", "a"}, {"backup", filepath.Join(dir, "b")}, {"mcp", "--role", "a"}} {
		var out, log bytes.Buffer
		c := &common{in: strings.NewReader(""), out: &out, err: &log, env: func(string) (string, bool) { return "", false }, answerTimeout: 20 * time.Millisecond}
		if status := run(t.Context(), c, append([]string{"--data", dir}, args...)); status != 1 || !strings.Contains(log.String(), "did not answer within 20ms: it is stopped or overloaded") {
			t.Errorf("%v: status %d, %s", args, status, log.String())
		}
	}
}

// Commands that only look do not write the data file, not even its times.
func TestConnect_ReadOnlyWritesNothing(t *testing.T) {
	dir, backups := t.TempDir(), t.TempDir()
	mustRun(t, dir, "role", "create", "a", "--use", "workspace")
	path := filepath.Join(dir, persist.FileName)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"task", "list"}, {"agent", "tree"}, {"role", "list"}, {"tool", "list"}, {"can", "--role", "a", "read_file"}, {"can", "--who", "read_file"},
		{"artifact", "list"}, {"role", "update", "a", "--use-none", "--dry-run"}, {"backup", filepath.Join(backups, "b")},
	} {
		mustRun(t, dir, args...)
		if after, err := os.Stat(path); err != nil || after.ModTime() != before.ModTime() || after.Size() != before.Size() {
			t.Errorf("%v wrote the data file (%v)", args, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("the data directory has %v, %v", list, err)
	}
}

// A backup removes the drafts of backups that were killed.
func TestBackup_RemovesAbandonedDrafts(t *testing.T) {
	dir, backups := t.TempDir(), t.TempDir()
	mustRun(t, dir, "role", "create", "a")
	if err := os.WriteFile(filepath.Join(backups, ".rolecall-backup-123.part"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, dir, "backup", filepath.Join(backups, "b"))
	list, err := os.ReadDir(backups)
	if err != nil || len(list) != 1 || list[0].Name() != "b" {
		t.Errorf("got %v, %v", list, err)
	}
}
