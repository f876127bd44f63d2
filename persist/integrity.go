package persist

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
)

// bucketSum is how many keys a bucket has, and the sum of their hashes: a key that
// came or went without being written shows.
type bucketSum struct{ count, sum uint64 }

func (t *bucketSum) add(key []byte)    { t.count++; t.sum += hashOf(key) }
func (t *bucketSum) remove(key []byte) { t.count--; t.sum -= hashOf(key) }

// hashOf is FNV-1a.
func hashOf(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range key {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// bucketSums are the tallies of the buckets, as layout lists them.
type bucketSums [len(layout)]bucketSum

// integrityRecord is what a data file says of itself, written with every commit.
type integrityRecord struct {
	seq     uint64 // the last number given to an event or a message
	indexed uint64 // the last event the index covers
	buckets bucketSums
}

const ledgerSize = 8 * (2 + 2*len(layout))

func (l *integrityRecord) bytes() []byte {
	out := make([]byte, 0, ledgerSize)
	out = binary.BigEndian.AppendUint64(out, l.seq)
	out = binary.BigEndian.AppendUint64(out, l.indexed)
	for _, t := range l.buckets {
		out = binary.BigEndian.AppendUint64(out, t.count)
		out = binary.BigEndian.AppendUint64(out, t.sum)
	}
	return out
}

func parseLedger(frame []byte) (*integrityRecord, error) {
	payload, err := unframe(bucketPersist, keyLedger, kindNumber, frame)
	if err != nil {
		return nil, err
	}
	if len(payload) != ledgerSize {
		return nil, damaged("the ledger has %d bytes", len(payload))
	}
	l := &integrityRecord{seq: number(payload), indexed: number(payload[8:])}
	for i := range l.buckets {
		at := payload[16*(i+1):]
		l.buckets[i] = bucketSum{number(at), number(at[8:])}
	}
	return l, nil
}

func readLedger(tx *bolt.Tx) (*integrityRecord, error) {
	f := tx.Bucket(bucketPersist).Get(keyLedger)
	if f == nil {
		return nil, damaged("the ledger is gone")
	}
	return parseLedger(f)
}

func writeLedger(tx *bolt.Tx, l *integrityRecord) error {
	return tx.Bucket(bucketPersist).Put(keyLedger, frame(bucketPersist, keyLedger, kindNumber, l.bytes()))
}

// check holds what was counted against what was written.
func (f *scanResult) check() error {
	switch {
	case f.schema == 0:
		return damaged("it does not say its schema")
	case f.schema < schemaLedger && f.ledger != nil:
		return damaged("it has a ledger and says schema %d", f.schema)
	case f.schema < schemaLedger:
		return nil
	case f.ledger == nil:
		return damaged("the ledger is gone")
	}
	for i, b := range layout {
		if got, want := f.holds[i], f.ledger.buckets[i]; got != want {
			return damaged("bucket %s holds %d entries that are not the %d which were written", b.name, got.count, want.count)
		}
	}
	return nil
}

func errNewerSchema(got uint64) error {
	return errcode.New(errcode.Conflict, "the data directory has schema %d, this rolecall knows %d; use the version that wrote it", got, schema)
}
