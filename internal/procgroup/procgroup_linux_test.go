package procgroup_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/internal/procgroup"
)

// startShell runs a script in a new process group and returns the first line of its
// output.
func startShell(t *testing.T, script string) (*procgroup.Group, string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = procgroup.Attributes()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	cmd.Stdout = out
	g := procgroup.New(cmd)
	err = g.Start()
	out.Close()
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return g, strings.TrimSpace(line)
}

// alive reports whether a process is running; a zombie is not.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

func TestGroup_WaitKillsRemainingProcesses(t *testing.T) {
	g, child := startShell(t, "sleep 600 >/dev/null & echo $!; exit 3")
	err := g.Wait()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 3 {
		t.Errorf("got %v, want status 3", err)
	}
	for n := 0; alive(t, child); n++ { // it was killed and ends soon
		if n > 1e7 {
			t.Fatalf("process %s is still running", child)
		}
	}
}

func TestGroup_SignalsAllUntilWait(t *testing.T) {
	g, _ := startShell(t, "sleep 600 >/dev/null & echo $$; wait")
	g.Signal(syscall.SIGTERM)
	if err := g.Wait(); err == nil {
		t.Error("Wait returned no error for a killed process")
	}
	g.Signal(syscall.SIGKILL) // the id may belong to another process now
}

// A process that has got the id of an ended group is not signalled.
func TestGroup_DoesNotSignalReusedID(t *testing.T) {
	g, pid := startShell(t, "echo $$")
	_ = g.Wait()
	id, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("/bin/sleep", "600")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(id-1)), 0) != nil || other.Start() != nil {
		t.Skip("the id of the next process cannot be set here")
	}
	defer other.Wait()
	defer other.Process.Kill()
	if other.Process.Pid != id {
		t.Skipf("another process got the id %d", id)
	}
	g.Signal(syscall.SIGKILL)
	if !alive(t, pid) {
		t.Error("a process of another group was killed")
	}
}

// The error of a program that cannot be started is the reason alone.
func TestGroup_StartErrorHasNoPath(t *testing.T) {
	for _, path := range []string{"/nonexistent/program", "rolecall-no-such-program", t.TempDir()} {
		err := procgroup.New(exec.Command(path)).Start()
		if err == nil || strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// A program lives on when the goroutine that started it and its thread have ended.
func TestGroup_OutlivesStarter(t *testing.T) {
	type started struct {
		group *procgroup.Group
		pid   string
	}
	result := make(chan started)
	go func() {
		defer close(result)
		runtime.LockOSThread() // and the thread ends with the goroutine
		g, pid := startShell(t, "echo $$; exec sleep 600")
		result <- started{g, pid}
	}()
	s := <-result
	again, _ := startShell(t, "echo $$") // after the thread has ended
	_ = again.Wait()
	select {
	case <-s.group.Ended():
		t.Fatal("the program was killed")
	default:
	}
	s.group.Signal(syscall.SIGKILL)
	if err := s.group.Wait(); err == nil {
		t.Error("Wait returned no error for a killed process")
	}
	if alive(t, s.pid) {
		t.Error("the program is still running")
	}
}
