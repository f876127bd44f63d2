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

// isolationStep is one step of entering the sandbox, and the layer and the kernel
// feature that are missing if it fails.
type isolationStep struct {
	apply          func(*spec) error
	layer, missing string
}

// isolationSteps returns the steps in order. Each needs rights that later steps
// take away.
func isolationSteps() []isolationStep {
	return []isolationStep{
		{closeInheritedFDs, layerNamespaces, "close_range (Linux 5.11 or later)"},
		{hideControlGroups, layerNamespaces, ""}, // best effort: it never fails
		{bringUpLoopback, layerNamespaces, "a network namespace with a loopback"},
		{sendListener, layerNamespaces, "a port on the loopback"},
		{newRoot, layerRoot, "a root file system in a mount namespace (Linux 5.12 or later)"},
		{requireProcessLimit, layerLimits, "a limit on the number of processes"},
		{applyLandlock, layerLandlock, "Landlock (Linux 5.13 or later, with landlock among the security modules)"},
		{dropCapabilities, layerCapabilities, "a process without capabilities"},
		{applySeccomp, layerSeccomp, "seccomp filters"},
		{applyRlimits, layerLimits, "resource limits"}, // last: the other steps need memory
	}
}

// unsandboxedSteps returns the steps of a job without a sandbox.
func unsandboxedSteps() []isolationStep {
	return []isolationStep{{chdirWorkspace, "", "the workspace"}, {applyRlimits, layerLimits, "resource limits"}}
}

// runAsJob turns this process into the job it was started for. A failure is
// reported to the starter over the report pipe. The returned error means that
// the report itself could not be sent.
func runAsJob() error {
	runtime.LockOSThread() // the restrictions apply to this thread and what it executes
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(reportFD)
	to := os.NewFile(reportFD, "report")
	text, err := json.Marshal(isolateAndExec(os.NewFile(specFD, "spec"), to))
	if err == nil {
		_, err = to.Write(text)
	}
	if err == nil {
		os.Exit(1)
	}
	return err
}

// isolateAndExec reads the spec, applies the isolation steps and starts the
// program. It returns only on failure.
func isolateAndExec(from, to *os.File) report {
	var s spec
	if err := json.NewDecoder(from).Decode(&s); err != nil {
		return report{Cause: "read sandbox job: " + err.Error()}
	}
	steps := isolationSteps()
	if s.Unsandboxed {
		steps = unsandboxedSteps()
	}
	for _, step := range steps {
		if err := step.apply(&s); err != nil {
			return report{Missing: step.missing, Layer: step.layer, Cause: err.Error()}
		}
	}
	return s.exec(to)
}

// exec starts the program. An unsandboxed job is replaced by it; a sandboxed one
// supervises it. It returns only on failure.
func (s *spec) exec(to *os.File) report {
	path, argv := insideBinary, []string{argProgram, s.Program}
	if s.Unsandboxed {
		path = s.Binary
	}
	if s.Program == "" {
		found, err := s.lookPath(s.Argv[0])
		if err != nil {
			return report{Cause: err.Error(), Exit: execExitCode(err)}
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
	return report{Cause: argv[0] + ": " + err.Error(), Exit: execExitCode(err)}
}

// supervise starts the program as a child; this process stays the init process
// of the pid namespace. When the starter ends, the kernel kills this process
// (PDEATHSIG), and so the namespace. A program that is init could switch this
// off. supervise returns only if the program does not start.
func (s *spec) supervise(path string, argv []string, to *os.File) error {
	program, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: s.Env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	_ = to.Close() // tells the starter that the program runs
	os.Exit(reap(program))
	return nil
}

// reap waits for all children, because orphans are reparented to this process. It
// returns the exit code of the program once that has ended.
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

// lookPath looks up a program in the PATH of the job, as a shell does. It
// replaces the environment of this process.
func (s *spec) lookPath(name string) (string, error) {
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

// execExitCode returns the exit codes of a shell: 127 for a program that was not found, 126 for a
// program that cannot be executed.
func execExitCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}
