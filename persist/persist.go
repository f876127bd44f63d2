// Package persist owns the one file: it keeps events, messages and records
// in bbolt and implements journal.Store.
//
// Open a data directory, Commit batches, Read streams, Close. One goroutine,
// the committer, writes: it takes all batches that wait, prepares each in
// order and puts them into one transaction, so that many writers share one
// fsync. When a commit fails its outcome is unknown and the store stops.
//
// Layout of rolecall.db. Numbers in keys are 8 bytes, big endian; an agent in
// a key is its length in one byte, then its id.
//
//	persist   "schema" → 2 · "ledger" → the last number given, the last event
//	          the index covers, and of every other bucket how many keys it
//	          has and the sum of their hashes
//	log       seq → event           every event of every stream, append-only
//	index     agent seq → seqs      the numbers of a stream's events from seq on,
//	                                written every few commits; the rest is
//	                                gathered from the log at Open
//	inbox     agent seq → message   not yet taken
//	delayed   due seq → message     due in nanoseconds since 1970
//	runnable  agent → nothing       agents with unfinished business
//	records   kind 0 key → record   roles, agents, tasks, artifacts, blobs …
//
// Every value but the schema's is a frame: version (1), kind (1: 'e' event,
// 'i' index, 'm' message, 'r' record, 'a' runnable agent, 'n' ledger), CRC-32C
// (4) over bucket, key, version, kind and payload, then the payload, JSON
// unless the record says otherwise. A frame that does not fit is ErrDamaged
// and never used.
//
// Open first goes through all of the file's pages (inspect.go) and holds what
// the buckets have against the ledger (ledger.go): nothing is lost in silence.
// Schema 1 had no ledger; such a file gets one.
package persist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// FileName is the file in a data directory.
const FileName = "rolecall.db"

// schema is the layout's number; newer files are refused.
const (
	schema       = 2
	schemaLedger = 2 // the first with a ledger
)

// lockWait is how long Open waits for another process to close the file.
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

	keyLedger  = []byte("ledger")  // in bucketPersist
	keyIndexed = []byte("indexed") // in that of schema 1
)

// The places of buckets in layout.
const (
	inLog = iota
	inIndex
	inInbox
	inDelayed
	inRunnable
	inRecords
)

// layout lists the buckets beside persist, with the kind of their frames. The
// ledger keeps their tallies in this order.
var layout = [...]struct {
	name []byte
	kind byte
}{
	inLog: {bucketLog, kindEvent}, inIndex: {bucketIndex, kindIndex}, inInbox: {bucketInbox, kindMessage},
	inDelayed: {bucketDelayed, kindMessage}, inRunnable: {bucketRunnable, kindAgent}, inRecords: {bucketRecords, kindRecord},
}

// Store is an open data directory. All methods are safe for concurrent use.
type Store struct {
	db            *bolt.DB
	delayed       delayedIndex // the committer's
	queue         chan *commit
	committerDone chan struct{} // closed when the committer has ended

	backupMu sync.Mutex // held while a backup is copied by way of a draft

	queueMu sync.RWMutex // held for reading while queueing; guards closed
	closed  bool

	mu      sync.RWMutex    // guards what follows
	ledger  integrityRecord // as it was committed
	synced  int             // the last transaction that is on disk
	tail    map[identity.AgentID][]uint64
	tailLen int           // numbers in tail
	notify  chan struct{} // closed at the next commit
	stopErr error         // why the store stopped
}

// Open opens or makes the data directory dir (mode 0700) and its file.
//
// Errors: Conflict when another process has it open or a newer version made
// it; journal.ErrDamaged; otherwise what the file system says.
func Open(dir string) (*Store, error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if err := reread(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	found, err := inspectFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(path); err == nil {
			found, err = inspectFile(path)
		}
	}
	if err != nil {
		return nil, openError(path, err)
	}
	db, err := openBolt(path, &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, openError(path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // also when somebody else made it wider
		return nil, errors.Join(fmt.Errorf("keep others out of %s: %w", path, err), db.Close())
	}
	s := &Store{
		db:            db,
		delayed:       delayedIndex{},
		queue:         make(chan *commit, 1024),
		committerDone: make(chan struct{}),
		tail:          map[identity.AgentID][]uint64{},
		notify:        make(chan struct{}),
	}
	if err := guarded(func() error { return s.prepare(found) }); err != nil {
		return nil, errors.Join(openError(path, err), db.Close())
	}
	go s.commitLoop()
	return s, nil
}

// openBolt opens the file.
func openBolt(path string, options *bolt.Options) (db *bolt.DB, err error) {
	err = guarded(func() error {
		db, err = bolt.Open(path, 0o600, options)
		return err
	})
	return db, err
}

// guarded runs what looks at bolt's pages. They have no checksum: where bolt
// panics over a damaged one, or looks behind the end of the file, the error is
// ErrDamaged.
func guarded(look func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v: %w", p, journal.ErrDamaged)
		}
	}()
	return look()
}

// inspectFile inspects a file under bbolt's lock: nobody writes it meanwhile.
func inspectFile(path string) (*scanResult, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() < 2*headSize {
		return nil, damaged("it has %d bytes", info.Size())
	}
	lock, err := openBolt(path, &bolt.Options{Timeout: lockWait, ReadOnly: true})
	if err != nil && !unreadable(err) {
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

// unreadable says whether bbolt gave up over what is in a file.
func unreadable(err error) bool {
	return errors.Is(err, journal.ErrDamaged) || errors.Is(err, bolterrors.ErrInvalid) ||
		errors.Is(err, bolterrors.ErrChecksum) || errors.Is(err, bolterrors.ErrVersionMismatch)
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return errcode.New(errcode.Conflict, "open %s: another process has it open; one at a time can work on it: wait for it, or end it", path)
	case errors.Is(err, journal.ErrDamaged):
		return fmt.Errorf("open %s: %w; it was left as it is: move it away and put a backup in its place (rolecall restore)", path, err)
	case errors.Is(err, fs.ErrPermission):
		return errcode.Wrap(errcode.PermissionDenied, err, "open %s: no permission to read and write it", path)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// prepare brings an older file to this schema and gathers what memory holds.
func (s *Store) prepare(found *scanResult) error {
	err := s.db.Update(func(tx *bolt.Tx) error { return migrate(tx, found) })
	if err != nil {
		return err
	}
	return s.db.View(func(tx *bolt.Tx) error {
		l, err := readLedger(tx)
		if err != nil {
			return err
		}
		s.ledger, s.synced = *l, tx.ID()
		s.delayed.load(tx)
		return s.gather(tx)
	})
}

// gather completes the index from the events behind its last checkpoint.
func (s *Store) gather(tx *bolt.Tx) error {
	c := tx.Bucket(bucketLog).Cursor()
	for key, value := c.Seek(numberKey(s.ledger.indexed + 1)); key != nil; key, value = c.Next() {
		payload, err := unframe(bucketLog, key, kindEvent, value)
		if err != nil {
			return err
		}
		s.remember(identity.AgentID(gjson.GetBytes(payload, "stream").Str), number(key))
	}
	return nil
}

func (s *Store) remember(stream identity.AgentID, seq uint64) {
	s.tail[stream] = append(s.tail[stream], seq)
	s.tailLen++
}

// Close ends the store when all queued batches are on disk. It may be called
// twice and while calls run. Its error says so when the store has stopped.
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
	return errors.Join(s.stopped(), s.db.Close())
}

// Seq gives the number of the last event.
func (s *Store) Seq() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ledger.seq
}

var _ journal.Store = (*Store)(nil)

// view runs fn in a read transaction; fn must not commit.
func (s *Store) view(ctx context.Context, fn func(tx *bolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return closedError(guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			if err := s.awaitSync(ctx, tx.ID()); err != nil {
				return err
			}
			return fn(tx)
		})
	}))
}

// awaitSync returns when a transaction is on disk: bolt shows it as soon as it
// is written, before the fsync that keeps it.
func (s *Store) awaitSync(ctx context.Context, id int) error {
	for {
		s.mu.RLock()
		synced, fault, news := s.synced, s.stopErr, s.notify
		s.mu.RUnlock()
		switch {
		case id <= synced:
			return nil
		case fault != nil:
			return fault
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func closedError(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return journal.ErrClosed
	}
	return err
}

func number(key []byte) uint64  { return binary.BigEndian.Uint64(key) }
func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
func agentKey(id identity.AgentID) []byte {
	return append([]byte{byte(len(id))}, id...)
}

func agentSeqKey(id identity.AgentID, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(agentKey(id), seq)
}

func recordKey(kind, key string) []byte { return []byte(kind + "\x00" + key) }

func getNumber(b *bolt.Bucket, name string) uint64 {
	if v := b.Get([]byte(name)); len(v) == 8 {
		return number(v)
	}
	return 0
}

func putNumber(b *bolt.Bucket, name string, n uint64) error {
	return b.Put([]byte(name), numberKey(n))
}

// IsClosed says whether an error means that the store is closed.
func IsClosed(err error) bool { return errors.Is(err, journal.ErrClosed) }
