package e2e_test

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// ownGroup returns nil: there are no process groups of this kind.
func ownGroup() *syscall.SysProcAttr { return nil }

// killGroup kills the program alone.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// lockFile waits until no other process holds the lock of f.
func lockFile(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped))
}
