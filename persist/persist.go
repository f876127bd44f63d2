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
//	persist   "schema" → 1 · "indexed" → the last event the index covers
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
// 'i' index, 'm' message, 'r' record, 'a' runnable agent, 'n' number), CRC-32C
// (4) over bucket, key, version, kind and payload, then the payload, JSON
// unless the record says otherwise. A frame that does not fit is ErrDamaged
// and never used.
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
const schema = 1

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

	keyIndexed = []byte("indexed") // in bucketPersist

	buckets = [][]byte{bucketPersist, bucketLog, bucketIndex, bucketInbox, bucketDelayed, bucketRunnable, bucketRecords}
)

// Store is an open data directory. All methods are safe for concurrent use.
type Store struct {
	db    *bolt.DB
	queue chan *commit
	quiet chan struct{} // closed when the committer has ended

	gate   sync.RWMutex // held for reading while queueing; guards closed
	closed bool

	mu    sync.RWMutex // guards what follows
	seq   uint64       // the last number given
	tail  map[identity.AgentID][]uint64
	tails int           // numbers in tail
	news  chan struct{} // closed at the next commit
	fault error         // why the store stopped
}

// Open opens or makes the data directory dir (mode 0700) and its file.
//
// Errors: Conflict when another process has it open or a newer version made
// it; journal.ErrDamaged; otherwise what the file system says.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if err := whole(path); err != nil {
		return nil, err
	}
	db, err := openBolt(path, &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, openError(path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // also when somebody else made it wider
		return nil, errors.Join(fmt.Errorf("keep others out of %s: %w", path, err), db.Close())
	}
	s := &Store{
		db:    db,
		queue: make(chan *commit, 1024),
		quiet: make(chan struct{}),
		tail:  map[identity.AgentID][]uint64{},
		news:  make(chan struct{}),
	}
	if err := guarded(s.prepare); err != nil {
		return nil, errors.Join(err, db.Close())
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

// whole refuses a file that was cut short: bolt would read behind its end,
// which kills the process.
func whole(path string) error {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil // bolt makes it, or says what is wrong
	}
	db, err := openBolt(path, &bolt.Options{Timeout: lockWait, ReadOnly: true})
	if err != nil {
		return openError(path, err)
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error {
		info, err := os.Stat(path)
		if err == nil && info.Size() < tx.Size() {
			err = fmt.Errorf("open %s: it has %d bytes of %d: %w", path, info.Size(), tx.Size(), journal.ErrDamaged)
		}
		return err
	})
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return errcode.New(errcode.Conflict, "open %s: another process has it open; use its socket, or end it first", path)
	case errors.Is(err, fs.ErrPermission):
		return errcode.Wrap(errcode.PermissionDenied, err, "open %s: no permission to read and write it", path)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// prepare makes the buckets, checks the schema and gathers what memory holds.
func (s *Store) prepare() error {
	if err := s.db.Update(makeBuckets); err != nil {
		return err
	}
	return s.db.View(func(tx *bolt.Tx) error {
		s.seq = lastSeq(tx)
		return s.gather(tx)
	})
}

func makeBuckets(tx *bolt.Tx) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return fmt.Errorf("make bucket %s: %w", name, err)
		}
	}
	b := tx.Bucket(bucketPersist)
	switch got := getNumber(b, "schema"); {
	case got == 0:
		return putNumber(b, "schema", schema)
	case got != schema:
		return errcode.New(errcode.Conflict, "the data directory has schema %d, this rolecall knows %d; use the version that wrote it", got, schema)
	}
	return nil
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

// gather completes the index from the events behind its last checkpoint.
func (s *Store) gather(tx *bolt.Tx) error {
	last, err := indexed(tx)
	if err != nil {
		return err
	}
	c := tx.Bucket(bucketLog).Cursor()
	for key, value := c.Seek(numberKey(last + 1)); key != nil; key, value = c.Next() {
		payload, err := unframe(bucketLog, key, kindEvent, value)
		if err != nil {
			return err
		}
		s.remember(identity.AgentID(gjson.GetBytes(payload, "stream").Str), number(key))
	}
	return nil
}

// indexed gives the number of the last event the index covers.
func indexed(tx *bolt.Tx) (uint64, error) {
	f := tx.Bucket(bucketPersist).Get(keyIndexed)
	if f == nil {
		return 0, nil
	}
	payload, err := unframe(bucketPersist, keyIndexed, kindNumber, f)
	if err != nil {
		return 0, err
	}
	return number(payload), nil
}

func (s *Store) remember(stream identity.AgentID, seq uint64) {
	s.tail[stream] = append(s.tail[stream], seq)
	s.tails++
}

// Close ends the store when all queued batches are on disk. It may be called
// twice and while calls run.
func (s *Store) Close() error {
	s.gate.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	s.gate.Unlock()
	<-s.quiet
	s.mu.Lock()
	select {
	case <-s.news:
	default:
		close(s.news)
	}
	s.mu.Unlock()
	return s.db.Close()
}

// Seq gives the number of the last event.
func (s *Store) Seq() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.seq
}

var _ journal.Store = (*Store)(nil)

// view runs fn in a read transaction; fn must not commit.
func (s *Store) view(ctx context.Context, fn func(tx *bolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return closedError(guarded(func() error { return s.db.View(fn) }))
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

func keys(b *bolt.Bucket) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		c := b.Cursor()
		for key, _ := c.First(); key != nil; key, _ = c.Next() {
			if !yield(key) {
				return
			}
		}
	}
}

// IsClosed says whether an error means that the store is closed.
func IsClosed(err error) bool { return errors.Is(err, journal.ErrClosed) }
