package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
)

// CheckIntegrity checks the whole file: the pages, all frames, the index against the log,
// and that all agents with messages are runnable. The error lists everything it finds.
// Commits wait until it returns, because bbolt checks its free pages only between
// transactions.
func (s *Store) CheckIntegrity(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return catchPageFault(s.check)
}

func (s *Store) check() error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return closedError(err)
	}
	defer tx.Rollback() // nothing was written
	var errs []error
	for err := range tx.Check() {
		errs = append(errs, err)
	}
	errs = append(errs, checkFrames(tx)...)
	errs = append(errs, s.checkIndex(tx)...)
	errs = append(errs, checkRunnable(tx)...)
	errs = append(errs, checkEvents(tx)...)
	return errors.Join(errs...)
}

// checkFrames checks all frames, and the entries of the buckets against the integrity
// record.
func checkFrames(tx *bolt.Tx) []error {
	r, err := readIntegrity(tx)
	if err != nil {
		return []error{err}
	}
	var errs []error
	f := scanResult{schema: schema, tx: r.tx, integrity: r}
	for i, bucket := range layout {
		for key, value := range withPrefix(tx.Bucket(bucket.name), nil) {
			f.sums[i].add(hashEntry(key, value))
			if _, err := unframe(bucket.name, key, bucket.kind, value); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if err := f.check(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// checkIndex compares the sequence numbers in the index and in memory with the log, up to
// the last commit that memory knows. Memory is updated after the file, so the log may have
// later events.
func (s *Store) checkIndex(tx *bolt.Tx) []error {
	var known []uint64
	s.mu.RLock()
	last := s.integrity.seq
	for _, seqs := range s.tail {
		known = append(known, seqs...)
	}
	s.mu.RUnlock()
	for _, value := range withPrefix(tx.Bucket(bucketIndex), nil) {
		if seqs, err := unpackSeqs(value[min(frameHead, len(value)):]); err == nil {
			known = append(known, seqs...)
		}
	}
	var logged []uint64
	for key := range withPrefix(tx.Bucket(bucketLog), nil) {
		if len(key) == 8 { // checkFrames reports the others
			logged = append(logged, decodeNumber(key))
		}
	}
	later := func(seq uint64) bool { return seq > last }
	slices.Sort(known)
	known, logged = slices.DeleteFunc(slices.Compact(known), later), slices.DeleteFunc(logged, later)
	if !slices.Equal(known, logged) {
		return []error{fmt.Errorf("the index has %d events and the log %d, or they differ", len(known), len(logged))}
	}
	return nil
}

// checkRunnable checks that all agents with messages are runnable.
func checkRunnable(tx *bolt.Tx) []error {
	var errs []error
	runnable := tx.Bucket(bucketRunnable)
	for key, value := range withPrefix(tx.Bucket(bucketInbox), nil) {
		if _, err := unframe(bucketInbox, key, kindMessage, value); err != nil {
			continue // checkFrames reports it
		}
		if owner := key[:1+int(key[0])]; runnable.Get(owner) == nil {
			errs = append(errs, fmt.Errorf("agent %q has messages and is not runnable", identity.AgentID(owner[1:])))
		}
	}
	return errs
}

// checkEvents checks that all events are JSON.
func checkEvents(tx *bolt.Tx) []error {
	var errs []error
	for key, value := range withPrefix(tx.Bucket(bucketLog), nil) {
		if payload, err := unframe(bucketLog, key, kindEvent, value); err == nil && !gjson.ValidBytes(payload) {
			errs = append(errs, fmt.Errorf("event %d is not JSON", decodeNumber(key)))
		}
	}
	return errs
}
