// Package database runs SQL statements on SQLite, PostgreSQL and MySQL (MariaDB), with
// limits and an enforced read-only mode.
//
//	db, err := database.Open(database.Config{Type: database.SQLite, Database: "flights.db"})
//	rows, err := db.Query(ctx, database.Query{SQL: "SELECT ?1 AS v", Args: []any{int64(1)}, ReadOnly: true})
//
// Rows are returned as JSON with exact numbers, within limits of time, rows and bytes.
// For a ReadOnly Query the database itself rejects changes, whatever the statement is.
// Arguments are bound and never written into a statement.
//
// Open does not connect: each Query connects if necessary, so an unreachable database
// is tried again with the next one. The package does not know tools or parameters.
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

// Type is a database system.
type Type string

// The supported database systems.
const (
	SQLite   Type = "sqlite"
	Postgres Type = "postgres"
	MySQL    Type = "mysql"
)

// Config describes a database and its connections. SQLite uses only Database, ReadOnly and
// MaxConns.
type Config struct {
	Type     Type
	Database string // the name; for SQLite a file, or :memory:
	Host     string
	Port     int // 0 is the default port of the type
	User     string
	Password string
	Params   map[string]string // of the driver's connection string

	ReadOnly bool                                                     // makes every Query ReadOnly
	MaxConns int                                                      // open at once; 0 is 8; one Caller gets at most half of them, rounded up
	Mode     string                                                   // queryExecMode of PostgreSQL; "" is cache_statement
	Dial     func(ctx context.Context, addr string) (net.Conn, error) // nil is the Dial of net.Dialer
}

// Query is one statement with the values of its placeholders.
type Query struct {
	SQL string
	// Args are nil, bool, int64, float64 or string. For PostgreSQL they may also be
	// slices of one of these types, such as []int64, and nested slices, such as
	// [][]string. MySQL and SQLite ignore args without a placeholder.
	Args     []any
	ReadOnly bool // the database rejects changes
	// Caller identifies the caller. Connections are shared fairly among callers.
	Caller fair.Key
	// Untrusted is set if the caller wrote the statement or a part of it. Its
	// connection is not used again, so that temporary tables, settings and open
	// transactions do not affect others. A database in memory has one connection,
	// which is kept.
	Untrusted bool
	MaxRows   int           // 0 is DefaultRows
	MaxBytes  int           // of the JSON; 0 is DefaultBytes
	Timeout   time.Duration // 0 is DefaultTimeout
}

// The default limits of a Query.
const (
	DefaultRows    = 10_000
	DefaultBytes   = 4 << 20
	DefaultTimeout = 30 * time.Second
)

// connectTimeout limits the time to connect to a server.
const connectTimeout = 10 * time.Second

// defaultConns is the default of Config.MaxConns.
const defaultConns = 8

// DB is one database. It is safe for concurrent use.
type DB struct{ engine engine }

// engine does the work of a DB for one type. query adds rows to t. If the text has several
// statements, it adds the rows of the last statement that returns rows.
type engine interface {
	query(ctx context.Context, q Query, t *table) error
	close() error
}

// Open returns a DB, which has to be closed. It does not connect. Errors:
// InvalidConfig.
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
		err = fmt.Errorf("unknown type %q: want sqlite, postgres or mysql", c.Type)
	}
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidConfig, err, "open database: %v", err)
	}
	return &DB{e}, nil
}

// Query runs a statement and returns its rows as a JSON array of objects, [] without
// rows. Columns are in order; two columns of one name are two members of that name.
// Integers and decimals are exact, times are RFC 3339, bytes are base64, and numbers
// that JSON lacks (NaN) are strings.
//
// The error codes are:
//   - ToolUnavailable: the database is unreachable, nothing was run
//   - ToolInterrupted: the connection was lost before the database answered
//   - ToolTimeout: the Timeout of the Query is over
//   - ResultTooLarge: the rows exceed a limit
//   - ToolExecutionFailed: the statement failed; has the database's message
//
// If ctx ends, the error is its cause. Messages do not name host, user or database.
func (d *DB) Query(ctx context.Context, q Query) (json.RawMessage, error) {
	q.MaxRows, q.MaxBytes = orDefault(q.MaxRows, DefaultRows), orDefault(q.MaxBytes, DefaultBytes)
	if q.Timeout <= 0 {
		q.Timeout = DefaultTimeout
	}
	timed, cancel := context.WithTimeoutCause(ctx, q.Timeout, errTimeout)
	defer cancel()
	t := &table{maxRows: q.MaxRows, maxBytes: q.MaxBytes}
	if err := d.engine.query(timed, q, t); err != nil {
		return nil, classify(timed, q, err)
	}
	return t.json(), nil
}

// Close closes all connections after running queries have ended.
func (d *DB) Close() error { return d.engine.close() }

// acquireSlot waits for the caller's fair turn to use a connection. release ends it,
// after the connection went back to its pool.
func acquireSlot(ctx context.Context, slots *fair.Semaphore, caller fair.Key) (release func(), err error) {
	release, err = slots.Acquire(ctx, caller)
	if err != nil {
		return nil, unavailableError{err}
	}
	return release, nil
}

// dropConn makes the pool close a connection instead of reusing it.
func dropConn(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool discards it
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// errTimeout is the cause of a context that ended by the Timeout of its Query.
var errTimeout = errors.New("query timeout exceeded")

// ErrNoConnection is wrapped by the error of a Query that timed out before it had a
// connection: all were busy, or connecting took too long. Nothing was run.
var ErrNoConnection = errors.New("no connection within the timeout")

// unavailableError is a failure to connect. Its cause, which names hosts and users, is
// for the log only.
type unavailableError struct{ cause error }

func (u unavailableError) Error() string { return "the database is unreachable" }
func (u unavailableError) Unwrap() error { return u.cause }

// connLostError is a connection that broke while the statement may have been running.
type connLostError struct{ cause error }

func (l connLostError) Error() string { return "the connection was lost" }
func (l connLostError) Unwrap() error { return l.cause }

// classify returns an error with its code. ctx is the context of the Query, with its timeout.
func classify(ctx context.Context, q Query, err error) error {
	if _, ok := errors.AsType[*errcode.Error](err); ok {
		return err
	}
	_, unavailable := errors.AsType[unavailableError](err)
	switch cause := context.Cause(ctx); {
	case cause == errTimeout && unavailable:
		return errcode.Wrap(errcode.ToolUnavailable, ErrNoConnection, "run a statement: no connection available after %v; try again later", q.Timeout)
	case cause == errTimeout:
		return errcode.New(errcode.ToolTimeout, "run a statement: timed out after %v and was stopped; request less data", q.Timeout)
	case cause != nil:
		return cause
	}
	if unavailable {
		return errcode.Wrap(errcode.ToolUnavailable, err, "run a statement: the database is unreachable; try again later")
	}
	if _, ok := errors.AsType[connLostError](err); ok {
		return errcode.Wrap(errcode.ToolInterrupted, err, "run a statement: the connection was lost; whether the statement was carried out is unknown")
	}
	return errcode.New(errcode.ToolExecutionFailed, "run a statement: %s", err)
}
