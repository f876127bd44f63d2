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

// A program dies with us, also when we are killed and it does not care for the
// end of its input.
func TestAProgramDiesWithUs(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(program, "-test.run=^TestParent$")
	parent.Env = append(os.Environ(), parentMode+"=1")
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
			t.Fatalf("it lives on: %d, %v", n, err)
		}
		return
	}
}

// parentMode is the variable that makes TestParent the parent of a server.
const parentMode = "TEST_MCP_PARENT"

// TestParent is the process that TestAProgramDiesWithUs kills.
func TestParent(t *testing.T) {
	if os.Getenv(parentMode) == "" {
		return // not started by TestAProgramDiesWithUs: there is nothing to test
	}
	k := newKit(t)
	k.load(k.child("fs", "stays"))
	_, err := os.Stdout.WriteString("\nCHILD " + k.call("fs__act", `{}`) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	<-t.Context().Done() // it is killed before
}

// A program that is unloaded is gone, with its process group.
func TestAnUnloadedProgramIsGone(t *testing.T) {
	k := newKit(t)
	k.load(k.child("fs", "stays"))
	pid, err := strconv.Atoi(k.call("fs__act", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("its process group is %d, %v", group, err)
	}
	if err := k.loader.Unload(t.Context(), "fs"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it is still there: %v", err)
	}
}
