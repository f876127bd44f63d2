//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// mountNamespaceEnv marks a process that runs in its own mount namespace.
const mountNamespaceEnv = "ROLECALL_MOUNT_NAMESPACE"

// runInMountNamespace runs this program again in a mount namespace of its own, so that
// its mounts disappear however it ends, and returns the exit status. done is false
// without root, or in a process that already has a namespace.
func runInMountNamespace() (status int, done bool) {
	self, err := os.Executable()
	if err != nil || os.Geteuid() != 0 || os.Getenv(mountNamespaceEnv) != "" {
		return 0, false
	}
	runtime.LockOSThread() // Pdeathsig applies to the thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), mountNamespaceEnv+"=1")
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
