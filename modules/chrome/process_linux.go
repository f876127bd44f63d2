package chrome

import (
	"os/exec"
	"syscall"
)

// newProcessGroup starts a program in a new process group. The kernel kills the program when
// this process ends.
func newProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill kills the browser's process group.
func (p *process) kill() { p.group.Signal(syscall.SIGKILL) }
