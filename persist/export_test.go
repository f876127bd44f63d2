package persist

import (
	"bytes"

	bolt "go.etcd.io/bbolt"
)

// Recount makes the integrity record match the entries of a file, for tests that edit the
// file directly.
func Recount(tx *bolt.Tx) error {
	r, err := readIntegrity(tx)
	if err != nil {
		return err
	}
	r.buckets = bucketSums{}
	for i, b := range layout {
		for key, value := range withPrefix(tx.Bucket(b.name), nil) {
			r.buckets[i].add(hashEntry(key, value))
		}
	}
	return writeIntegrity(tx, r)
}

// NumberCommit changes the transaction in the integrity record.
func NumberCommit(tx *bolt.Tx, number uint64) error {
	r, err := readIntegrity(tx)
	if err != nil {
		return err
	}
	r.tx = number
	return tx.Bucket(bucketPersist).Put(keyIntegrity, frame(bucketPersist, keyIntegrity, kindNumber, r.marshal()))
}

// Inspect scans the pages of a file as Open does.
func Inspect(file []byte) error {
	_, err := inspect(bytes.NewReader(file), int64(len(file)))
	return err
}
