package mcpclient

import "syscall"

// ownGroup starts a program in a new process group. The kernel kills the program when this
// process ends, also by SIGKILL.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
