package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/external"
)

// Commands that only look work on a data directory that is mounted read-only.
func TestCommands_OnReadOnlyMount(t *testing.T) {
	external.Skip(t, "a mount namespace")
	if runtime.GOOS != "linux" {
		t.Skip("mount namespaces are of Linux")
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	out, err := exec.CommandContext(t.Context(), "rolecall", "--data", data, "role", "create", "reader", "--use", "workspace").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script := `set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
! touch "$1/x" 2>/dev/null
rolecall --data "$1" role list
rolecall --data "$1" task list
rolecall --data "$1" agent tree
rolecall --data "$1" can --role reader read_file
rolecall --data "$1" backup "$2/b"
! rolecall --data "$1" role create other
`
	cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", script, "sh", data, dir)
	cmd.Env = os.Environ()
	out, err = cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"reader", "allowed", "everything up to event", "read-only file system"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
}
