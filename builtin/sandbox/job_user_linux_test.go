package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

// requireRoot skips the test for ordinary users: their jobs run as they do.
func requireRoot(t *testing.T) {
	t.Helper()
	requireSandbox(t)
	if os.Getuid() != 0 {
		t.Skip("not root")
	}
	if err := launcher.CheckJobUser(t.TempDir()); err != nil {
		t.Skip("jobs of root run as root on this system: ", err)
	}
}

// A job of root is not root: it reads no file below /usr that only root may read. In
// the workspace and in readable directories it has the rights of root, whose files
// these are.
func TestJob_OfRootIsUnprivileged(t *testing.T) {
	requireRoot(t)
	secret, err := os.CreateTemp("/usr/local", ".rolecall-test-*") // mode 0600
	if err != nil {
		t.Skip("/usr is not writable: ", err)
	}
	defer os.Remove(secret.Name())
	if _, err := secret.WriteString("ESCAPED"); err != nil {
		t.Fatal(err)
	}
	secret.Close()
	dir, tools := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(dir, "mine"), "kept ")
	writeFile(t, filepath.Join(tools, "known"), "known ")
	others := filepath.Join(dir, "others")
	writeFile(t, others, "not writable")
	if err := os.Chown(others, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	j := shellJob(dir, "cat "+secret.Name()+"; cat mine "+tools+"/known; echo changed > mine; mkdir made; echo x > others; cat others; id -u; id -G; id -un")
	j.Readable = []string{tools}
	out := mustRun(t, j)
	if got, want := out.Stdout.String(), "kept known 65533\n65533\nagent\n"; got != want {
		t.Errorf("got %q, want %q; %s", got, want, out.Stderr)
	}
	for name, owner := range map[string]uint32{"mine": 0, "made": 0, "others": 4711} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t); got.Uid != owner || got.Gid != owner {
			t.Errorf("%s belongs to %d:%d, want %d", name, got.Uid, got.Gid, owner)
		}
	}
	if readFile(t, filepath.Join(dir, "mine")) != "changed\n" || readFile(t, others) != "not writable" {
		t.Error("the job could not write root's file, or wrote another user's")
	}
	if out := exchange(t, sandbox.Job{Program: "dial"}, []string{"tcp 127.0.0.1:1"}); strings.Contains(out, "reached") {
		t.Errorf("a program of this binary: %s", out)
	}
}

// Where the file system of the workspace has no id-mapped mounts, the job is root, and
// CheckJobUser says so.
func TestLauncher_CheckJobUserNamesFileSystem(t *testing.T) {
	requireRoot(t)
	if err := launcher.CheckJobUser("/proc/sys"); err == nil || !strings.Contains(err.Error(), "the file system of /proc/sys has no id-mapped mounts") {
		t.Errorf("got %v", err)
	}
	out := mustRun(t, sandbox.Job{Argv: []string{"id", "-u"}, Workspace: "/proc/sys", ReadOnly: true})
	if got := out.Stdout.String(); got != "0\n" {
		t.Errorf("the job is user %q; %s", got, out.Stderr)
	}
	if err := (&sandbox.Launcher{}).CheckJobUser(t.TempDir()); err == nil {
		t.Error("a launcher that cannot start jobs reports none")
	}
}
