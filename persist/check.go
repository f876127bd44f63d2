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

// Check reads everything: the file's own structure, every frame, the index
// against the log, and that whoever has mail is runnable. It names all it finds.
// Commits wait meanwhile: bolt can look at its free pages only between them.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return guarded(s.check)
}

func (s *Store) check() error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return closedError(err)
	}
	defer tx.Rollback() // nothing was written
	var faults []error
	for err := range tx.Check() {
		faults = append(faults, err)
	}
	faults = append(faults, checkFrames(tx)...)
	faults = append(faults, s.checkIndex(tx)...)
	faults = append(faults, checkRunnable(tx)...)
	faults = append(faults, checkEvents(tx)...)
	return errors.Join(faults...)
}

func checkFrames(tx *bolt.Tx) []error {
	l, err := readLedger(tx)
	if err != nil {
		return []error{err}
	}
	var faults []error
	f := scanResult{schema: schema, ledger: l}
	for i, bucket := range layout {
		for key, value := range under(tx.Bucket(bucket.name), nil) {
			f.holds[i].add(key)
			if _, err := unframe(bucket.name, key, bucket.kind, value); err != nil {
				faults = append(faults, err)
			}
		}
	}
	if err := f.check(); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// checkIndex compares the places the index and memory know with the log, up
// to the last event that memory knows: it follows a commit that is on disk.
func (s *Store) checkIndex(tx *bolt.Tx) []error {
	var known []uint64
	s.mu.RLock()
	last := s.ledger.seq
	for _, seqs := range s.tail {
		known = append(known, seqs...)
	}
	s.mu.RUnlock()
	for _, value := range under(tx.Bucket(bucketIndex), nil) {
		if seqs, err := unpack(value[min(frameHead, len(value)):]); err == nil {
			known = append(known, seqs...)
		}
	}
	var logged []uint64
	for key := range under(tx.Bucket(bucketLog), nil) {
		if len(key) == 8 { // checkFrames names the others
			logged = append(logged, number(key))
		}
	}
	later := func(seq uint64) bool { return seq > last }
	slices.Sort(known)
	known, logged = slices.DeleteFunc(slices.Compact(known), later), slices.DeleteFunc(logged, later)
	if !slices.Equal(known, logged) {
		return []error{fmt.Errorf("the index knows %d events, the log has %d, or they differ", len(known), len(logged))}
	}
	return nil
}

func checkRunnable(tx *bolt.Tx) []error {
	var faults []error
	runnable := tx.Bucket(bucketRunnable)
	for key, value := range under(tx.Bucket(bucketInbox), nil) {
		if _, err := unframe(bucketInbox, key, kindMessage, value); err != nil {
			continue // checkFrames names it
		}
		if owner := key[:1+int(key[0])]; runnable.Get(owner) == nil {
			faults = append(faults, fmt.Errorf("agent %q has mail and is not runnable", identity.AgentID(owner[1:])))
		}
	}
	return faults
}

func checkEvents(tx *bolt.Tx) []error {
	var faults []error
	for key, value := range under(tx.Bucket(bucketLog), nil) {
		if payload, err := unframe(bucketLog, key, kindEvent, value); err == nil && !gjson.ValidBytes(payload) {
			faults = append(faults, fmt.Errorf("event %d is not JSON", number(key)))
		}
	}
	return faults
}
