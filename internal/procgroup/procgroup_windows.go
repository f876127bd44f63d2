package procgroup

import (
	"os"
	"syscall"
)

// Attributes return nil: Windows has no process groups of this kind. The program notices
// the end of this process only by its closed stdin.
func Attributes() *syscall.SysProcAttr { return nil }

// signal ends the leader alone, whatever the signal.
func signal(leader *os.Process, _ syscall.Signal) { _ = leader.Kill() }

func killRest(*Group) {}
