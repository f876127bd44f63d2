// Package persist stores events, messages and records in one bbolt file. It implements
// journal.Store.
//
//	store, err := persist.Open(dir)
//	// ...
//	defer store.Close()
//	seq, err := store.Commit(ctx, &journal.Batch{Stream: id, Events: events})
//	for e, err := range store.Read(ctx, id, 0) { ... }
//
// # Commits
//
// One goroutine, the committer, is the only writer. It takes all batches that are waiting,
// prepares them in order and writes them in one transaction. So many writers share one fsync.
// Commit returns when the transaction is on disk. The outcome of a failed transaction is unknown.
// The store then stops: all later calls of Commit fail with journal.ErrClosed.
//
// # File format
//
// The data directory contains rolecall.db, a bbolt file with these buckets. Numbers in
// keys have 8 bytes, big endian. An agent in a key is the length of its id in one byte,
// then the id.
//
//	persist   "schema" → 4 · "ledger" → integrity record (integrity.go)
//	log       seq → event           all events of all streams, append-only
//	index     agent seq → seqs      sequence numbers of a stream's events from seq on;
//	                                written every few commits, Open reads the rest
//	                                from the log
//	inbox     agent seq → message   messages that the agent has not consumed
//	delayed   due seq → message     due in nanoseconds since 1970
//	runnable  agent → nothing       agents with work to do
//	records   kind 0 key → record   roles, agents, tasks, artifacts, blobs …
//
// All values but the schema are frames. A frame begins with the version (1 byte) and the kind (1
// byte). The kinds are 'e' event, 'i' index, 'm' message, 'r' record, 'a' runnable agent and 'n'
// integrity record. Then follow 4 bytes with the CRC-32C of bucket, key, version, kind and
// payload, and the payload. The payload is JSON, except for index, integrity record and records in
// other formats.
//
// # Integrity
//
// Nothing is lost silently. Open scans all pages of the file before bbolt reads them (scan.go). It
// compares the entries of each bucket and the number of the last transaction with the integrity
// record. Therefore it refuses pages of another time. A frame that does not match its checksum is
// never used; reading it returns journal.ErrDamaged. Files of schema 1 have no integrity record.
// The integrity record of schema 2 covers keys only. For both, Open writes a new one. Files of
// schema 3 differ in their number alone.
//
// The data file may be removed or replaced while it is open. Then the store saves the open file
// beside it and stops (rescue.go).
//
// A crash between the writes of a commit leaves the file of the commit before. A disk that loses
// the write of a meta page does so, too. Therefore the store commits the same contents once more
// after the last commit, and after a second without a commit.
//
// WriteBackup writes a consistent copy with a checksum while commits continue. VerifyBackup checks
// such a copy. RestoreBackup creates a data directory from it.
package persist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// FileName is the name of the data file in a data directory.
const FileName = "rolecall.db"

// The version of the file format. Files of newer versions are rejected.
const (
	schema          = 4
	schemaIntegrity = 2 // the first with an integrity record
	schemaContents  = 3 // the first whose integrity record has the transaction and sums of contents

	// Schema 4 is the first whose roles and tasks have bounds on arguments. An older version
	// would not hold them, so it must not open the file.
)

// lockWait is the time for which Open waits until another process closes the file.
const lockWait = 200 * time.Millisecond

// The buckets.
var (
	bucketPersist  = []byte("persist")
	bucketLog      = []byte("log")
	bucketIndex    = []byte("index")
	bucketInbox    = []byte("inbox")
	bucketDelayed  = []byte("delayed")
	bucketRunnable = []byte("runnable")
	bucketRecords  = []byte("records")

	keyIntegrity = []byte("ledger")  // in bucketPersist
	keyIndexed   = []byte("indexed") // in bucketPersist of schema 1
)

// The positions of the buckets in layout.
const (
	layoutLog = iota
	layoutIndex
	layoutInbox
	layoutDelayed
	layoutRunnable
	layoutRecords
)

// layout lists all buckets but persist, with the kind of their frames. The integrity record
// has their sums in this order, so new buckets are added at the end.
var layout = [...]struct {
	name []byte
	kind byte
}{
	layoutLog: {bucketLog, kindEvent}, layoutIndex: {bucketIndex, kindIndex}, layoutInbox: {bucketInbox, kindMessage},
	layoutDelayed: {bucketDelayed, kindMessage}, layoutRunnable: {bucketRunnable, kindAgent}, layoutRecords: {bucketRecords, kindRecord},
}

// Store is an open data directory. All methods are safe for concurrent use.
type Store struct {
	db            *bolt.DB
	readOnly      bool         // Commit is refused, and there is no committer
	file          os.FileInfo  // of the open data file
	dir           string       // the data directory
	delayed       delayedIndex // used by the committer only
	settled       bool         // the last two commits have the same contents; used by the committer only
	made          madeFiles    // what Open has created
	discard       atomic.Bool  // set by DiscardUnused
	committed     bool         // a batch was committed; used by the committer, and by Close after it
	queue         chan *commit
	committerDone chan struct{} // closed when the committer has ended

	backupMu sync.Mutex // held while a backup is copied through a temporary file

	queueMu sync.RWMutex // held for reading while a commit is queued; guards closed
	closed  bool

	life    context.Context         // ends when the store stops, with the reason as its cause
	endLife context.CancelCauseFunc // ends life

	mu        sync.RWMutex                  // guards the fields below
	integrity integrityRecord               // of the last transaction on disk
	synced    int                           // id of the last transaction on disk
	tail      map[identity.AgentID][]uint64 // sequence numbers that are not in the index bucket yet, by stream
	tailLen   int                           // total of the numbers in tail
	notify    chan struct{}                 // closed after the next commit
	stopErr   error                         // why the store has stopped
	broken    bool                          // bbolt has panicked and may hold its locks for ever: it is not used again
}

// Open opens the data directory dir. It creates the directory (mode 0700) and the data file
// (mode 0600) if they do not exist. It reads the whole structure of the file.
//
// The error has the code Conflict if another process has the file open, or if a newer
// version wrote it. It has the code PermissionDenied if the file may not be read and
// written. It is journal.ErrDamaged if the file is damaged; Open then has not changed it.
func Open(dir string) (*Store, error) {
	made, err := makeDir(dir)
	if err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	store, err := openIn(dir, &made)
	if err != nil {
		made.removeDirs()
	}
	return store, err
}

// openIn is Open in an existing directory. It notes in made whether it creates the file.
func openIn(dir string, made *madeFiles) (*Store, error) {
	path := filepath.Join(dir, FileName)
	if err := rereadMetaPages(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	found, err := inspectOrCreate(path, made)
	if err != nil {
		return nil, openError(path, err)
	}
	var file os.FileInfo
	db, err := openBolt(path, &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType, OpenFile: statOpened(&file)})
	if err != nil {
		return nil, openError(path, err)
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, file) { // see Store.removeUnused
		return nil, errors.Join(openError(path, bolterrors.ErrTimeout), db.Close())
	}
	if err := os.Chmod(path, 0o600); err != nil { // the file may come from a copy with another mode
		return nil, errors.Join(fmt.Errorf("set the mode of %s: %w", path, err), db.Close())
	}
	s := &Store{
		db:            db,
		file:          file,
		dir:           dir,
		made:          *made,
		delayed:       delayedIndex{},
		queue:         make(chan *commit, 1024),
		committerDone: make(chan struct{}),
		tail:          map[identity.AgentID][]uint64{},
		notify:        make(chan struct{}),
	}
	s.life, s.endLife = context.WithCancelCause(context.Background())
	if err := catchPageFault(func() error { return s.load(found) }); err != nil {
		return nil, errors.Join(openError(path, err), db.Close())
	}
	go s.commitLoop()
	return s, nil
}

// inspectOrCreate inspects the data file. It creates the file if the file does not exist, and notes
// this in made.
func inspectOrCreate(path string, made *madeFiles) (*scanResult, error) {
	found, err := inspectFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	if made.file, err = createFile(path); err != nil {
		return nil, err
	}
	return inspectFile(path)
}

// ErrOlderSchema is returned by OpenReadOnly for a file that Open would migrate.
var ErrOlderSchema = errors.New("the data file has an older schema")

// OpenReadOnly opens the data file of the directory dir for reading. It writes nothing, so
// it also works on a read-only file system. Several processes may do so at a time. Commit
// of a batch that is not empty fails with the code PermissionDenied.
//
// It returns the errors of Open, fs.ErrNotExist if there is no data file, and
// ErrOlderSchema.
func OpenReadOnly(dir string) (*Store, error) {
	path := filepath.Join(dir, FileName)
	if err := rereadMetaPages(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	found, err := inspectFile(path)
	if err != nil {
		return nil, openError(path, err)
	}
	if found.schema != schema {
		return nil, fmt.Errorf("open %s for reading: %w", path, ErrOlderSchema)
	}
	db, err := openBolt(path, &bolt.Options{Timeout: lockWait, ReadOnly: true})
	if err != nil {
		return nil, openError(path, err)
	}
	s := &Store{
		db: db, readOnly: true, closed: true, committerDone: make(chan struct{}),
		delayed: delayedIndex{}, tail: map[identity.AgentID][]uint64{}, notify: make(chan struct{}),
	}
	close(s.committerDone)
	s.life, s.endLife = context.WithCancelCause(context.Background())
	if err := catchPageFault(func() error { return s.load(found) }); err != nil {
		return nil, errors.Join(openError(path, err), db.Close())
	}
	return s, nil
}

// CopyData copies the data file of one directory into another while it holds the lock of
// the file. The error has the code Conflict if another process has the file open.
func CopyData(from, to string) error {
	path := filepath.Join(from, FileName)
	lock, err := openBolt(path, &bolt.Options{Timeout: lockWait, ReadOnly: true})
	if err != nil {
		return openError(path, err)
	}
	return errors.Join(copyFile(path, filepath.Join(to, FileName)), lock.Close())
}

// copyFile copies a file to a new one with mode 0600.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// openBolt is bolt.Open, with ErrDamaged in place of a panic.
func openBolt(path string, options *bolt.Options) (db *bolt.DB, err error) {
	err = catchPageFault(func() error {
		db, err = bolt.Open(path, 0o600, options)
		return err
	})
	return db, err
}

// statOpened returns a function that opens a file and stores its FileInfo.
func statOpened(info *os.FileInfo) func(string, int, os.FileMode) (*os.File, error) {
	return func(name string, flag int, mode os.FileMode) (*os.File, error) {
		file, err := os.OpenFile(name, flag, mode)
		if err == nil {
			*info, err = file.Stat()
		}
		return file, err
	}
}

// catchPageFault calls fn, which reads pages of bbolt. Pages have no checksum. If bbolt
// panics over a damaged page, or reads beyond the end of the file, the error is
// ErrDamaged.
func catchPageFault(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v: %w", p, journal.ErrDamaged)
		}
	}()
	return fn()
}

// inspectFile inspects a file while it holds bbolt's lock, so that no process writes it.
func inspectFile(path string) (*scanResult, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() < 2*headSize {
		return nil, damagedError("it has only %d bytes", info.Size())
	}
	lock, err := openBolt(path, &bolt.Options{Timeout: lockWait, ReadOnly: true})
	if err != nil && !isCorrupt(err) {
		return nil, err
	}
	if lock != nil {
		defer lock.Close()
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return inspect(file, info.Size())
}

// isCorrupt reports whether bbolt has rejected the contents of a file, and not failed to
// open or lock it. It has no error of its own for a file that is too short.
func isCorrupt(err error) bool {
	_, system := errors.AsType[*fs.PathError](err)
	return !system && !errors.Is(err, bolterrors.ErrTimeout)
}

// openError adds to an error of Open what the operator can do.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return errcode.New(errcode.Conflict, "open %s: another process has it open; wait for it or stop it", path)
	case errors.Is(err, journal.ErrDamaged):
		return fmt.Errorf("open %s: %w; the file was not changed: move it away and restore a backup (rolecall restore)", path, err)
	case errors.Is(err, fs.ErrPermission):
		return errcode.Wrap(errcode.PermissionDenied, err, "open %s: no permission to read and write it", path)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// load migrates an older file to this schema and reads what is kept in memory.
func (s *Store) load(found *scanResult) error {
	if s.settled = found.schema == schema; !s.settled {
		if err := s.db.Update(func(tx *bolt.Tx) error { return migrate(tx, found) }); err != nil {
			return err
		}
	}
	return s.db.View(func(tx *bolt.Tx) error {
		r, err := readIntegrity(tx)
		if err != nil {
			return err
		}
		s.integrity, s.synced = *r, tx.ID()
		s.delayed.load(tx)
		return s.loadTail(tx)
	})
}

// loadTail reads the events after the last checkpoint of the index.
func (s *Store) loadTail(tx *bolt.Tx) error {
	c := tx.Bucket(bucketLog).Cursor()
	for key, value := c.Seek(numberKey(s.integrity.indexed + 1)); key != nil; key, value = c.Next() {
		payload, err := unframe(bucketLog, key, kindEvent, value)
		if err != nil {
			return err
		}
		s.addToTail(identity.AgentID(gjson.GetBytes(payload, "stream").Str), decodeNumber(key))
	}
	return nil
}

// addToTail remembers an event that is not in the index bucket. It must be called with mu
// held, unless the store is being opened.
func (s *Store) addToTail(stream identity.AgentID, seq uint64) {
	s.tail[stream] = append(s.tail[stream], seq)
	s.tailLen++
}

// Close waits until all queued batches are on disk and closes the file. It may be called
// twice and while other calls run. Its error is the reason if the store has stopped.
func (s *Store) Close() error {
	s.queueMu.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	s.queueMu.Unlock()
	<-s.committerDone
	s.mu.Lock()
	select {
	case <-s.notify:
	default:
		close(s.notify)
	}
	s.mu.Unlock()
	s.removeUnused()
	if err := s.brokenBy(); err != nil { // the lock of the file is released when the process ends
		return err
	}
	return errors.Join(s.stopReason(), s.db.Close())
}

// LastSeq returns the last sequence number that was assigned, to an event or a message.
func (s *Store) LastSeq() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.integrity.seq
}

var (
	_ journal.Store        = (*Store)(nil)
	_ journal.StopNotifier = (*Store)(nil)
)

// view calls fn in a read transaction. fn must not call Commit.
func (s *Store) view(ctx context.Context, fn func(tx *bolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	begun := false
	return closedError(s.useBolt(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			begun = true
			if err := s.awaitSync(ctx, tx.ID()); err != nil {
				return err
			}
			return fn(tx)
		})
	}, &begun))
}

// useBolt calls fn, which uses bbolt. If bbolt panics over a damaged page, the error is ErrDamaged. bbolt may then
// hold its locks for ever, unless only the function of a read transaction panicked: *begun says that it has
// begun. The store then stops.
func (s *Store) useBolt(fn func() error, begun *bool) error {
	if err := s.brokenBy(); err != nil {
		return err
	}
	returned := false
	err := catchPageFault(func() error {
		err := fn()
		returned = true
		return err
	})
	if returned || begun != nil && *begun {
		return err
	}
	reason := fmt.Errorf("%s was damaged while it was open, and the store has stopped (%w): %w; move it away, then restore a backup (rolecall restore) and resume the task",
		s.db.Path(), journal.ErrClosed, err)
	s.mu.Lock()
	s.broken, s.stopErr = true, reason
	s.mu.Unlock()
	s.endLife(reason)
	return reason
}

// brokenBy returns the error with which the store has stopped because bbolt has panicked, else nil.
func (s *Store) brokenBy() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.broken {
		return s.stopErr
	}
	return nil
}

// awaitSync blocks until a transaction is on disk. bbolt lets readers see a transaction before its
// fsync has returned. A reader must not act on data that a power cut may undo.
func (s *Store) awaitSync(ctx context.Context, id int) error {
	for {
		s.mu.RLock()
		synced, stopErr, committed := s.synced, s.stopErr, s.notify
		s.mu.RUnlock()
		switch {
		case id <= synced:
			return nil
		case stopErr != nil:
			return stopErr
		}
		select {
		case <-committed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// closedError replaces bbolt's error for a closed file by journal.ErrClosed.
func closedError(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return journal.ErrClosed
	}
	return err
}

// The encodings of keys.

func decodeNumber(key []byte) uint64 { return binary.BigEndian.Uint64(key) }
func numberKey(n uint64) []byte      { return binary.BigEndian.AppendUint64(nil, n) }
func agentKey(id identity.AgentID) []byte {
	return append([]byte{byte(len(id))}, id...)
}

func agentSeqKey(id identity.AgentID, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(agentKey(id), seq)
}

func recordKey(kind, key string) []byte { return []byte(kind + "\x00" + key) }

func putNumber(b *bolt.Bucket, name string, n uint64) error {
	return b.Put([]byte(name), numberKey(n))
}

// IsClosed reports whether an error means that the store is closed or has stopped.
func IsClosed(err error) bool { return errors.Is(err, journal.ErrClosed) }
