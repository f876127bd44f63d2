package database

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteConnector opens connections that cannot attach other files.
type sqliteConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	driven, ok := conn.(sqliteDriverConn)
	handle := reflect.Indirect(reflect.ValueOf(conn)).FieldByName("db") // the driver does not export it
	if !ok || handle.Kind() != reflect.Uintptr {
		return nil, errors.Join(fmt.Errorf("unexpected SQLite driver connection type %T", conn), conn.Close())
	}
	s := &sqliteConn{sqliteDriverConn: driven, db: uintptr(handle.Uint()), tls: libc.NewTLS(), prepared: prepared{}}
	s.limit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
	s.limit(sqlite3.SQLITE_LIMIT_VDBE_OP, maxStatementOperations)
	return s, nil
}

// sqliteDriverConn is a connection of the driver.
type sqliteDriverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.SessionResetter
	driver.Validator
}

// sqliteConn reuses compiled statements. It interrupts a statement at any row when
// its context ends. The driver does so only before the first row. Like every
// driver.Conn it is used by one goroutine at a time, for one statement at a time.
type sqliteConn struct {
	sqliteDriverConn
	db       uintptr
	tls      *libc.TLS // its own, since the TLS of the driver may be in use
	length   int       // the limit of a value or a row, in bytes
	prepared prepared
}

// limit sets a run-time limit of SQLite for the connection.
func (c *sqliteConn) limit(id int32, value int) {
	sqlite3.Xsqlite3_limit(c.tls, c.db, id, int32(value))
}

// limitLength limits the bytes of a value and of a row.
func (c *sqliteConn) limitLength(bytes int) {
	if c.length != bytes {
		c.limit(sqlite3.SQLITE_LIMIT_LENGTH, bytes)
		c.length = bytes
	}
}

// maxLength is how many bytes a value or a row may have, unless MaxBytes is higher. No
// SQL function takes longer than half a second with it.
const maxLength = 16 << 20

// query adds the rows of the text's last statement that returns any to t, until ctx
// ends. It bypasses database/sql, whose overhead exceeds the cost of a small statement.
func (c *sqliteConn) query(ctx context.Context, q Query, t *table) error {
	defer c.endTransaction() // after the interrupter has stopped
	defer c.interruptWith(ctx)()
	length := max(maxLength, q.MaxBytes)
	if q.Untrusted {
		return c.queryEach(ctx, q, length, t)
	}
	c.limitLength(length)
	return c.queryText(ctx, q.SQL, q.Args, t)
}

// queryEach runs the statements of a text one after the other. The more operations one has,
// the shorter its values must be, so that all of them end soon after an interrupt.
func (c *sqliteConn) queryEach(ctx context.Context, q Query, length int, t *table) error {
	defer c.denySlowFunctions()()
	for text := q.SQL; ; {
		end, operations := c.compile(text)
		c.limitLength(min(length, maxOperationBytes/max(operations, 1)))
		if err := c.queryText(ctx, text[:end], q.Args, t); err != nil || end == len(text) {
			return err
		}
		text = text[end:]
	}
}

// queryText runs a text with the limits that were set.
func (c *sqliteConn) queryText(ctx context.Context, text string, args []any, t *table) error {
	s, done, err := c.statement(text)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.WithoutCancel(ctx), namedValues(args))
	if err != nil {
		return errors.Join(err, done())
	}
	return cmp.Or(collect(rows.(sqliteRows), t), rows.Close(), done()) // the later ones may repeat the first
}

// endTransaction rolls back a transaction that the statement left open. Otherwise the
// next caller's statement would run in it.
func (c *sqliteConn) endTransaction() {
	if c.inTransaction() {
		_, _ = c.ExecContext(context.Background(), "ROLLBACK", nil) // if that fails, IsValid discards the connection
	}
}

func (c *sqliteConn) inTransaction() bool { return sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) == 0 }

// IsValid implements driver.Validator.
func (c *sqliteConn) IsValid() bool { return !c.inTransaction() && c.sqliteDriverConn.IsValid() }

// namedValues returns arguments in the form that a driver accepts.
func namedValues(args []any) []driver.NamedValue {
	list := make([]driver.NamedValue, len(args))
	for i, a := range args {
		list[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return list
}

// sqliteRows are rows of the driver.
type sqliteRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
}

// collect adds rows to t.
func collect(rows sqliteRows, t *table) error {
	names := rows.Columns()
	if len(names) == 0 { // the statement returns no rows
		return nil
	}
	t.begin(names)
	values := make([]driver.Value, len(names))
	for {
		if err := rows.Next(values); err != nil {
			return unlessEOF(err)
		}
		err := t.addRow(func(buf []byte, i int) ([]byte, error) {
			return appendSQLite(buf, values[i], rows.ColumnTypeDatabaseTypeName(i)), nil
		})
		if err != nil {
			return err
		}
	}
}

func unlessEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// appendSQLite appends a value by its column's declared type, which is "" for an
// expression. Text is a string, with two exceptions, as in MCP Toolbox. The text of a
// column declared JSON is a document. The text null of an expression is null.
func appendSQLite(buf []byte, v any, declared string) []byte {
	text, ok := v.(string)
	switch {
	case ok && strings.EqualFold(declared, "JSON"):
		return appendDocument(buf, text)
	case ok && declared == "" && text == "null":
		return append(buf, "null"...)
	}
	return appendValue(buf, v)
}

// statement returns the compiled statement of a text, which it reuses. done has to be
// called after use.
func (c *sqliteConn) statement(text string) (s driver.Stmt, done func() error, err error) {
	kept := func() error { return nil }
	if s, ok := c.prepared[text]; ok {
		return s, kept, nil
	}
	s, err = c.Prepare(text)
	switch {
	case err != nil:
		return nil, nil, err
	case len(text) > maxPreparedText:
		return s, s.Close, nil
	}
	return s, kept, c.prepared.add(text, s)
}

// Close implements driver.Conn.
func (c *sqliteConn) Close() error {
	defer c.tls.Close()
	return errors.Join(c.prepared.closeAll(), c.sqliteDriverConn.Close())
}

// interruptWith interrupts the connection's statement when ctx ends. Once end has
// returned it interrupts nothing.
func (c *sqliteConn) interruptWith(ctx context.Context) (end func()) {
	i := &interrupter{db: c.db}
	stop := context.AfterFunc(ctx, i.run)
	return func() {
		if !stop() {
			i.end()
		}
	}
}

// interrupter interrupts the running statement until end is called.
type interrupter struct {
	db      uintptr
	done    atomic.Bool
	running sync.Mutex
}

// run interrupts repeatedly, because a statement that is about to begin ignores an
// interrupt. It has its own TLS, since the TLS of the connection is in use.
func (i *interrupter) run() {
	i.running.Lock()
	defer i.running.Unlock()
	tls := libc.NewTLS()
	defer tls.Close()
	for !i.done.Load() {
		sqlite3.Xsqlite3_interrupt(tls, i.db)
		time.Sleep(time.Millisecond)
	}
}

// end stops the interrupter and returns when it has stopped.
func (i *interrupter) end() {
	i.done.Store(true)
	i.running.Lock()
	defer i.running.Unlock()
}
