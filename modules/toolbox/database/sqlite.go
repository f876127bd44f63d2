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

	"github.com/rolecall/rolecall/internal/fair"
)

// sqliteDB is a file with several connections that read and one that writes,
// so that a slow query holds up nobody but writers do wait for each other. A
// database in memory is one connection.
type sqliteDB struct {
	readers *sqlitePool // opened mode=ro
	writer  *sqlitePool // nil for a database that is only read

	mu     sync.Mutex           // guards writes
	writes map[fingerprint]bool // statements that readers refused
}

// sqlitePool is connections of one sort.
type sqlitePool struct {
	*sql.DB
	places *fair.Semaphore
}

// fingerprint stands for a statement, which may be long.
type fingerprint = [sha256.Size]byte

// maxWrites bounds how many statements are known to write.
const maxWrites = 4096

func openSQLite(c Config) (engine, error) {
	if c.Database == "" {
		return nil, errors.New("sqlite needs a database: the name of a file")
	}
	if isMemory(c.Database) {
		db, err := newSQLitePool("file::memory:?", 1)
		if err != nil {
			return nil, err
		}
		db.SetConnMaxIdleTime(0)
		return &sqliteDB{readers: db, writer: db, writes: map[fingerprint]bool{}}, nil
	}
	path, err := filepath.Abs(c.Database)
	if err != nil {
		return nil, err
	}
	at := "file://" + (&url.URL{Path: path}).EscapedPath() + "?_busy_timeout=5000&"
	readers, err := newSQLitePool(at+"mode=ro&", c.MaxConns)
	if err != nil || c.ReadOnly {
		return &sqliteDB{readers: readers}, err
	}
	writer, err := newSQLitePool(at+"mode=rwc&_journal_mode=WAL&_txlock=immediate&", 1)
	return &sqliteDB{readers: readers, writer: writer, writes: map[fingerprint]bool{}}, err
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

// query runs a statement on a reader; one that turns out to write runs on the
// writer, unless it may not. A reader changes nothing before it refuses.
func (d *sqliteDB) query(ctx context.Context, q Query, t *table) error {
	if ofProcess.MatchString(q.SQL) {
		return errors.New("temp_store_directory and data_store_directory are of the whole process, and not let through here")
	}
	if d.readers == d.writer { // in memory
		return d.run(ctx, d.writer, q, t)
	}
	if q.ReadOnly || d.writer == nil {
		err := d.run(ctx, d.readers, q, t)
		if d.writer != nil && sqliteCode(err) == sqlite3.SQLITE_CANTOPEN { // nothing was ever written: there is no file
			if err := d.writer.PingContext(ctx); err != nil {
				return unavailableError{err}
			}
			return d.run(ctx, d.readers, q, t)
		}
		return err
	}
	if !d.isWrite(q) {
		err := d.run(ctx, d.readers, q, t)
		if code := sqliteCode(err); code != sqlite3.SQLITE_READONLY && code != sqlite3.SQLITE_CANTOPEN {
			return err
		}
		d.noteWrite(q)
	}
	return d.run(ctx, d.writer, q, t)
}

// isWrite says whether a statement is known to write. Nothing is kept of a
// Foreign one: it may never come again.
func (d *sqliteDB) isWrite(q Query) bool {
	if q.Untrusted {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes[sha256.Sum256([]byte(q.SQL))]
}

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
	give, err := place(ctx, pool.places, q.Caller)
	if err != nil {
		return err
	}
	defer give()
	conn, err := pool.Conn(ctx)
	if err != nil && (pool == d.writer || d.writer == nil) { // nobody else could
		return unavailableError{err}
	}
	if err != nil {
		return notReached(err)
	}
	defer conn.Close()
	memory := d.readers == d.writer
	if q.Untrusted && !memory {
		defer dropConn(conn)
	}
	return conn.Raw(func(c any) error {
		s := c.(*sqliteConn)
		s.longest(max(maxLength, q.MaxBytes))
		if memory {
			if err := s.setReadOnly(ctx, q); err != nil {
				return err
			}
		}
		return s.query(ctx, q.SQL, q.Args, t)
	})
}

// setReadOnly has a database in memory, which has one connection, refuse what a
// Query that is ReadOnly may not do.
func (c *sqliteConn) setReadOnly(ctx context.Context, q Query) error {
	if q.ReadOnly && setting.MatchString(q.SQL) {
		return errors.New("PRAGMA is not let through here: a function such as pragma_table_info('t') reads")
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA query_only=%t", q.ReadOnly), nil)
	return err
}

// maxLength is the most bytes of a value or a row, or the Query's own limit.
const maxLength = 64 << 20

// notReached keeps a database's own words apart from a file that cannot be
// opened.
func notReached(err error) error {
	if code := sqliteCode(err); code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY {
		return err
	}
	return unavailableError{err}
}

// sqliteCode gives the primary code of an error of SQLite, 0 of others.
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
