package builtin

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
)

// Opening a pipe without a writer would block forever.
func TestFileTools_NeverOpenPipes(t *testing.T) {
	dir := t.TempDir()
	k := workspaceFixture(t, dir, nil)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	symlink(t, "pipe", filepath.Join(dir, "link"))
	for _, path := range []string{"pipe", "link"} {
		if got := k.callCode(t, "read_file", obj{"path": path}); got != errcode.PermissionDenied {
			t.Errorf("read %s: code %q, want permission_denied", path, got)
		}
		if got := k.callCode(t, "write_file", obj{"path": path, "content": "x"}); got != errcode.PermissionDenied {
			t.Errorf("write %s: code %q, want permission_denied", path, got)
		}
	}
	if got := k.callCode(t, "list_files", obj{"path": "pipe"}); got != errcode.NotADirectory {
		t.Errorf("list: code %q, want not_a_directory", got)
	}
	if got := callResult[workspace.Listing](t, k, "list_files", obj{}); len(got.Entries) != 2 || got.Entries[1].Type != "other" {
		t.Errorf("listed %+v", got.Entries)
	}
}

// Sockets and devices are never opened.
func TestFileTools_NeverOpenSocketsOrDevices(t *testing.T) {
	dir := t.TempDir()
	k := workspaceFixture(t, dir, nil)
	made := map[string]bool{}
	t.Run("socket", func(t *testing.T) {
		t.Chdir(dir) // socket paths must be short
		l, err := net.Listen("unix", "socket")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		checkNeverOpened(t, k, "socket")
		made["socket"] = true
	})
	t.Run("device", func(t *testing.T) {
		if err := unix.Mknod(filepath.Join(dir, "zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
			t.Skip("only root creates devices: ", err)
		}
		checkNeverOpened(t, k, "zero")
		made["zero"] = true
	})
	if !made["socket"] {
		t.Error("the test created no file")
	}
}

func checkNeverOpened(t *testing.T, k fixture, name string) {
	t.Helper()
	if got := k.callCode(t, "read_file", obj{"path": name}); got != errcode.PermissionDenied {
		t.Errorf("read %s: code %q, want permission_denied", name, got)
	}
	if got := k.callCode(t, "write_file", obj{"path": name, "content": "x"}); got != errcode.PermissionDenied {
		t.Errorf("write %s: code %q, want permission_denied", name, got)
	}
	if got := callResult[workspace.Listing](t, k, "list_files", obj{"pattern": name}); len(got.Entries) != 1 || got.Entries[0].Type != "other" {
		t.Errorf("listed %+v", got.Entries)
	}
}

// Links in /proc lead to other files than their text.
func TestFileTools_RejectProcLinks(t *testing.T) {
	if _, err := os.Stat("/proc/self/root"); err != nil {
		t.Skip(err)
	}
	outside, dir := t.TempDir(), t.TempDir()
	putFile(t, filepath.Join(outside, "canary"), "SECRET")
	open, err := os.Open(outside)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	k := workspaceFixture(t, dir, map[string]string{"f": ""})
	up := strings.Repeat("../", strings.Count(dir, "/"))
	for i, to := range []string{
		"/proc/self/root" + outside, "/proc/self/cwd", fmt.Sprintf("/proc/self/fd/%d", open.Fd()), fmt.Sprintf("/dev/fd/%d", open.Fd()),
		"/proc/thread-self/root/", up + "proc/self/root" + outside,
	} {
		name := fmt.Sprint("link", i)
		symlink(t, to, filepath.Join(dir, name))
		for tool, args := range map[string]obj{
			"read_file": {"path": name + "/canary"}, "write_file": {"path": name + "/new", "content": "x"}, "list_files": {"path": name},
		} {
			if got := k.callCode(t, tool, args); got != errcode.PathTraversal {
				t.Errorf("%s through %s: code %q, want path_traversal_blocked", tool, to, got)
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"canary": "SECRET"}, tree(t, outside, "")); diff != "" {
		t.Errorf("outside changed (-want +got):\n%s", diff)
	}
}

// Writing a file with a hard link outside does not change that link: the name
// inside gets a new file.
func TestWriteFile_DoesNotWriteThroughHardLink(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	putFile(t, filepath.Join(outside, "canary"), "SECRET")
	if err := os.Link(filepath.Join(outside, "canary"), filepath.Join(dir, "f")); err != nil {
		t.Skip(err)
	}
	if got := workspaceFixture(t, dir, nil).callCode(t, "write_file", obj{"path": "f", "content": "mine"}); got != "" {
		t.Errorf("code %q", got)
	}
	got := map[string]string{"inside": tree(t, dir, "")["f"], "outside": tree(t, outside, "")["canary"]}
	if diff := cmp.Diff(map[string]string{"inside": "mine", "outside": "SECRET"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An unreadable folder of this user could hide files from the quota.
func TestWriteFile_RejectsUnreadableFolderInQuota(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has all permissions")
	}
	dir := t.TempDir()
	k := workspaceFixture(t, dir, map[string]string{"closed/f": "text"})
	if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "closed"), 0o755)
	if got := k.callCode(t, "write_file", obj{"path": "f", "content": ""}); got != errcode.PermissionDenied {
		t.Errorf("code %q, want permission_denied", got)
	}
}

func TestFileTools_PermissionDenied(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has all permissions")
	}
	dir := t.TempDir()
	k := workspaceFixture(t, dir, map[string]string{"f": "text", "locked/g": "text"})
	if err := os.Chmod(filepath.Join(dir, "f"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "locked"), 0o755)
	for tool, path := range map[string]string{"read_file": "f", "list_files": "locked"} {
		if got := k.callCode(t, tool, obj{"path": path}); got != errcode.PermissionDenied {
			t.Errorf("%s: code %q, want permission_denied", tool, got)
		}
	}
	if got := callResult[workspace.Info](t, k, "get_workspace_info", obj{}); got.Files != 1 || got.Directories != 1 {
		t.Errorf("counted %+v, want the readable entries", got)
	}
}
