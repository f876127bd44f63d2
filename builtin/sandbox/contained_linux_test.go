package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

// TestLauncher_ContainsEscapes runs as the current user and, from
// TestLauncher_WorksWithoutRoot, as an unprivileged one.
func TestLauncher_ContainsEscapes(t *testing.T) {
	requireSandbox(t)
	outside := t.TempDir()
	canary := filepath.Join(outside, "canary")
	writeFile(t, canary, "untouched")
	t.Setenv("ROLECALL_CANARY", "secret")
	inherited, err := syscall.Open(canary, syscall.O_RDONLY, 0) // as a shell or an init system leaves one
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	// Each script prints ESCAPED when it reaches what it must not reach.
	tests := []struct{ name, script string }{
		{"a file of the host", "cat $CANARY && echo ESCAPED"},
		{"a file of the host through a symlink", "ln -s $CANARY link; cat link && echo ESCAPED"},
		{"writing through a symlink to a directory", "ln -s $OUTSIDE out; echo x > out/new && echo ESCAPED"},
		{"a hard link to a system file", "ln /etc/hosts here && echo ESCAPED"},
		{"parents of the workspace", "ls ../../../.. | grep -vxE 'bin|dev|etc|lib|lib32|lib64|libx32|proc|run|sbin|tmp|usr|workspace' && echo ESCAPED"},
		{"the root directory of another process", "cat /proc/1/root$CANARY && echo ESCAPED"},
		{"writing system directories", "for d in / /etc /usr /usr/bin /dev /proc /run; do touch $d/new && echo ESCAPED; done; true"},
		{"changing modes of system files", "chmod 777 /usr/bin/env && echo ESCAPED; touch -d yesterday /usr && echo ESCAPED"},
		{"the password database", "cat /etc/shadow && echo ESCAPED"},
		{"home directories", "ls /root /home 2>/dev/null | grep . && echo ESCAPED"},
		{"sockets of services", "ls /run/* /var/run 2>/dev/null | grep -v ^/run/rolecall | grep . && echo ESCAPED"},
		{"other processes", "ls /proc | grep -E '^[0-9]+$' | while read p; do grep -l test /proc/$p/comm && echo ESCAPED; done; true"},
		{"a signal to all processes", "trap '' TERM; kill -TERM -1; true"},
		{"the environment of the starter", "env | grep secret && echo ESCAPED; cat /proc/*/environ | grep -a secret && echo ESCAPED"},
		{"open descriptors", "ls -l /proc/self/fd | grep -E ' [3-9] -> ' | grep -v /proc && echo ESCAPED"},
		{"a device", "mknod disk b 8 0 && echo ESCAPED; ls /dev | grep -E 'sd|vd|nvme|mem|kmsg|tty' && echo ESCAPED"},
		{"capabilities", "grep Cap /proc/self/status | grep -v 0000000000000000 && echo ESCAPED"},
		{"new privileges", "grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED; grep -q 'Seccomp:.2' /proc/self/status || echo ESCAPED"},
		{"another namespace", "unshare -Ur true && echo ESCAPED; unshare -n true && echo ESCAPED"},
		{"mounting", "mount -t tmpfs x /workspace && echo ESCAPED; mount -o remount,rw / && echo ESCAPED"},
		{"kernel settings", "echo 1 > /proc/sys/kernel/panic && echo ESCAPED; echo x > /proc/sysrq-trigger && echo ESCAPED"},
		{"changing the user", "su nobody -s /bin/sh -c true && echo ESCAPED; setpriv --reuid 1 true && echo ESCAPED"},
		{"descriptors the starter inherited", "readlink /proc/self/fd/* | grep -F $CANARY && echo ESCAPED"},
		{"the host's own /dev/null", "readlink /proc/self/fd/0 /proc/self/fd/1 /proc/$$/fd/2 | grep -v '^pipe:' && echo ESCAPED"},
		{"private keys", "for d in /etc/ssl/private /etc/pki/tls/private; do ls $d && echo ESCAPED; done; true"},
		{"set-user-id programs", "cp /usr/bin/id mine && chmod u+s mine; grep ' /workspace ' /proc/self/mounts | grep -q nosuid || echo ESCAPED"},
		{"control groups", "ls /sys/fs/cgroup && echo ESCAPED"},
		{"names of control groups", "grep -v ':/$' /proc/self/cgroup /proc/1/cgroup && echo ESCAPED"},
		{"the init process", "cat /proc/1/environ /proc/1/maps /proc/1/mem 2>/dev/null | grep -q . && echo ESCAPED; ls -l /proc/1/fd 2>/dev/null | grep -q pipe && echo ESCAPED; kill -KILL 1; kill -STOP 1; test -d /proc/1 || echo ESCAPED"},
		{"the host name", "hostname evil && echo ESCAPED; test $(cat /proc/sys/kernel/hostname) = sandbox || echo ESCAPED"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := shellJob(t.TempDir(), tt.script)
			j.Env = []string{"CANARY=" + canary, "OUTSIDE=" + outside}
			if out := mustRun(t, j); strings.Contains(out.Stdout.String(), "ESCAPED") {
				t.Errorf("%s\ngot %s%s", tt.script, out.Stdout, out.Stderr)
			}
			if entries, _ := os.ReadDir(outside); len(entries) != 1 || readFile(t, canary) != "untouched" {
				t.Fatal("the host was changed")
			}
		})
	}
}

func TestSeccomp_DeniesSyscalls(t *testing.T) {
	requireSandbox(t)
	if out := mustRun(t, sandbox.Job{Program: "syscalls"}); out.Stdout.String() != "" || out.ExitCode != 0 {
		t.Errorf("not denied:\n%s%s", out.Stdout, out.Stderr)
	}
	p, err := launcher.StartProcess(sandbox.Job{Program: "syscalls"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if output, err := io.ReadAll(p); len(output) != 0 || err != nil {
		t.Errorf("not denied to a process of Start: %s, %v", output, err)
	}
}

func TestLauncher_IsolatesNetwork(t *testing.T) {
	requireSandbox(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(t.TempDir(), "socket")
	file, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	abstract, err := net.Listen("unix", "@rolecall-test-"+filepath.Base(t.TempDir())+fmt.Sprint(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	targets := []string{"tcp " + tcp.Addr().String(), "unix " + path, "unix " + abstract.Addr().String(), "tcp 192.0.2.1:80", "udp 192.0.2.1:53"}
	if got := exchange(t, sandbox.Job{Program: "dial"}, targets); strings.Contains(got, "reached") {
		t.Errorf("got\n%s", got)
	}
	if out := mustRun(t, sandbox.Job{Program: "loopback"}); out.Stdout.String() != "reached itself, and could not write: true\n" {
		t.Errorf("got %q, %q", out.Stdout, out.Stderr)
	}
	control := exchange(t, sandbox.Job{Program: "dial", Unsandboxed: true}, targets[:3])
	if strings.Count(control, "reached") != 3 {
		t.Errorf("an unsandboxed job did not reach all targets, so the test proves nothing:\n%s", control)
	}
}

// A job reaches its starter at the port that it was given; other processes do not. The
// programs of the job do not inherit the listener.
func TestProcess_ListenerAcceptsFromJobAlone(t *testing.T) {
	requireSandbox(t)
	p, err := launcher.StartProcess(sandbox.Job{Argv: []string{"sh", "-c", "ls /proc/self/fd | wc -l; read line; echo $line; exec sleep 600"}, Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	target := "tcp " + p.Listener().Addr().String()
	if got := exchange(t, sandbox.Job{Program: "dial"}, []string{target}); strings.Contains(got, "reached") {
		t.Errorf("another job reached the port: %s", got)
	}
	if got := exchange(t, sandbox.Job{Program: "dial", Unsandboxed: true}, []string{target}); strings.Contains(got, "reached") {
		t.Errorf("a program of the host reached the port: %s", got)
	}
	lines := bufio.NewScanner(p)
	if lines.Scan(); strings.TrimSpace(lines.Text()) != "4" { // the standard three, and that of the directory
		t.Errorf("the program has %s descriptors, want 4", lines.Text())
	}
}

func TestProcess_ListenerServesJob(t *testing.T) {
	requireSandbox(t)
	p, err := launcher.StartProcess(sandbox.Job{Program: "dial", Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	target := "tcp " + p.Listener().Addr().String()
	if _, err := fmt.Fprintln(p, target); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(p)
	if lines.Scan(); lines.Text() != "reached "+target {
		t.Errorf("got %q", lines.Text())
	}
	conn, err := p.Listener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := launcher.StartProcess(sandbox.Job{Program: "dial", Listen: true, Unsandboxed: true}); err == nil {
		t.Error("an unsandboxed job has a listener")
	}
}

// A stopped job makes no progress, goes on when it is told to, and can be closed.
func TestProcess_PauseStopsJob(t *testing.T) {
	requireSandbox(t)
	var stderr strings.Builder
	p, err := launcher.StartProcess(sandbox.Job{Argv: []string{"sh", "-c", "echo begun >&2; (while read line; do echo $line; done)"}, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	p.Pause()
	for state := ""; state != "T"; state = processState(t, p.ID()) {
	}
	fmt.Fprintln(p, "one")
	if err := p.ReadCloser.(*os.File).SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Read(make([]byte, 9)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stopped job wrote %d bytes, %v", n, err)
	}
	_ = p.ReadCloser.(*os.File).SetReadDeadline(time.Time{})
	p.Resume()
	line := make([]byte, 4)
	if _, err := io.ReadFull(p, line); string(line) != "one\n" || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
	p.Pause()
	p.Close()
	if stderr.String() != "begun\n" {
		t.Errorf("stderr is %q", stderr.String())
	}
}

// processState returns the letter of a process's state in /proc.
func processState(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}

// exchange writes lines to a program and returns its output up to the answer to
// the last line.
func exchange(t *testing.T, j sandbox.Job, lines []string) string {
	t.Helper()
	p, err := launcher.StartProcess(j)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := io.WriteString(p, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	for answers := bufio.NewScanner(p); answers.Scan(); {
		fmt.Fprintln(&output, answers.Text())
		if answers.Text() == "tried "+lines[len(lines)-1] {
			return output.String()
		}
	}
	t.Fatalf("the program ended after\n%s", output.String())
	return ""
}

func TestJob_ReadOnlyWorkspaceIsUnchanged(t *testing.T) {
	requireSandbox(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "file"), "old")
	j := shellJob(dir, "cat file; echo new > file; touch more; chmod 777 file; rm file; mv file other; ln file link; true")
	j.ReadOnly = true
	out := mustRun(t, j)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || readFile(t, filepath.Join(dir, "file")) != "old" || out.Stdout.String() != "old" {
		t.Errorf("got %v, %v; the job wrote %s%s", entries, err, out.Stdout, out.Stderr)
	}
}

// TestLauncher_WorksWithoutRoot runs the tests of isolation and limits again as the
// user nobody.
func TestLauncher_WorksWithoutRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("already running as an ordinary user")
	}
	requireSandbox(t)
	dir, err := os.MkdirTemp("", "rolecall") // t.TempDir is not readable for other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, temp := filepath.Join(dir, "test"), filepath.Join(dir, "tmp")
	for _, err := range []error{os.Chmod(dir, 0o755), copyFile(binary, "/proc/self/exe"), os.Mkdir(temp, 0o700), os.Chown(temp, nobodyID, nobodyID)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^(TestLauncher_ContainsEscapes|TestSeccomp_DeniesSyscalls|TestLauncher_IsolatesNetwork|TestLauncher_ProbesIsolation|TestLimits.*|TestJob_ReadOnlyWorkspaceIsUnchanged)$", "-test.v")
	cmd.Dir, cmd.Env = temp, append(os.Environ(), "TMPDIR="+temp, "GOTMPDIR="+temp, "HOME="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestLauncher_ContainsEscapes") {
		t.Errorf("%v\n%s", err, out)
	}
}

// nobodyID is the user and group id of nobody.
const nobodyID = 65534

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// TestUnavailable_NamesMissingFeature runs itself in a user namespace where no
// further ones can be created.
func TestUnavailable_NamesMissingFeature(t *testing.T) {
	if os.Getenv("ROLECALL_NO_NAMESPACES") == "" {
		requireSandbox(t)
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestUnavailable_NamesMissingFeature$", "-test.v")
		cmd.Env = append(os.Environ(), "ROLECALL_NO_NAMESPACES=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := launcher.Run(t.Context(), sandbox.Job{Argv: []string{"true"}})
	const want = "no sandbox: user, mount, pid, network, ipc and uts namespaces (sysctl user.max_user_namespaces is 0): "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}
