package chrome

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup puts a program into a process group of its own, which ends with us.
func ownProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends the browser's process group.
func (p *process) kill() { p.group.Signal(syscall.SIGKILL) }
