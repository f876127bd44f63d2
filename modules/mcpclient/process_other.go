//go:build unix && !linux

package mcpclient

import "syscall"

// ownGroup starts a program in a new process group. When this process ends, the program
// notices only by the end of its stdin.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
