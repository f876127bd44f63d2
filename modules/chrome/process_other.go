//go:build !linux

package chrome

import "os/exec"

// apart does nothing here: the browser ends when its pipe is closed.
func apart(*exec.Cmd) {}

// kill ends the browser.
func (p *process) kill() { _ = p.cmd.Process.Kill() }
