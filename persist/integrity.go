package persist

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
)

// bucketSum is the number of entries of a bucket and the sum of their hashes. It reveals
// entries that were added, lost or exchanged for earlier ones. The sum can be updated in
// constant time.
type bucketSum struct{ count, sum uint64 }

// add and remove take the hash of an entry.
func (s *bucketSum) add(hash uint64)    { s.count++; s.sum += hash }
func (s *bucketSum) remove(hash uint64) { s.count--; s.sum -= hash }

// hashKey returns the FNV-1a hash of a key.
func hashKey(key []byte) uint64 { return extendHash(14695981039346656037, key) }

// extendHash continues an FNV-1a hash.
func extendHash(h uint64, data []byte) uint64 {
	for _, b := range data {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// hashEntry returns a hash of an entry: its key and the head of its frame. The head
// contains a checksum of the rest.
func hashEntry(key, frame []byte) uint64 {
	h := extendHash(hashKey(key), frame[:min(frameHead, len(frame))])
	h = (h ^ h>>33) * 0xff51afd7ed558ccd // mixes, so that sums of exchanged values differ
	return h ^ h>>33
}

// bucketSums are the sums of the buckets in the order of layout.
type bucketSums [len(layout)]bucketSum

// integrityRecord holds the last sequence number and a sum for each bucket. Every commit
// writes it, in the same transaction. Open counts the entries again and compares.
type integrityRecord struct {
	seq     uint64 // the last sequence number, of an event or a message
	indexed uint64 // the last event that the index bucket covers
	buckets bucketSums
	tx      uint64 // the number of the transaction that wrote the record; 0 before schema 3
}

// The sizes of an integrity record.
const (
	integritySize2 = 8 * (2 + 2*len(layout)) // of schema 2
	integritySize  = integritySize2 + 8
)

// marshal encodes the record: all numbers in order, big endian.
func (r *integrityRecord) marshal() []byte {
	out := make([]byte, 0, integritySize)
	out = binary.BigEndian.AppendUint64(out, r.seq)
	out = binary.BigEndian.AppendUint64(out, r.indexed)
	for _, t := range r.buckets {
		out = binary.BigEndian.AppendUint64(out, t.count)
		out = binary.BigEndian.AppendUint64(out, t.sum)
	}
	return binary.BigEndian.AppendUint64(out, r.tx)
}

// parseIntegrity decodes the frame of an integrity record.
func parseIntegrity(frame []byte) (*integrityRecord, error) {
	payload, err := unframe(bucketPersist, keyIntegrity, kindNumber, frame)
	if err != nil {
		return nil, err
	}
	if len(payload) != integritySize && len(payload) != integritySize2 {
		return nil, damagedError("the integrity record has %d bytes", len(payload))
	}
	r := &integrityRecord{seq: decodeNumber(payload), indexed: decodeNumber(payload[8:])}
	for i := range r.buckets {
		at := payload[16*(i+1):]
		r.buckets[i] = bucketSum{decodeNumber(at), decodeNumber(at[8:])}
	}
	if len(payload) == integritySize {
		r.tx = decodeNumber(payload[integritySize2:])
	}
	return r, nil
}

func readIntegrity(tx *bolt.Tx) (*integrityRecord, error) {
	f := tx.Bucket(bucketPersist).Get(keyIntegrity)
	if f == nil {
		return nil, damagedError("the integrity record is missing")
	}
	return parseIntegrity(f)
}

// writeIntegrity writes the record with the number of its transaction.
func writeIntegrity(tx *bolt.Tx, r *integrityRecord) error {
	r.tx = uint64(tx.ID())
	return tx.Bucket(bucketPersist).Put(keyIntegrity, frame(bucketPersist, keyIntegrity, kindNumber, r.marshal()))
}

// check compares the entries that the scan has counted with the integrity record.
func (r *scanResult) check() error {
	switch {
	case r.schema == 0:
		return damagedError("it has no schema number")
	case r.schema < schemaIntegrity && r.integrity != nil:
		return damagedError("it has an integrity record and schema %d", r.schema)
	case r.schema < schemaIntegrity:
		return nil
	case r.integrity == nil:
		return damagedError("the integrity record is missing")
	}
	sums := r.sums
	if r.schema < schemaContents {
		sums = r.keySums
	}
	for i, b := range layout {
		if got, want := sums[i], r.integrity.buckets[i]; got != want {
			return damagedError("bucket %s has %d entries that differ from the %d that were written", b.name, got.count, want.count)
		}
	}
	if r.schema >= schemaContents && r.integrity.tx != r.tx {
		return damagedError("its last commit is %d and its contents are those of commit %d", r.tx, r.integrity.tx)
	}
	return nil
}

// errNewerSchema is the error for a file that a newer version wrote.
func errNewerSchema(got uint64) error {
	return errcode.New(errcode.Conflict, "the data directory has schema %d, this version of rolecall supports %d; use the version that wrote it", got, schema)
}
