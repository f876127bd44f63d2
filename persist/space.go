package persist

import (
	"errors"
	"fmt"

	"github.com/rolecall/rolecall/journal"
)

var _ journal.DiskStore = (*Store)(nil)

// DiskSpace implements journal.DiskStore, with the space of the disk of the data
// directory. It makes one system call.
func (s *Store) DiskSpace() (journal.DiskSpace, error) {
	space, err := diskSpace(s.dir)
	if err == nil && space.Total == 0 { // some network and FUSE file systems
		err = errors.ErrUnsupported
	}
	if err != nil {
		return journal.DiskSpace{}, fmt.Errorf("read free space of the disk of %s: %w", s.dir, err)
	}
	return space, nil
}
