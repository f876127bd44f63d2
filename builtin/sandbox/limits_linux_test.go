package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

func TestLimits_BoundJob(t *testing.T) {
	requireSandbox(t)
	tests := []struct {
		name, script string
		limits       sandbox.JobLimits
		check        func(dir string, o sandbox.JobOutcome) bool
	}{
		// The start of a job, this binary once more, needs some of the memory too: with
		// 64 MiB it ended there once in forty runs.
		{"memory of one process", "head -c 200000000 /dev/zero | tail | wc -c", sandbox.JobLimits{Memory: 128 << 20},
			func(_ string, o sandbox.JobOutcome) bool { return o.Stdout.String() != "200000000\n" }},
		{"file size", "head -c 3000000 /dev/zero > big; true", sandbox.JobLimits{FileSize: 1 << 20},
			func(dir string, o sandbox.JobOutcome) bool { return size(filepath.Join(dir, "big")) == 1<<20 }},
		{"size of the scratch directory", "head -c 30000000 /dev/zero > /tmp/big; wc -c < /tmp/big", sandbox.JobLimits{Scratch: 1 << 20},
			func(_ string, o sandbox.JobOutcome) bool { return o.Stdout.String() == "1048576\n" }},
		{"number of processes", "i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); echo $i; done; echo all", sandbox.JobLimits{Processes: 30, Time: 5 * time.Second},
			func(_ string, o sandbox.JobOutcome) bool {
				return strings.HasPrefix(o.Stdout.String(), "1\n2\n") && !strings.HasSuffix(o.Stdout.String(), "all\n")
			}},
		{"time", "while :; do :; done", sandbox.JobLimits{Time: 200 * time.Millisecond},
			func(_ string, o sandbox.JobOutcome) bool { return o.TimedOut }},
		{"time of a job that ignores signals", "trap '' TERM INT HUP; while :; do sleep 1000; done", sandbox.JobLimits{Time: 200 * time.Millisecond},
			func(_ string, o sandbox.JobOutcome) bool { return o.TimedOut }},
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

// A job has half of the default weight, where it has a control group for it.
func TestLauncher_LowersWeightOfJob(t *testing.T) {
	requireSandbox(t)
	dir := t.TempDir()
	path := makeFIFO(t, dir)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := launcher.Run(ctx, shellJob(dir, "echo up > "+filepath.Base(path)+"; exec sleep 1000"))
		done <- err
	}()
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := reader.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	weights := sandbox.CPUWeights()
	cancel()
	<-done
	if len(weights) == 0 {
		t.Skip("this process may create no control group with a weight")
	}
	for file, got := range weights {
		if want := map[string]string{"cpu.weight": "50", "cpu.shares": "512"}[filepath.Base(file)]; got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
	if left := sandbox.CPUWeights(); len(left) != 0 {
		t.Errorf("%v is left after the end of the job", left)
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
	p, err := launcher.StartProcess(sandbox.Job{Program: "echo"})
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
