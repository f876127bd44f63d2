//go:build unix && !linux

package procgroup

import (
	"os"
	"syscall"
)

// Attributes start a program in a new process group. The program notices the end of this
// process only by its closed stdin.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signal(leader *os.Process, s syscall.Signal) { _ = syscall.Kill(-leader.Pid, s) }

// killRest does nothing: these systems do not report the end of the leader before its
// id can be reused.
func killRest(*Group) {}
