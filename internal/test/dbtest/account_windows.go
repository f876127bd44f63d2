package dbtest

import "syscall"

// runAs does nothing: user ids do not exist here, so nobody calls it.
func runAs(*syscall.SysProcAttr, uint32, uint32) {}
