package dbtest

import "syscall"

// runAs is not called: Windows has no user ids, so a server has no owner.
func runAs(*syscall.SysProcAttr, owner) {}
