//go:build !linux

package chrome

import (
	"os/exec"
	"syscall"
)

// newProcessGroup does nothing here: the browser ends when its pipe is closed.
func newProcessGroup(*exec.Cmd) {}

// newSession does nothing here.
func newSession() *syscall.SysProcAttr { return nil }

func (h *hostProcess) pause()  {}
func (h *hostProcess) resume() {}
func (h *hostProcess) kill()   { _ = h.cmd.Process.Kill() }
