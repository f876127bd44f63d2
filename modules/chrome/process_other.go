//go:build !linux

package chrome

import "os/exec"

// ownProcessGroup does nothing here: the browser ends when its pipe is closed.
func ownProcessGroup(*exec.Cmd) {}

// kill ends the browser.
func (p *process) kill() { _ = p.cmd.Process.Kill() }
