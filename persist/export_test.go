package persist

import (
	"bytes"

	bolt "go.etcd.io/bbolt"
)

// Recount makes the ledger fit what a file holds, for tests that change one
// behind the store's back.
func Recount(tx *bolt.Tx) error {
	l, err := readLedger(tx)
	if err != nil {
		return err
	}
	l.buckets = bucketSums{}
	for i, b := range layout {
		for key := range under(tx.Bucket(b.name), nil) {
			l.buckets[i].add(key)
		}
	}
	return writeLedger(tx, l)
}

// Inspect goes through the pages of a file as Open does.
func Inspect(file []byte) error {
	_, err := inspect(bytes.NewReader(file), int64(len(file)))
	return err
}
