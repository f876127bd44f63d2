package cmd

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

// check --sandbox says of each layer what holds, as root, as an ordinary user, and in a
// user namespace where no further ones can be created, as in many containers.
func TestCheckSandbox_NamesEachLayer(t *testing.T) {
	if _, err := launcher.Run(t.Context(), sandbox.Job{Argv: []string{"true"}}); err != nil {
		t.Skip("no sandbox on this system: ", err)
	}
	required := []string{"namespaces", "a root file system of its own", "Landlock", "no capabilities", "seccomp", "resource limits"}
	binary := copyOfTests(t)
	for name, attr := range setups() {
		t.Run(name, func(t *testing.T) {
			script := "exec " + binary + " check --sandbox --json"
			contained := attr.Cloneflags != 0
			if contained {
				script = "echo 0 >/proc/sys/user/max_user_namespaces && " + script
			}
			got, status := runCheck(t, script, attr)
			if contained {
				if status != 1 || !slices.Equal(got.Refused, []string{"run_command", "run_javascript"}) || len(got.Layers) != 0 {
					t.Errorf("status %d, refused %q, layers %q", status, got.Refused, got.Layers)
				}
				if c := got.Checks[0]; c.Status != sandbox.LayerMissing || !strings.Contains(c.Detail, "user.max_user_namespaces is 0") {
					t.Errorf("%+v", c)
				}
				if c := got.Checks[2]; c.Layer != "Landlock" || c.Status != sandbox.LayerAvailable {
					t.Errorf("%+v", c)
				}
				return
			}
			if status != 0 || len(got.Refused) != 0 || len(got.Layers) < len(required) {
				t.Errorf("status %d, refused %q, layers %q", status, got.Refused, got.Layers)
			}
			for i, layer := range required {
				if c := got.Checks[i]; c.Layer != layer || c.Status != sandbox.LayerActive {
					t.Errorf("%+v, want %s active", c, layer)
				}
			}
			if last := got.Checks[len(got.Checks)-1]; last.Layer != layerIdentity {
				t.Errorf("the last check is %+v", last)
			}
		})
	}
}

// setups are the ways in which this user can start rolecall.
func setups() map[string]*syscall.SysProcAttr {
	id := []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	all := map[string]*syscall.SysProcAttr{
		"this user":               {},
		"without user namespaces": {Cloneflags: syscall.CLONE_NEWUSER, UidMappings: id},
	}
	if os.Getuid() == 0 {
		all["ordinary user"] = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	return all
}

// copyOfTests returns the path of a copy of this binary that every user may run.
func copyOfTests(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rolecall") // t.TempDir is not readable for other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "rolecall")
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(to, from)
	}
	if err := errors.Join(err, to.Close(), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// runCheck runs a shell script that prints JSON, and returns that and the exit status.
func runCheck(t *testing.T, script string, attr *syscall.SysProcAttr) (sandboxOutput, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", append(os.Environ(), mainMode+"=1"), attr
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || len(out) == 0) {
		t.Fatalf("%v %s", err, failed.Stderr)
	}
	var got sandboxOutput
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return got, cmd.ProcessState.ExitCode()
}
