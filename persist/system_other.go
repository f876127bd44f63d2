//go:build !linux

package persist

import (
	"errors"
	"os"

	bolt "go.etcd.io/bbolt"
)

// rereadMetaPages is not implemented for this system.
func rereadMetaPages(string) error { return nil }

// dropPageCache is not implemented for this system.
func dropPageCache(*bolt.DB, *bolt.Tx) {}

// lockDraft would lock a file until it is closed. Without it drafts stay.
func lockDraft(*os.File) error { return errors.ErrUnsupported }
