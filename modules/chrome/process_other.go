//go:build !linux

package chrome

import "os/exec"

// newProcessGroup does nothing here: the browser ends when its pipe is closed.
func newProcessGroup(*exec.Cmd) {}

// kill kills the browser process.
func (p *process) kill() { _ = p.cmd.Process.Kill() }
