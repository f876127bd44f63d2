package procgroup

import "syscall"

// signal does nothing: Windows has no process groups of this kind.
func signal(int, syscall.Signal) {}

func killRest(*Group) {}
