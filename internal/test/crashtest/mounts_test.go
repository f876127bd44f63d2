package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// ownMounts marks the process whose mounts nobody else sees.
const ownMounts = "ROLECALL_OWN_MOUNTS"

// amongOwnMounts runs this program once more with mounts of its own, which go
// when it ends, however it ends, and gives its exit status. It says false where
// that cannot be had or has been done.
func amongOwnMounts() (status int, done bool) {
	self, err := os.Executable()
	if err != nil || os.Geteuid() != 0 || os.Getenv(ownMounts) != "" {
		return 0, false
	}
	runtime.LockOSThread() // Pdeathsig is about the thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, false
	}
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		fmt.Fprintln(os.Stderr, err)
	}
	return max(cmd.ProcessState.ExitCode(), -cmd.ProcessState.ExitCode()), true
}
