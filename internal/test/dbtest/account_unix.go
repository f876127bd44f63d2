//go:build unix

package dbtest

import "syscall"

// runAs makes a program start as another user.
func runAs(attributes *syscall.SysProcAttr, o owner) {
	attributes.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
}
