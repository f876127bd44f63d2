package persist

import (
	"errors"
	"os"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// freeBytes returns the free disk space of a directory for an ordinary user.
func freeBytes(folder string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// rereadMetaPages makes the kernel read the meta pages of a file from the disk again. After
// a failed fsync the kernel keeps showing what it could not write, also to the next
// process, which would continue from a commit that is not on disk. All other pages are
// synced before the meta page that refers to them.
func rereadMetaPages(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil // Open reports what is wrong
	}
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, dropRange, unix.FADV_DONTNEED), f.Close())
}

// dropRange is the number of bytes to drop from the page cache. The kernel may keep large
// folios in memory, and it drops one completely or not at all.
const dropRange = 8 << 20

// dropPageCache releases the memory-mapped pages of this process. They stay in the page
// cache of the kernel.
func dropPageCache(db *bolt.DB, tx *bolt.Tx) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, db.Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED)
}
