package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// create makes a file that is complete when it gets its name: no crash leaves
// half of one. Of two processes that do so at once the second finds that of
// the first.
func create(path string) error {
	folder := filepath.Dir(path)
	draft, err := os.MkdirTemp(folder, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	made := filepath.Join(draft, FileName)
	if err := makeEmpty(made); err != nil {
		return fmt.Errorf("make a data file: %w", err)
	}
	if err := settle(made, path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// settle gives a complete file its name. A rename would overwrite a data file
// that somebody made meanwhile; a link does not, and its error is fs.ErrExist.
func settle(made, path string) error {
	if err := os.Link(made, path); err != nil {
		return fmt.Errorf("name a data file (the file system must have hard links): %w", err)
	}
	return SyncFolder(filepath.Dir(path))
}

// makeEmpty makes a data file with nothing in it.
func makeEmpty(path string) error {
	db, err := openBolt(path, nil)
	if err != nil {
		return err
	}
	return errors.Join(db.Update(makeBuckets), db.Close())
}

func makeBuckets(tx *bolt.Tx) error {
	own, err := tx.CreateBucket(bucketPersist)
	for _, b := range layout {
		if err == nil {
			_, err = tx.CreateBucket(b.name)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(putNumber(own, "schema", schema), writeLedger(tx, &integrityRecord{}))
}

// SyncFolder puts the names in a folder on disk.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// migrate brings a file of an older schema to this one. A file of schema 1 has
// no ledger: what was found becomes what was written.
func migrate(tx *bolt.Tx, found *scanResult) error {
	b := tx.Bucket(bucketPersist)
	if getNumber(b, "schema") == schema {
		return nil
	}
	l := &integrityRecord{seq: lastSeq(tx), buckets: found.holds}
	if f := b.Get(keyIndexed); f != nil {
		payload, err := unframe(bucketPersist, keyIndexed, kindNumber, f)
		if err != nil {
			return err
		}
		l.indexed = number(payload)
	}
	return errors.Join(b.Delete(keyIndexed), putNumber(b, "schema", schema), writeLedger(tx, l))
}

// lastSeq finds the last number given to an event or a waiting message. A key
// that does not fit its frame may hold any number: it gives none.
func lastSeq(tx *bolt.Tx) uint64 {
	var last uint64
	if key, _ := tx.Bucket(bucketLog).Cursor().Last(); len(key) == 8 {
		last = number(key)
	}
	for _, name := range [][]byte{bucketInbox, bucketDelayed} {
		for key, value := range under(tx.Bucket(name), nil) {
			if _, err := unframe(name, key, kindMessage, value); err == nil {
				last = max(last, number(key[len(key)-8:]))
			}
		}
	}
	return last
}

// makeFolder makes a folder and those above it, and puts their names on disk.
// A folder above that may not be read keeps the name when it likes.
func makeFolder(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no directory", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(path)
	if err := makeFolder(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := SyncFolder(above); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
