package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolationStep is one step on the way inside, and what the system lacks if it fails.
type isolationStep struct {
	apply   func(*spec) error
	missing string
}

// isolationSteps lists the steps in their order: each needs rights that later ones
// take away.
func isolationSteps() []isolationStep {
	return []isolationStep{
		{closeInheritedFDs, "close_range (Linux 5.11 or later)"},
		{bringUpLoopback, "a network namespace with a loopback"},
		{newRoot, "a root of its own in a mount namespace (Linux 5.12 or later)"},
		{limitProcesses, "a bound on the number of processes"},
		{applyLandlock, "Landlock (Linux 5.13 or later, with landlock among the security modules)"},
		{dropCapabilities, "a process without capabilities"},
		{applySeccomp, "seccomp filters"},
		{applyRlimits, "resource limits"}, // last: the others want memory
	}
}

// unsandboxedSteps is what holds for a job that runs open.
func unsandboxedSteps() []isolationStep {
	return []isolationStep{{enterOpen, "the workspace"}, {applyRlimits, "resource limits"}}
}

// runAsJob makes this process the job it was started for. What stands in the
// way goes to the starter; the error is that even this failed.
func runAsJob() error {
	runtime.LockOSThread() // the walls are this thread's, and those of what it becomes
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(reportFD)
	to := os.NewFile(reportFD, "report")
	text, err := json.Marshal(enter(os.NewFile(specFD, "spec"), to))
	if err == nil {
		_, err = to.Write(text)
	}
	if err == nil {
		os.Exit(1)
	}
	return err
}

// enter builds the walls and becomes the program; it returns why it could not.
func enter(from, to *os.File) report {
	var s spec
	if err := json.NewDecoder(from).Decode(&s); err != nil {
		return report{Cause: "read the job: " + err.Error()}
	}
	list := isolationSteps()
	if s.Unsandboxed {
		list = unsandboxedSteps()
	}
	for _, w := range list {
		if err := w.apply(&s); err != nil {
			return report{Missing: w.missing, Cause: err.Error()}
		}
	}
	return s.exec(to)
}

// exec runs the program: an open job becomes it, a walled one looks after it.
func (s *spec) exec(to *os.File) report {
	path, argv := insideBinary, []string{argProgram, s.Program}
	if s.Unsandboxed {
		path = s.Binary
	}
	if s.Program == "" {
		found, err := s.find(s.Argv[0])
		if err != nil {
			return report{Cause: err.Error(), Exit: exitNotFound(err)}
		}
		path, argv = found, s.Argv
	}
	if _, err := to.WriteString(ready); err != nil {
		return report{Cause: err.Error()}
	}
	var err error
	if s.Unsandboxed {
		err = unix.Exec(path, argv, s.Env)
	} else {
		err = s.supervise(path, argv, to)
	}
	return report{Cause: argv[0] + ": " + err.Error(), Exit: exitNotFound(err)}
}

// supervise starts the program below this process, which stays the first of
// its namespace: when the starter ends, the kernel ends this process, and with
// it all others. The program itself could not be trusted to keep that so. It
// returns only if the program does not start.
func (s *spec) supervise(path string, argv []string, to *os.File) error {
	program, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: s.Env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	_ = to.Close() // the starter goes on
	os.Exit(reap(program))
	return nil
}

// reap waits for all that end, since those that have lost their parent are
// ours, and gives the program's exit code.
func reap(program int) int {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case ended == program && status.Signaled():
			return 128 + int(status.Signal())
		case ended == program && status.Exited():
			return status.ExitStatus()
		case err != nil && err != unix.EINTR:
			return 1
		}
	}
}

// find looks a program up as a shell would.
func (s *spec) find(name string) (string, error) {
	os.Clearenv()
	for _, pair := range s.Env {
		if path, ok := strings.CutPrefix(pair, "PATH="); ok {
			os.Setenv("PATH", path)
		}
	}
	found, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrDot):
		return found, nil
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%w, which is %s", err, os.Getenv("PATH"))
	}
	return found, err
}

// exitNotFound gives a shell's codes for programs that are not there, or that
// cannot be run.
func exitNotFound(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}
