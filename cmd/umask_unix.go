//go:build unix

package cmd

import (
	"sync"
	"syscall"
)

// umask returns the umask with which this process started. A system call can only read it
// by setting it, so new files are private to this user for that moment.
var umask = sync.OnceValue(func() int {
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return mask
})
