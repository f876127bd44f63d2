package database

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteConnector opens connections that reach no file but their own.
type sqliteConnector struct{ driver.Connector }

// Connect implements driver.Connector. Its error is no statement's: notReached.
func (c sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	driven, ok := conn.(sqliteDriverConn)
	handle := reflect.Indirect(reflect.ValueOf(conn)).FieldByName("db") // the driver gives it to nobody
	if !ok || handle.Kind() != reflect.Uintptr {
		return nil, errors.Join(errors.New("the driver of SQLite is another one"), conn.Close())
	}
	s := &sqliteConn{sqliteDriverConn: driven, db: uintptr(handle.Uint()), tls: libc.NewTLS(), prepared: prepared{}}
	s.limit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
	return s, nil
}

// sqliteDriverConn is a connection as the driver has it.
type sqliteDriverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.SessionResetter
	driver.Validator
}

// sqliteConn keeps statements that were compiled, and stops one that runs when
// its context ends, at any row; the driver does until the first alone. Like
// every driver.Conn it is used by one goroutine at a time, for one statement at a
// time.
type sqliteConn struct {
	sqliteDriverConn
	db       uintptr
	tls      *libc.TLS // beside the driver's, which is the driver's
	length   int       // the limit of a value or a row, in bytes
	prepared prepared
}

func (c *sqliteConn) limit(id int32, value int) {
	sqlite3.Xsqlite3_limit(c.tls, c.db, id, int32(value))
}

// longest limits a value and a row to so many bytes.
func (c *sqliteConn) longest(bytes int) {
	if c.length != bytes {
		c.limit(sqlite3.SQLITE_LIMIT_LENGTH, bytes)
		c.length = bytes
	}
}

// query adds the rows of a text's last statement that has any to t, until ctx
// ends. database/sql's own way would cost more than a small statement does.
func (c *sqliteConn) query(ctx context.Context, text string, args []any, t *table) error {
	s, done, err := c.statement(text)
	if err != nil {
		return err
	}
	defer c.endTransaction() // when nothing interrupts it any more
	defer c.interruptWith(ctx)()
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.WithoutCancel(ctx), named(args))
	if err != nil {
		return errors.Join(err, done())
	}
	return cmp.Or(collect(rows.(sqliteRows), t), rows.Close(), done()) // the first says it; the others may say it again
}

// endTransaction undoes what a statement began and did not end: the next would
// go on in it, whosever that is.
func (c *sqliteConn) endTransaction() {
	if c.inTransaction() {
		_, _ = c.ExecContext(context.Background(), "ROLLBACK", nil) // IsValid says whether that was all
	}
}

func (c *sqliteConn) inTransaction() bool { return sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) == 0 }

// IsValid implements driver.Validator.
func (c *sqliteConn) IsValid() bool { return !c.inTransaction() && c.sqliteDriverConn.IsValid() }

// named gives arguments as a driver takes them.
func named(args []any) []driver.NamedValue {
	list := make([]driver.NamedValue, len(args))
	for i, a := range args {
		list[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return list
}

// sqliteRows are rows as the driver has them.
type sqliteRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
}

// collect adds rows to t.
func collect(rows sqliteRows, t *table) error {
	names := rows.Columns()
	if len(names) == 0 { // a statement that gives no rows
		return nil
	}
	t.begin(names)
	values := make([]driver.Value, len(names))
	for {
		if err := rows.Next(values); err != nil {
			return unlessEOF(err)
		}
		err := t.row(func(buf []byte, i int) ([]byte, error) {
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

// appendSQLite appends a value by its column's declared type, "" for an
// expression. Text is text; that of a column declared JSON is a document, and
// null as an expression's text is null, as MCP Toolbox has it.
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

// statement compiles a text, unless that was done before. done follows its use.
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
	return s, kept, c.prepared.keep(text, s)
}

// Close implements driver.Conn.
func (c *sqliteConn) Close() error {
	defer c.tls.Close()
	return errors.Join(c.prepared.forget(), c.sqliteDriverConn.Close())
}

// interruptWith stops what the connection does when ctx ends, until end has
// returned.
func (c *sqliteConn) interruptWith(ctx context.Context) (end func()) {
	i := &interrupter{db: c.db}
	stop := context.AfterFunc(ctx, i.run)
	return func() {
		if !stop() {
			i.end()
		}
	}
}

// interrupter stops the statement that runs until it is over.
type interrupter struct {
	db   uintptr
	over atomic.Bool
	busy sync.Mutex
}

// run tells it again and again: a statement that is just about to begin takes no
// notice. The connection's own TLS is in use meanwhile.
func (i *interrupter) run() {
	i.busy.Lock()
	defer i.busy.Unlock()
	tls := libc.NewTLS()
	defer tls.Close()
	for !i.over.Load() {
		sqlite3.Xsqlite3_interrupt(tls, i.db)
		time.Sleep(time.Millisecond)
	}
}

// end returns when nothing is stopped any more.
func (i *interrupter) end() {
	i.over.Store(true)
	i.busy.Lock()
	defer i.busy.Unlock()
}
