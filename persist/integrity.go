package persist

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
)

// bucketSum is the number of keys of a bucket and the sum of their hashes. It reveals keys
// that were added or lost by damage. The sum can be updated in constant time.
type bucketSum struct{ count, sum uint64 }

func (t *bucketSum) add(key []byte)    { t.count++; t.sum += hashOf(key) }
func (t *bucketSum) remove(key []byte) { t.count--; t.sum -= hashOf(key) }

// hashOf returns the FNV-1a hash of a key.
func hashOf(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range key {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// bucketSums are the sums of the buckets in the order of layout.
type bucketSums [len(layout)]bucketSum

// integrityRecord holds the last sequence number and a sum for each bucket. It is written
// with every commit.
type integrityRecord struct {
	seq     uint64 // the last sequence number, of an event or a message
	indexed uint64 // the last event that the index bucket covers
	buckets bucketSums
}

const integritySize = 8 * (2 + 2*len(layout))

// marshal encodes the record: all numbers in order, big endian.
func (r *integrityRecord) marshal() []byte {
	out := make([]byte, 0, integritySize)
	out = binary.BigEndian.AppendUint64(out, r.seq)
	out = binary.BigEndian.AppendUint64(out, r.indexed)
	for _, t := range r.buckets {
		out = binary.BigEndian.AppendUint64(out, t.count)
		out = binary.BigEndian.AppendUint64(out, t.sum)
	}
	return out
}

// parseIntegrity decodes the frame of an integrity record.
func parseIntegrity(frame []byte) (*integrityRecord, error) {
	payload, err := unframe(bucketPersist, keyIntegrity, kindNumber, frame)
	if err != nil {
		return nil, err
	}
	if len(payload) != integritySize {
		return nil, damaged("the integrity record has %d bytes", len(payload))
	}
	r := &integrityRecord{seq: number(payload), indexed: number(payload[8:])}
	for i := range r.buckets {
		at := payload[16*(i+1):]
		r.buckets[i] = bucketSum{number(at), number(at[8:])}
	}
	return r, nil
}

func readIntegrity(tx *bolt.Tx) (*integrityRecord, error) {
	f := tx.Bucket(bucketPersist).Get(keyIntegrity)
	if f == nil {
		return nil, damaged("the integrity record is missing")
	}
	return parseIntegrity(f)
}

func writeIntegrity(tx *bolt.Tx, r *integrityRecord) error {
	return tx.Bucket(bucketPersist).Put(keyIntegrity, frame(bucketPersist, keyIntegrity, kindNumber, r.marshal()))
}

// check compares the entries that the scan has counted with the integrity record.
func (f *scanResult) check() error {
	switch {
	case f.schema == 0:
		return damaged("it has no schema number")
	case f.schema < schemaIntegrity && f.integrity != nil:
		return damaged("it has an integrity record and schema %d", f.schema)
	case f.schema < schemaIntegrity:
		return nil
	case f.integrity == nil:
		return damaged("the integrity record is missing")
	}
	for i, b := range layout {
		if got, want := f.sums[i], f.integrity.buckets[i]; got != want {
			return damaged("bucket %s has %d entries that differ from the %d that were written", b.name, got.count, want.count)
		}
	}
	return nil
}

func errNewerSchema(got uint64) error {
	return errcode.New(errcode.Conflict, "the data directory has schema %d, this version of rolecall supports %d; use the version that wrote it", got, schema)
}
