package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	launcher = sandbox.Enter(programs)
	os.Exit(m.Run())
}

func Example() {
	// main begins with launcher := sandbox.Enter(nil).
	out, err := launcher.Run(context.Background(), sandbox.Job{Argv: []string{"sh", "-c", "echo hello; exit 3"}, Unsandboxed: true})
	fmt.Printf("%q %d %v", out.Stdout.String(), out.ExitCode, err)
	// Output: "hello\n" 3 <nil>
}

// requireSandbox skips the test on systems without a sandbox.
func requireSandbox(t *testing.T) {
	t.Helper()
	_, err := launcher.Run(t.Context(), sandbox.Job{Argv: []string{"true"}})
	if missing, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		t.Skip("no sandbox on this system: ", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// shellJob returns a job that runs a shell script in a workspace.
func shellJob(dir, script string) sandbox.Job {
	return sandbox.Job{Argv: []string{"sh", "-c", script}, Workspace: dir}
}

func mustRun(t *testing.T, j sandbox.Job) sandbox.JobOutcome {
	t.Helper()
	out, err := launcher.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestLauncher_RunsJobInWorkspace(t *testing.T) {
	requireSandbox(t)
	dir := t.TempDir()
	out := mustRun(t, shellJob(dir, "pwd; echo new > made; mkdir a b; mv made a/; mv a/made b/; echo err >&2; exit 3"))
	if out.ExitCode != 3 || out.Stdout.String() != "/workspace\n" || out.Stderr.String() != "err\n" {
		t.Errorf("got %+v", out)
	}
	if got := readFile(t, filepath.Join(dir, "b", "made")); got != "new\n" {
		t.Errorf("the file contains %q", got)
	}
}

func TestOutcome_ExitCode(t *testing.T) {
	requireSandbox(t)
	t.Setenv("PATH", "/usr/bin:/root/bin")
	tests := []struct {
		name   string
		argv   []string
		code   int
		stderr string
	}{
		{"success", []string{"true"}, 0, ""},
		{"exit code", []string{"sh", "-c", "exit 7"}, 7, ""},
		{"signal of a child", []string{"sh", "-c", "sh -c 'kill -9 $$'; exit $?"}, 137, "Killed\n"},
		{"program not found", []string{"no-such-program"}, 127, "exec: \"no-such-program\": executable file not found in $PATH, which is /usr/bin:/usr/local/bin:/bin:/usr/sbin:/sbin\n"},
		{"directory as program", []string{"/usr"}, 126, "exec: \"/usr\": is a directory\n"},
		{"file that is not executable", []string{"/etc/passwd"}, 126, "exec: \"/etc/passwd\": permission denied\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := mustRun(t, sandbox.Job{Argv: tt.argv})
			if out.ExitCode != tt.code || out.Stderr.String() != tt.stderr || out.TimedOut {
				t.Errorf("got %d, %q, want %d, %q", out.ExitCode, out.Stderr, tt.code, tt.stderr)
			}
		})
	}
}

func TestLauncher_RejectsInvalidJob(t *testing.T) {
	tests := []struct {
		name string
		job  sandbox.Job
		want string
	}{
		{"nothing to run", sandbox.Job{}, "exactly one of Argv and Program"},
		{"two things to run", sandbox.Job{Argv: []string{"ls"}, Program: "echo"}, "exactly one of Argv and Program"},
		{"missing workspace", sandbox.Job{Argv: []string{"ls"}, Workspace: "/no/such/place"}, "/no/such/place"},
		{"relative readable directory", sandbox.Job{Argv: []string{"ls"}, Readable: []string{"lib"}}, `"lib" is not absolute`},
		{"readable directory that the sandbox creates itself", sandbox.Job{Argv: []string{"ls"}, Readable: []string{"/etc/"}}, `a mount point for the readable directory "/etc/"`},
		{"missing readable directory", sandbox.Job{Argv: []string{"ls"}, Readable: []string{"/no/such/place"}}, `the readable directory "/no/such/place"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := launcher.Run(t.Context(), tt.job)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to contain %q", err, tt.want)
			}
		})
	}
}

func TestLauncher_RequiresEnter(t *testing.T) {
	for name, l := range map[string]*sandbox.Launcher{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			_, err := l.Run(t.Context(), sandbox.Job{Argv: []string{"true"}, Unsandboxed: true})
			if _, ok := errors.AsType[*sandbox.UnavailableError](err); !ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOutput_KeepsHeadAndTail(t *testing.T) {
	requireSandbox(t)
	j := shellJob("", "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; head -c 3000000 /dev/zero >&2; printf last >&2")
	j.Limits.Output = 1000
	out := mustRun(t, j)
	if got := out.Stdout; len(got.Head) != 500 || len(got.Tail) != 500 || !strings.HasPrefix(string(got.Head), "line 0\nline 1\n") || !strings.HasSuffix(string(got.Tail), "line 4998\nline 4999\n") {
		t.Errorf("stdout %q", got)
	}
	if got := out.Stderr; got.Omitted != 3000000+4-1000 || !strings.HasSuffix(got.String(), "\x00last") || !strings.Contains(got.String(), "[2999004 bytes left out]") {
		t.Errorf("stderr: %d bytes left out, want %d", got.Omitted, 3000000+4-1000)
	}
}

func TestJob_ReadableBinIsInPath(t *testing.T) {
	requireSandbox(t)
	tools := t.TempDir()
	if err := os.Mkdir(filepath.Join(tools, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tools, "bin", "tool"), []byte("#!/bin/sh\necho at work\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, sandbox.Job{Argv: []string{"tool"}, Readable: []string{tools}}); out.Stdout.String() != "at work\n" {
		t.Errorf("got %q, %q", out.Stdout, out.Stderr)
	}
}

func TestJob_EnvHasNoDuplicates(t *testing.T) {
	for name, unsandboxed := range map[string]bool{"sandboxed": false, "unsandboxed": true} {
		t.Run(name, func(t *testing.T) {
			if !unsandboxed {
				requireSandbox(t)
			}
			out := mustRun(t, sandbox.Job{Unsandboxed: unsandboxed, Argv: []string{"cat", "/proc/self/environ"}, Env: []string{"HOME=/nowhere", "OWN=1", "OWN=2"}})
			got := strings.Split(out.Stdout.String(), "\x00")
			for _, want := range []string{"HOME=/nowhere", "OWN=2"} {
				variable, _, _ := strings.Cut(want, "=")
				same := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, variable+"=") })
				if !slices.Equal(same, []string{want}) {
					t.Errorf("got %q, want %q", same, want)
				}
			}
		})
	}
}

func TestJob_RejectsReplacedWorkspace(t *testing.T) {
	requireSandbox(t)
	dir, other := t.TempDir(), t.TempDir()
	same, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	j := shellJob(dir, "pwd")
	if j.WorkspaceInfo = same; mustRun(t, j).Stdout.String() != "/workspace\n" {
		t.Error("the same workspace was rejected")
	}
	j.Workspace = other
	if _, err := launcher.Run(t.Context(), j); err == nil || !strings.Contains(err.Error(), "was replaced") {
		t.Errorf("got %v", err)
	}
}

func TestJob_ReadableIsReadOnly(t *testing.T) {
	requireSandbox(t)
	tools, dir := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(tools, "known"), "facts")
	j := shellJob(dir, fmt.Sprintf("cat %s/known; echo x > %[1]s/known || echo refused", tools))
	j.Readable = []string{tools}
	if out := mustRun(t, j); out.Stdout.String() != "factsrefused\n" {
		t.Errorf("got %q, %q", out.Stdout, out.Stderr)
	}
	if got := readFile(t, filepath.Join(tools, "known")); got != "facts" {
		t.Errorf("the file contains %q", got)
	}
}

func TestJob_UnsandboxedKeepsLimits(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	t.Setenv("ROLECALL_CANARY", "secret")
	j := shellJob(dir, "pwd; echo x > "+outside+"; env; head -c 2000000 /dev/zero > big; sleep 1000 & echo started")
	j.Unsandboxed, j.Limits.FileSize = true, 1<<20
	out := mustRun(t, j)
	if !strings.HasPrefix(out.Stdout.String(), dir+"\n") || !strings.HasSuffix(out.Stdout.String(), "started\n") || strings.Contains(out.Stdout.String(), "secret") {
		t.Errorf("got %q, %q", out.Stdout, out.Stderr)
	}
	if readFile(t, outside) != "x\n" || len(readFile(t, filepath.Join(dir, "big"))) != 1<<20 {
		t.Error("the job did not write outside, or exceeded the file size limit")
	}
}

// make check runs this test as linux/386 too.
func TestLauncher_RefusesOnOtherPlatforms(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if sandbox.PlatformError(platform) == nil {
		return // the other tests show what works here
	}
	for _, job := range []sandbox.Job{{Argv: []string{"echo", "ran"}}, {Program: "echo"}} {
		out, err := launcher.Run(t.Context(), job)
		missing, ok := errors.AsType[*sandbox.UnavailableError](err)
		if !ok || !strings.Contains(missing.Error(), platform) || out.Stdout.String() != "" {
			t.Errorf("Run(%v) = %q, %v", job, out.Stdout, err)
		}
		if _, err := launcher.StartProcess(job); err == nil || err.Error() != missing.Error() {
			t.Errorf("Start(%v): got %v, want %v", job, err, missing)
		}
	}
}

// A probe whose time ends at any moment does not report that the system lacks something.
func TestLauncher_EndedProbeMissesNothing(t *testing.T) {
	requireSandbox(t)
	cause := errors.New("enough")
	for n := range 16 {
		after := time.Duration(n) * 2 * time.Millisecond
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, cause)
		got, err := launcher.ProbeIsolation(ctx)
		cancel()
		if !errors.Is(err, cause) && (err != nil || !got.Available()) {
			t.Errorf("ended after %v: got %+v, %v", after, got, err)
		}
	}
}

func TestLauncher_ProbesIsolation(t *testing.T) {
	if got, err := new(sandbox.Launcher).ProbeIsolation(t.Context()); err != nil || got.Available() || len(got.Missing) != 1 {
		t.Errorf("a launcher that is not entered: got %+v, %v", got, err)
	}
	requireSandbox(t)
	got, err := launcher.ProbeIsolation(t.Context())
	if err != nil || !got.Available() || got.Layers[0] != "namespaces" {
		t.Fatalf("got %+v, %v", got, err)
	}
	grouped := slices.Contains(got.Layers, "control groups")
	if lacking := strings.Contains(strings.Join(got.Missing, "\n"), "control groups: "); grouped == lacking {
		t.Errorf("control groups are active: %t, missing: %t", grouped, lacking)
	}
	for _, c := range got.Checks {
		if want := slices.Contains(got.Layers, c.Layer) || c.Layer == "/proc"; (c.Status == sandbox.LayerActive) != want {
			t.Errorf("%s is %s, among the layers: %t", c.Layer, c.Status, want)
		}
	}
	j := shellJob(t.TempDir(), "head -c 600000000 /dev/zero | tail >/dev/null")
	j.Limits.Memory = 100 << 20
	if out := mustRun(t, j); out.OutOfMemory != grouped {
		t.Errorf("a control group ended the job: %t, want %t", out.OutOfMemory, grouped)
	}
}
