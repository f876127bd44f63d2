//go:build unix && !linux

package mcpclient

import "syscall"

// ownGroup starts a program in a group of its own. Here it is told that we
// have died by the end of its input.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
