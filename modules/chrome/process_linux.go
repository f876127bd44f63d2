package chrome

import "syscall"

// newSession returns the attributes of a program that signals of a terminal do not reach.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (h *hostProcess) pause()  { h.Signal(syscall.SIGSTOP) }
func (h *hostProcess) resume() { h.Signal(syscall.SIGCONT) }
