//go:build !linux

package chrome

import "syscall"

// newSession does nothing here.
func newSession() *syscall.SysProcAttr { return nil }

func (h *hostProcess) pause()  {}
func (h *hostProcess) resume() {}
