package persist

import (
	"errors"
	"os"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// freeBytes is how much room the disk of a folder has for an ordinary user.
func freeBytes(folder string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// reread has the kernel read the two beginnings of a file from the disk again.
// After an fsync that failed it goes on showing what it could not write, also to
// the next process, which would build upon a commit that is not there. All else
// that a beginning names was synced before it.
func reread(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil // who opens it says what is wrong
	}
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, around, unix.FADV_DONTNEED), f.Close())
}

// around is what the kernel may keep together with the beginnings: it lets a
// piece of memory go whole or not at all.
const around = 8 << 20

// dropPageCache takes the pages that were read out of this process's memory: they stay
// in the kernel's.
func dropPageCache(db *bolt.DB, tx *bolt.Tx) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, db.Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED)
}
