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
func (s *Store) Check(ctx context.Context) error {
	return s.view(ctx, func(tx *bolt.Tx) error {
		var faults []error
		for err := range tx.Check() {
			faults = append(faults, err)
		}
		faults = append(faults, checkFrames(tx)...)
		faults = append(faults, s.checkIndex(tx)...)
		faults = append(faults, checkRunnable(tx)...)
		return errors.Join(faults...)
	})
}

func checkFrames(tx *bolt.Tx) []error {
	var faults []error
	kinds := map[string]byte{
		string(bucketLog): kindEvent, string(bucketIndex): kindIndex, string(bucketInbox): kindMessage,
		string(bucketDelayed): kindMessage, string(bucketRunnable): kindAgent, string(bucketRecords): kindRecord,
	}
	for name, kind := range kinds {
		for key, value := range under(tx.Bucket([]byte(name)), nil) {
			if _, err := unframe([]byte(name), key, kind, value); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return faults
}

// checkIndex compares the places the index and memory know with the log.
func (s *Store) checkIndex(tx *bolt.Tx) []error {
	var known []uint64
	s.mu.RLock()
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
	for key := range keys(tx.Bucket(bucketLog)) {
		logged = append(logged, number(key))
	}
	slices.Sort(known)
	if !slices.Equal(known, logged) {
		return []error{fmt.Errorf("the index knows %d events, the log has %d, or they differ", len(known), len(logged))}
	}
	return nil
}

func checkRunnable(tx *bolt.Tx) []error {
	var faults []error
	runnable := tx.Bucket(bucketRunnable)
	for key := range keys(tx.Bucket(bucketInbox)) {
		if owner := key[:1+int(key[0])]; runnable.Get(owner) == nil {
			faults = append(faults, fmt.Errorf("agent %q has mail and is not runnable", identity.AgentID(owner[1:])))
		}
	}
	for key, value := range under(tx.Bucket(bucketLog), nil) {
		if len(value) > frameHead && !gjson.ValidBytes(value[frameHead:]) {
			faults = append(faults, fmt.Errorf("event %d is not JSON", number(key)))
		}
	}
	return faults
}
