package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// createFile creates an empty data file. The file is complete before it gets its name, so a
// crash leaves no incomplete one. If another process creates it at the same time, that
// file is kept, and create reports false.
func createFile(path string) (bool, error) {
	folder := filepath.Dir(path)
	temp, err := os.MkdirTemp(folder, ".new-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temp)
	file := filepath.Join(temp, FileName)
	if err := createEmpty(file); err != nil {
		return false, fmt.Errorf("create data file: %w", err)
	}
	if err := publishFile(file, path); !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	return false, nil
}

// publishFile moves a complete file to its path. It makes a hard link, because a rename would
// overwrite a data file that another process has created in the meantime. The error is
// fs.ErrExist then.
func publishFile(file, path string) error {
	if err := os.Link(file, path); err != nil {
		return fmt.Errorf("link data file (the file system must support hard links): %w", err)
	}
	return SyncFolder(filepath.Dir(path))
}

// createEmpty creates a data file without entries.
func createEmpty(path string) error {
	db, err := openBolt(path, nil)
	if err != nil {
		return err
	}
	return errors.Join(db.Update(createBuckets), db.Close())
}

// createBuckets creates the buckets of the current schema.
func createBuckets(tx *bolt.Tx) error {
	own, err := tx.CreateBucket(bucketPersist)
	for _, b := range layout {
		if err == nil {
			_, err = tx.CreateBucket(b.name)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(putNumber(own, "schema", schema), writeIntegrity(tx, &integrityRecord{}))
}

// SyncFolder writes the entries of a directory to disk. A new or renamed file survives a
// power cut only after that.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// migrate brings a file of an older schema to the current one. It gets an integrity record
// with the entries that the scan has found.
func migrate(tx *bolt.Tx, found *scanResult) error {
	b := tx.Bucket(bucketPersist)
	if found.integrity != nil { // of schema 2 or 3
		l := *found.integrity
		l.buckets = found.sums
		return errors.Join(putNumber(b, "schema", schema), writeIntegrity(tx, &l))
	}
	l := &integrityRecord{seq: lastSeq(tx), buckets: found.sums}
	if f := b.Get(keyIndexed); f != nil {
		payload, err := unframe(bucketPersist, keyIndexed, kindNumber, f)
		if err != nil {
			return err
		}
		l.indexed = decodeNumber(payload)
	}
	return errors.Join(b.Delete(keyIndexed), putNumber(b, "schema", schema), writeIntegrity(tx, l))
}

// lastSeq returns the highest sequence number of an event or a waiting message. It ignores
// messages with damaged frames, whose keys may contain any number.
func lastSeq(tx *bolt.Tx) uint64 {
	var last uint64
	if key, _ := tx.Bucket(bucketLog).Cursor().Last(); len(key) == 8 {
		last = decodeNumber(key)
	}
	for _, name := range [][]byte{bucketInbox, bucketDelayed} {
		for key, value := range withPrefix(tx.Bucket(name), nil) {
			if _, err := unframe(name, key, kindMessage, value); err == nil {
				last = max(last, decodeNumber(key[len(key)-8:]))
			}
		}
	}
	return last
}

// makeDir creates a directory and its parents, writes their names to disk, and returns
// what it has created. It cannot write them to disk in a parent that it may not read, and
// ignores that. If it fails it leaves no directory behind.
func makeDir(path string) (made madeFiles, err error) {
	if err = made.addDir(path); err != nil {
		made.removeDirs()
	}
	return made, err
}

// madeFiles is what Open or RestoreBackup has created.
type madeFiles struct {
	dirs []string // parents before their children
	file bool     // the data file
}

// addDir creates a directory and its parents.
func (m *madeFiles) addDir(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := m.addDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err == nil {
		m.dirs = append(m.dirs, path)
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := SyncFolder(parent); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// removeDirs removes the directories that are still empty.
func (m *madeFiles) removeDirs() {
	for _, dir := range slices.Backward(m.dirs) {
		if os.Remove(dir) != nil { // not empty
			return
		}
	}
}
