package mcpclient_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A program ends when its parent is killed, even if it ignores the end of its stdin.
func TestProcess_EndsWithParent(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(program, "-test.run=^TestParentProcess$")
	parent.Env = append(os.Environ(), parentMode+"=1", "TMPDIR="+t.TempDir()) // nothing else removes what it leaves
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "CHILD "); ok {
			pid, _ = strconv.Atoi(text)
		}
	}
	child, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("there is no process %d: %v", pid, err)
	}
	defer unix.Close(child)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	events := []unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(events, 20_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Fatalf("the program is still running: %d, %v", n, err)
		}
		return
	}
}

// parentMode is the variable that makes TestParentProcess the parent of a server.
const parentMode = "TEST_MCP_PARENT"

// TestParentProcess is the process that TestProcess_EndsWithParent kills.
func TestParentProcess(t *testing.T) {
	if os.Getenv(parentMode) == "" {
		return // not started by TestProcess_EndsWithParent: there is nothing to test
	}
	fx := newFixture(t)
	fx.load(fx.childConfig("fs", "ignores EOF"))
	_, err := os.Stdout.WriteString("\nCHILD " + fx.call("fs__act", `{}`) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	<-t.Context().Done() // the process is killed before
}

// UnloadModule ends the program.
func TestProcess_EndsOnUnload(t *testing.T) {
	fx := newFixture(t)
	fx.load(fx.childConfig("fs", "ignores EOF"))
	pid, err := strconv.Atoi(fx.call("fs__act", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the process group is %d, %v; want %d", group, err, pid)
	}
	if err := fx.loader.UnloadModule(t.Context(), "fs"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the program is still running: %v", err)
	}
}
