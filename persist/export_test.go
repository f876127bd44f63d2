package persist

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/journal"
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

// ChunkSizes returns the number of events, and of entries, of the first chunk of the log.
func ChunkSizes(ctx context.Context, s *Store, match journal.EventFilter) (events, entries int, err error) {
	part, err := s.laterChunk(ctx, 0, match)
	return len(part.events), len(part.seqs), err
}

// FetchSize returns the number of events that one transaction reads of those with the given
// sequence numbers.
func FetchSize(ctx context.Context, s *Store, seqs []uint64) (int, error) {
	events, err := s.fetchEvents(ctx, seqs)
	return len(events), err
}
