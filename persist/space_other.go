//go:build !linux && !darwin

package persist

import (
	"errors"

	"github.com/rolecall/rolecall/journal"
)

// diskSpace is not implemented for this system.
func diskSpace(string) (journal.DiskSpace, error) {
	return journal.DiskSpace{}, errors.ErrUnsupported
}
