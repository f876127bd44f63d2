package mcpclient

import "syscall"

// ownGroup starts a program in a group of its own; it dies with us, however we
// do.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
