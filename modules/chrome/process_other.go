//go:build !linux

package chrome

import "os/exec"

// apart does nothing here: the browser ends when its pipe is closed.
func apart(*exec.Cmd) {}

// kill ends a program.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
