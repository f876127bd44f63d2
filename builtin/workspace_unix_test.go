//go:build unix

package builtin

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

// A pipe nobody writes to would block its reader for ever.
func TestPipesAreListedAndNeverOpened(t *testing.T) {
	dir := t.TempDir()
	k := workspaceKit(t, dir, nil)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	symlink(t, "pipe", filepath.Join(dir, "link"))
	for _, path := range []string{"pipe", "link"} {
		if got := k.code(t, "read_file", obj{"path": path}); got != errcode.PermissionDenied {
			t.Errorf("read %s: code %q, want permission_denied", path, got)
		}
		if got := k.code(t, "write_file", obj{"path": path, "content": "x"}); got != errcode.PermissionDenied {
			t.Errorf("write %s: code %q, want permission_denied", path, got)
		}
	}
	if got := k.code(t, "list_files", obj{"path": "pipe"}); got != errcode.NotADirectory {
		t.Errorf("list: code %q, want not_a_directory", got)
	}
	if got := get[listing](t, k, "list_files", obj{}); len(got.Entries) != 2 || got.Entries[1].Type != "other" {
		t.Errorf("listed %+v", got.Entries)
	}
}

func TestWhatTheSystemDoesNotPermitIsDenied(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root is permitted everything")
	}
	dir := t.TempDir()
	k := workspaceKit(t, dir, map[string]string{"f": "text", "locked/g": "text"})
	if err := os.Chmod(filepath.Join(dir, "f"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "locked"), 0o755)
	for tool, path := range map[string]string{"read_file": "f", "list_files": "locked"} {
		if got := k.code(t, tool, obj{"path": path}); got != errcode.PermissionDenied {
			t.Errorf("%s: code %q, want permission_denied", tool, got)
		}
	}
	if got := get[workspaceInfo](t, k, "get_workspace_info", obj{}); got.Files != 1 || got.Directories != 1 {
		t.Errorf("counted %+v, want what can be seen", got)
	}
}
