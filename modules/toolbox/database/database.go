// Package database owns statements on the databases that sources name: SQLite,
// PostgreSQL and MySQL (MariaDB).
//
//	db, err := database.Open(database.Config{Type: database.SQLite, Database: "flights.db"})
//	rows, err := db.Query(ctx, database.Query{SQL: "SELECT ?1 AS v", Args: []any{int64(1)}, ReadOnly: true})
//
// Rows come as JSON with exact numbers, within limits of time, rows and bytes.
// A Query that is ReadOnly is held to that by the database, whatever its
// statement says. Opening connects to nothing: a database that cannot be reached
// is tried again with the next Query. The package knows no parameters and no
// tools; arguments are bound, never written into a statement.
package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
)

// Type is a kind of database.
type Type string

// The kinds of databases.
const (
	SQLite   Type = "sqlite"
	Postgres Type = "postgres"
	MySQL    Type = "mysql"
)

// Config says where a database is and how many connections it may get. Host to
// Password are not SQLite's.
type Config struct {
	Type     Type
	Database string // a name; SQLite's is a file, or :memory:
	Host     string
	Port     int // 0 is the type's usual one
	User     string
	Password string
	Params   map[string]string // of the driver's connection string

	ReadOnly bool                                                     // no Query changes anything
	MaxConns int                                                      // open at once; 0 is 8; one Who has half of them, rounded up
	Mode     string                                                   // PostgreSQL: queryExecMode; "" is cache_statement
	Dial     func(ctx context.Context, addr string) (net.Conn, error) // nil is a net.Dialer's
}

// Query is one statement with the values of its placeholders.
type Query struct {
	SQL string
	// Args are nil, bool, int64, float64 and string; PostgreSQL's also slices of
	// one type of these, and slices of such slices, as []int64 and [][]string. MySQL
	// and SQLite leave those aside that the statement has no placeholders for.
	Args     []any
	ReadOnly bool
	// Caller is who asks, in words that no other has: connections are shared out
	// fairly among those who ask at once.
	Caller string
	// Untrusted says that the statement is a caller's own, or holds a caller's words: what it does to its
	// connection (temporary tables, settings, a transaction left open) nobody else
	// meets. A database in memory has no other connection.
	Untrusted bool
	MaxRows   int           // 0 is DefaultRows
	MaxBytes  int           // of the JSON; 0 is DefaultBytes
	Timeout   time.Duration // 0 is DefaultTimeout
}

// The limits of a Query that names none.
const (
	DefaultRows    = 10_000
	DefaultBytes   = 4 << 20
	DefaultTimeout = 30 * time.Second
)

// patience is how long a connection may take to be made.
const patience = 10 * time.Second

// defaultConns is how many connections a database gets that names no number.
const defaultConns = 8

// DB is one database. Safe for concurrent use.
type DB struct{ engine engine }

// engine is a DB of one type. query adds the rows of the last statement that
// has any to t.
type engine interface {
	query(ctx context.Context, q Query, t *table) error
	close() error
}

// Open makes a DB; Close it. Errors: InvalidConfig.
func Open(c Config) (*DB, error) {
	if c.MaxConns <= 0 {
		c.MaxConns = defaultConns
	}
	var (
		e   engine
		err error
	)
	switch c.Type {
	case SQLite:
		e, err = openSQLite(c)
	case Postgres:
		e, err = openPostgres(c)
	case MySQL:
		e, err = openMySQL(c)
	default:
		err = fmt.Errorf("there is no type %q; there are sqlite, postgres and mysql", c.Type)
	}
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidConfig, err, "open database: %v", err)
	}
	return &DB{e}, nil
}

// Query runs a statement and gives its rows as a JSON array of objects, [] when
// there are none. Columns are in order, and two of one name give that name
// twice; integers and decimals are exact, times RFC 3339, bytes base64, what
// JSON has no number for (NaN) a text.
//
// Errors: ToolUnavailable when the database cannot be reached, ToolInterrupted
// when it was lost before it answered, ToolTimeout when the time is up, ResultTooLarge over a limit, ToolExecutionFailed with the
// database's words for a statement that fails; ctx's. None names host, user or
// database.
func (d *DB) Query(ctx context.Context, q Query) (json.RawMessage, error) {
	q.MaxRows, q.MaxBytes = defaultTo(q.MaxRows, DefaultRows), defaultTo(q.MaxBytes, DefaultBytes)
	if q.Timeout <= 0 {
		q.Timeout = DefaultTimeout
	}
	timed, cancel := context.WithTimeoutCause(ctx, q.Timeout, errTime)
	defer cancel()
	t := &table{maxRows: q.MaxRows, maxBytes: q.MaxBytes}
	if err := d.engine.query(timed, q, t); err != nil {
		return nil, explain(timed, q, err)
	}
	return t.json(), nil
}

// Close closes all connections when the queries under way have ended.
func (d *DB) Close() error { return d.engine.close() }

// place waits for a place at a connection, which others have a share of; give it
// back when the connection is.
func place(ctx context.Context, places *fair.Semaphore, who string) (give func(), err error) {
	give, err = places.Acquire(ctx, who)
	if err != nil {
		return nil, unavailableError{err}
	}
	return give, nil
}

// dropConn closes a connection that goes back to its pool.
func dropConn(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // that is how a pool is told
}

func defaultTo(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// errTime: a Query's own time is up.
var errTime = errors.New("the time is up")

// ErrNoConnection is in the error of a Query whose time was up before it had a
// connection: all were busy, or one could not be made in time. Nothing was run.
var ErrNoConnection = errors.New("there was no connection in time")

// unavailableError says that there is no connection. Its cause names hosts and
// users: it is for the log.
type unavailableError struct{ cause error }

func (u unavailableError) Error() string { return "the database cannot be reached" }
func (u unavailableError) Unwrap() error { return u.cause }

// connLostError says that the connection broke when the statement may have been under
// way.
type connLostError struct{ cause error }

func (l connLostError) Error() string { return "the connection was lost" }
func (l connLostError) Unwrap() error { return l.cause }

// explain gives an error its code. ctx is the Query's own.
func explain(ctx context.Context, q Query, err error) error {
	if _, ok := errors.AsType[*errcode.Error](err); ok {
		return err
	}
	_, away := errors.AsType[unavailableError](err)
	switch cause := context.Cause(ctx); {
	case cause == errTime && away:
		return errcode.Wrap(errcode.ToolUnavailable, ErrNoConnection, "run a statement: it had no connection after %v; try again later", q.Timeout)
	case cause == errTime:
		return errcode.New(errcode.ToolTimeout, "run a statement: it was not done after %v and was stopped; ask for less", q.Timeout)
	case cause != nil:
		return cause
	}
	if away {
		return errcode.Wrap(errcode.ToolUnavailable, err, "run a statement: the database cannot be reached now; try again later")
	}
	if _, ok := errors.AsType[connLostError](err); ok {
		return errcode.Wrap(errcode.ToolInterrupted, err, "run a statement: the connection was lost; whether it was carried out is unknown")
	}
	return errcode.New(errcode.ToolExecutionFailed, "run a statement: %s", err)
}
