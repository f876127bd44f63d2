package database

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/internal/textutil"
)

// sqliteDB is a file with several connections that read and one connection that
// writes. A slow query blocks no other; writers wait for each other. A database in
// memory has one pool of one connection, as readers and as writer.
type sqliteDB struct {
	readers  *sqlitePool // opened mode=ro
	writer   *sqlitePool // nil for a read-only file
	inMemory bool
	readOnly bool // every Query is ReadOnly

	mu     sync.Mutex             // guards writes
	writes map[statementHash]bool // statements that a reader rejected
}

// sqlitePool is the reading or the writing connections.
type sqlitePool struct {
	*sql.DB
	slots *fair.Semaphore
}

// statementHash is the hash of a statement, which may be long.
type statementHash = [sha256.Size]byte

// maxWrites limits the statements that are remembered as writing.
const maxWrites = 4096

func openSQLite(c Config) (engine, error) {
	if c.Database == "" {
		return nil, errors.New("database is missing: the name of a file")
	}
	limitHeap()
	if isMemory(c.Database) {
		db, err := newSQLitePool("file::memory:?", 1)
		if err != nil {
			return nil, err
		}
		db.SetConnMaxIdleTime(0)
		return &sqliteDB{readers: db, writer: db, inMemory: true, readOnly: c.ReadOnly, writes: map[statementHash]bool{}}, nil
	}
	path, err := filepath.Abs(c.Database)
	if err != nil {
		return nil, err
	}
	at := "file://" + (&url.URL{Path: path}).EscapedPath() + "?_busy_timeout=5000&"
	readers, err := newSQLitePool(at+"mode=ro&", c.MaxConns)
	if err != nil || c.ReadOnly {
		return &sqliteDB{readers: readers, readOnly: true}, err
	}
	writer, err := newSQLitePool(at+"mode=rwc&_journal_mode=WAL&_txlock=immediate&", 1)
	return &sqliteDB{readers: readers, writer: writer, writes: map[statementHash]bool{}}, err
}

func isMemory(name string) bool { return name == ":memory:" }

func newSQLitePool(dsn string, conns int) (*sqlitePool, error) {
	connector, err := sqlite.NewConnector(strings.TrimSuffix(dsn, "&"))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(sqliteConnector{connector})
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return &sqlitePool{db, fair.NewSemaphore(conns)}, nil
}

// query runs a statement on a reader. If the reader rejects it as writing, it runs on
// the writer, unless it is ReadOnly. A reader rejects before it changes anything.
func (d *sqliteDB) query(ctx context.Context, q Query, t *table) error {
	if q.Untrusted && len(q.SQL) > maxStatementText {
		return errcode.New(errcode.ResultTooLarge, "run a statement: its text has more than %d MiB", maxStatementText>>20)
	}
	if namesProcessSetting(q.SQL) {
		return errors.New("temp_store_directory, data_store_directory, hard_heap_limit and soft_heap_limit apply to the whole process and are not allowed here")
	}
	q.ReadOnly = q.ReadOnly || d.readOnly
	if d.inMemory {
		return d.run(ctx, d.writer, q, t)
	}
	if q.ReadOnly {
		return d.read(ctx, q, t)
	}
	if !d.isWrite(q) {
		err := d.read(ctx, q, t)
		switch sqliteCode(err) {
		case sqlite3.SQLITE_READONLY:
			d.noteWrite(q)
		case sqlite3.SQLITE_CANTOPEN: // run it on the writer, which may recover the file
		default:
			return err
		}
	}
	return d.run(ctx, d.writer, q, t)
}

// read runs a statement on a reader. If the file does not exist yet, the writer creates it.
func (d *sqliteDB) read(ctx context.Context, q Query, t *table) error {
	err := d.run(ctx, d.readers, q, t)
	if d.writer == nil || sqliteCode(err) != sqlite3.SQLITE_CANTOPEN {
		return err
	}
	if err := d.writer.PingContext(ctx); err != nil {
		return unavailableError{err}
	}
	return d.run(ctx, d.readers, q, t)
}

// isWrite reports whether a statement is known to write. Untrusted statements are not remembered,
// since they may never come again.
func (d *sqliteDB) isWrite(q Query) bool {
	if q.Untrusted {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes[sha256.Sum256([]byte(q.SQL))]
}

// noteWrite remembers that a statement writes.
func (d *sqliteDB) noteWrite(q Query) {
	if q.Untrusted {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.writes) >= maxWrites {
		clear(d.writes)
	}
	d.writes[sha256.Sum256([]byte(q.SQL))] = true
}

// run runs a statement on a connection.
func (d *sqliteDB) run(ctx context.Context, pool *sqlitePool, q Query, t *table) error {
	release, err := acquireSlot(ctx, pool.slots, q.Caller)
	if err != nil {
		return err
	}
	defer release()
	conn, err := pool.Conn(ctx)
	if err != nil && (pool == d.writer || d.writer == nil) { // there is no writer, or it could not open the file either
		return unavailableError{err}
	}
	if err != nil {
		return openError(err)
	}
	defer conn.Close()
	if q.Untrusted && !d.inMemory {
		defer dropConn(conn)
	}
	return conn.Raw(func(c any) error {
		s := c.(*sqliteConn)
		if d.inMemory {
			if err := s.setReadOnly(ctx, q); err != nil {
				return err
			}
		}
		return classifyLimit(s.query(ctx, q, t))
	})
}

// classifyLimit returns result_too_large in place of the error of a statement that needs more
// memory than limitHeap allows, or longer values than its limits.
func classifyLimit(err error) error {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_TOOBIG:
		return errcode.Wrap(errcode.ResultTooLarge, err, "run a statement: a text or blob is too long for it; use shorter values, or fewer operations in one statement")
	case sqlite3.SQLITE_NOMEM:
	default:
		return err
	}
	return errcode.Wrap(errcode.ResultTooLarge, err, "run a statement: it needs more than %d MiB of memory, or other statements leave it less; request less data", maxHeap>>20)
}

// setReadOnly makes the one connection of a database in memory reject changes if the
// Query is ReadOnly.
func (c *sqliteConn) setReadOnly(ctx context.Context, q Query) error {
	if q.ReadOnly && pragmaPattern().MatchString(q.SQL) {
		return errors.New("PRAGMA is not allowed here; use a function such as pragma_table_info('t')")
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA query_only=%t", q.ReadOnly), nil)
	return err
}

// openError returns the error of a reader that could not open the file. If the file is
// missing or not readable as it is, the writer may still create or recover it.
func openError(err error) error {
	if code := sqliteCode(err); code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY {
		return err
	}
	return unavailableError{err}
}

// sqliteCode returns the primary code of an error of SQLite, 0 for other errors.
func sqliteCode(err error) int {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return 0
	}
	return e.Code() & 0xFF
}

func (d *sqliteDB) close() error {
	if d.writer == nil || d.writer == d.readers {
		return d.readers.Close()
	}
	return errors.Join(d.readers.Close(), d.writer.Close())
}

// pragmaPattern matches statements of SQLite that could switch off query_only, which enforces
// ReadOnly, or change the settings of a connection that callers share. Functions such as
// pragma_table_info do not match.
var pragmaPattern = textutil.LazyPattern(`(?i)\bpragma\b`)

// namesProcessSetting reports whether a text names a setting of SQLite that applies to all databases
// of the process, in any case of letters. Each statement is searched, so it uses no pattern.
func namesProcessSetting(text string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(lower, "temp_store_directory") || strings.Contains(lower, "data_store_directory") ||
		strings.Contains(lower, "hard_heap_limit") || strings.Contains(lower, "soft_heap_limit")
}
