//go:build unix

package dbtest

import "syscall"

// runAs has a program start as another user.
func runAs(attributes *syscall.SysProcAttr, uid, gid uint32) {
	attributes.Credential = &syscall.Credential{Uid: uid, Gid: gid}
}
