package procgroup_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/internal/procgroup"
)

// started starts a shell in a group of its own and gives its first line.
func started(t *testing.T, script string) (*procgroup.Group, string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	cmd.Stdout = out
	err = cmd.Start()
	out.Close()
	if err != nil {
		t.Fatal(err)
	}
	g := procgroup.Of(cmd)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return g, strings.TrimSpace(line)
}

// alive says whether a process runs; one that nobody reaped does not.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

func TestWhoIsLeftEndsWithTheLeader(t *testing.T) {
	g, child := started(t, "sleep 600 >/dev/null & echo $!; exit 3")
	err := g.Wait()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 3 {
		t.Errorf("got %v, want status 3", err)
	}
	for try := 0; alive(t, child); try++ { // it was killed, and dies in its own time
		if try > 1e7 {
			t.Fatalf("process %s lives on", child)
		}
	}
}

func TestASignalReachesAllAndLaterNobody(t *testing.T) {
	g, _ := started(t, "sleep 600 >/dev/null & echo $$; wait")
	g.Signal(syscall.SIGTERM)
	if err := g.Wait(); err == nil {
		t.Error("it ended well")
	}
	g.Signal(syscall.SIGKILL) // to a number that is another's now, or nobody's
}

// A group whose number was given away is not signalled.
func TestANumberThatIsAnothersIsLeftAlone(t *testing.T) {
	g, pid := started(t, "echo $$")
	_ = g.Wait()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	heir := exec.Command("/bin/sleep", "600")
	heir.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(number-1)), 0) != nil || heir.Start() != nil {
		t.Skip("the next process cannot be given a number here")
	}
	defer heir.Wait()
	defer heir.Process.Kill()
	if heir.Process.Pid != number {
		t.Skipf("the number %d went to somebody else", number)
	}
	g.Signal(syscall.SIGKILL)
	if !alive(t, pid) {
		t.Error("another's process was killed")
	}
}
