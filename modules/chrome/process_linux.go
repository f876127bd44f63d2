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

// newSession returns the attributes of a program that signals of a terminal do not reach.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (h *hostProcess) pause()  { h.Signal(syscall.SIGSTOP) }
func (h *hostProcess) resume() { h.Signal(syscall.SIGCONT) }
func (h *hostProcess) kill()   { h.Signal(syscall.SIGKILL) }
