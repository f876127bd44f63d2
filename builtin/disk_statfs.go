//go:build linux || darwin || freebsd

package builtin

import "syscall"

// freeDisk returns the free bytes of the file system that contains dir. ok is
// false if they are unknown.
func freeDisk(dir string) (free uint64, ok bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), true
}
