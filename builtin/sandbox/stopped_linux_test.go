package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

// stoppedLimit is the time limit of the program below, which this process misses.
const stoppedLimit = 2 * time.Second

// A program that ends while the process that runs it is stopped (SIGSTOP) has not
// exceeded its time limit, although both are noticed at the same time.
func TestRun_ProgramEndsWhileStopped(t *testing.T) {
	if dir := os.Getenv("SANDBOX_STOPPED"); dir != "" {
		runWhileStopped(dir)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRun_ProgramEndsWhileStopped$")
	cmd.Env = append(os.Environ(), "SANDBOX_STOPPED="+dir)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() // its output tells
	awaitFile(t, filepath.Join(dir, "running"))
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "go"), "")
	awaitFile(t, filepath.Join(dir, "ended"))
	<-time.After(time.Until(began.Add(stoppedLimit + 100*time.Millisecond))) // the limit itself
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		fmt.Fprintln(&text, lines.Text())
	}
	if want := `exit 3, timed out false, output "out\n", error <nil>`; !strings.Contains(text.String(), want) {
		t.Errorf("got %s, want %s", text.String(), want)
	}
}

// runWhileStopped runs a program that ends when it is told to.
func runWhileStopped(dir string) {
	script := "echo out; touch running; while ! test -e go; do :; done; touch ended; exit 3"
	out, err := launcher.Run(context.Background(), sandbox.Job{
		Argv: []string{"sh", "-c", script}, Workspace: dir, Unsandboxed: true, Limits: sandbox.JobLimits{Time: stoppedLimit},
	})
	fmt.Printf("exit %d, timed out %v, output %q, error %v\n", out.ExitCode, out.TimedOut, out.Stdout.String(), err)
}

// awaitFile waits until a file exists.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s did not exist within 30 s", path)
}
