//go:build unix

package mcp

import "syscall"

// askGroup asks a program and its children to end; killGroup ends them.
func askGroup(pid int)  { _ = syscall.Kill(-pid, syscall.SIGTERM) }
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
