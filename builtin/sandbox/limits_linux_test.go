package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

func TestLimits_BoundJob(t *testing.T) {
	requireSandbox(t)
	tests := []struct {
		name, script string
		limits       sandbox.Limits
		check        func(dir string, o sandbox.Outcome) bool
	}{
		// The start of a job, this binary once more, needs some of the memory too: with
		// 64 MiB it ended there once in forty runs.
		{"memory of one process", "head -c 200000000 /dev/zero | tail | wc -c", sandbox.Limits{Memory: 128 << 20},
			func(_ string, o sandbox.Outcome) bool { return o.Stdout.String() != "200000000\n" }},
		{"file size", "head -c 3000000 /dev/zero > big; true", sandbox.Limits{FileSize: 1 << 20},
			func(dir string, o sandbox.Outcome) bool { return size(filepath.Join(dir, "big")) == 1<<20 }},
		{"size of the scratch directory", "head -c 30000000 /dev/zero > /tmp/big; wc -c < /tmp/big", sandbox.Limits{Scratch: 1 << 20},
			func(_ string, o sandbox.Outcome) bool { return o.Stdout.String() == "1048576\n" }},
		{"number of processes", "i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); echo $i; done; echo all", sandbox.Limits{Processes: 30, Time: 5 * time.Second},
			func(_ string, o sandbox.Outcome) bool {
				return strings.HasPrefix(o.Stdout.String(), "1\n2\n") && !strings.HasSuffix(o.Stdout.String(), "all\n")
			}},
		{"time", "while :; do :; done", sandbox.Limits{Time: 200 * time.Millisecond},
			func(_ string, o sandbox.Outcome) bool { return o.TimedOut }},
		{"time of a job that ignores signals", "trap '' TERM INT HUP; while :; do sleep 1000; done", sandbox.Limits{Time: 200 * time.Millisecond},
			func(_ string, o sandbox.Outcome) bool { return o.TimedOut }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if sandbox.RaceEnabled && os.Getuid() != 0 && tt.limits.Memory > 0 {
				t.Skip("with the race detector memory is bounded by a control group only, which needs root")
			}
			j := shellJob(t.TempDir(), tt.script)
			j.Limits = tt.limits
			if out := mustRun(t, j); !tt.check(j.Workspace, out) {
				t.Errorf("got %+v: %s%s", out, out.Stdout, out.Stderr)
			}
		})
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// makeFIFO creates a named pipe that the processes of a job keep open. A reader of
// it sees the end of the file when all of them have ended.
func makeFIFO(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "alive")
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	return path
}

// leaveChildren is a script whose children outlive it, ignore signals and run in
// another session.
const leaveChildren = `exec 9> alive; echo up >&9; trap '' HUP TERM INT; (setsid sleep 1000 &) ; sleep 1000 & `

func TestLauncher_RunLeavesNoProcess(t *testing.T) {
	requireSandbox(t)
	tests := []struct {
		name, script string
		act          func(cancel context.CancelFunc)
	}{
		{"job that ends", leaveChildren, func(context.CancelFunc) {}},
		{"job that is cancelled", leaveChildren + "wait", func(cancel context.CancelFunc) { cancel() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := shellJob(t.TempDir(), tt.script)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			path := makeFIFO(t, j.Workspace)
			ended := make(chan error, 1)
			go func() {
				_, err := launcher.Run(ctx, j)
				ended <- err
			}()
			reader, err := os.Open(path) // waits for the job
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			up := make([]byte, 3)
			if _, err := reader.Read(up); err != nil || string(up) != "up\n" {
				t.Fatalf("got %q, %v", up, err)
			}
			tt.act(cancel)
			if n, _ := reader.Read(up); n != 0 { // waits for the last process
				t.Errorf("got %q", up[:n])
			}
			if err := <-ended; tt.name == "job that is cancelled" != errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLauncher_BoundsConcurrentJobs(t *testing.T) {
	requireSandbox(t)
	j := shellJob(t.TempDir(), "mine=$(mktemp -d at-work-XXXXXX); ls -d at-work-* | wc -l >> counts; sleep 0.1; rmdir $mine")
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if _, err := launcher.Run(t.Context(), j); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	limit := max(4, 2*runtime.NumCPU())
	counts := strings.Fields(readFile(t, filepath.Join(j.Workspace, "counts")))
	if len(counts) != 30 {
		t.Errorf("%d jobs ran, want 30", len(counts))
	}
	for _, count := range counts {
		if n, err := strconv.Atoi(count); err != nil || n > limit {
			t.Errorf("%s jobs at once, want at most %d", count, limit)
		}
	}
}

// TestLauncher_JobEndsWithStarter kills a process that has started a job.
func TestLauncher_JobEndsWithStarter(t *testing.T) {
	if dir := os.Getenv("ROLECALL_STARTER"); dir != "" {
		j := shellJob(dir, leaveChildren+"wait")
		if os.Getenv("ROLECALL_STARTS") == "ignoreParentDeath" {
			j = sandbox.Job{Program: "ignoreParentDeath", Workspace: dir}
		}
		_, err := launcher.Run(t.Context(), j)
		t.Fatal("the job ended on its own: ", err)
	}
	requireSandbox(t)
	for _, job := range []string{"leaveChildren", "ignoreParentDeath"} {
		t.Run(job, func(t *testing.T) {
			dir := t.TempDir()
			path := makeFIFO(t, dir)
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestLauncher_JobEndsWithStarter$")
			cmd.Env = append(os.Environ(), "ROLECALL_STARTER="+dir, "ROLECALL_STARTS="+job)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			reader, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			up := make([]byte, 3)
			if _, err := reader.Read(up); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			if n, _ := reader.Read(up); n != 0 {
				t.Errorf("got %q", up[:n])
			}
		})
	}
}

func TestLauncher_StartExchangesLines(t *testing.T) {
	requireSandbox(t)
	p, err := launcher.Start(sandbox.Job{Program: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	buffer := make([]byte, 100)
	for _, word := range []string{"one", "two"} {
		if _, err := p.Write([]byte(word + "\n")); err != nil {
			t.Fatal(err)
		}
		if n, err := p.Read(buffer); err != nil || string(buffer[:n]) != "heard "+word+"\n" {
			t.Errorf("got %q, %v", buffer[:n], err)
		}
	}
	p.Close()
	p.Close()
	if _, err := p.Read(buffer); err == nil {
		t.Error("a closed process answered")
	}
}
