package persist

import (
	"errors"
	"os"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// rereadMetaPages makes the kernel read the meta pages of a file from the disk again. After
// a failed fsync the kernel keeps showing the content that it could not write, also to the
// next process. That process would continue from a commit that is not on disk. All other
// pages are synced before the meta page that refers to them.
func rereadMetaPages(path string) error {
	f, err := os.Open(path)
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

// lockDraft locks a file until it is closed, unless another process has locked it. The lock is of
// another kind than the locks of bbolt, which opens drafts to check them.
func lockDraft(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errDraftInUse
	}
	if err != nil {
		return errors.ErrUnsupported // by the file system
	}
	return nil
}

var errDraftInUse = errors.New("another process uses the draft")
