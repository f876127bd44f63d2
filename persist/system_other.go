//go:build !linux

package persist

import bolt "go.etcd.io/bbolt"

// freeBytes is not implemented for this system: a copy without enough space fails.
func freeBytes(string) (uint64, error) { return 1 << 62, nil }

// rereadMetaPages is not implemented for this system.
func rereadMetaPages(string) error { return nil }

// dropPageCache is not implemented for this system.
func dropPageCache(*bolt.DB, *bolt.Tx) {}
