//go:build linux || darwin

package persist

import (
	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/journal"
)

// diskSpace returns the disk space of a directory for an ordinary user.
func diskSpace(folder string) (journal.DiskSpace, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return journal.DiskSpace{}, err
	}
	size := uint64(s.Bsize)
	return journal.DiskSpace{Free: s.Bavail * size, Total: s.Blocks * size}, nil
}
