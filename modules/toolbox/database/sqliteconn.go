package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"reflect"
	"sync"

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
	driven, ok := conn.(sqliteDriven)
	handle := reflect.Indirect(reflect.ValueOf(conn)).FieldByName("db") // the driver gives it to nobody
	if !ok || handle.Kind() != reflect.Uintptr {
		return nil, errors.Join(errors.New("the driver of SQLite is another one"), conn.Close())
	}
	s := &sqliteConn{sqliteDriven: driven, db: uintptr(handle.Uint()), prepared: map[string]driver.Stmt{}}
	s.limit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
	return s, nil
}

// sqliteDriven is a connection as the driver has it.
type sqliteDriven interface {
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
	sqliteDriven
	db       uintptr
	length   int // the limit of a value or a row, in bytes
	prepared map[string]driver.Stmt
}

// A connection keeps so many statements, of so many bytes each at most: some
// are made of what a caller says.
const (
	maxPrepared     = 64
	maxPreparedText = 8 << 10
)

func (c *sqliteConn) limit(id int32, value int) {
	tls := libc.NewTLS()
	defer tls.Close()
	sqlite3.Xsqlite3_limit(tls, c.db, id, int32(value))
}

// longest limits a value and a row to so many bytes.
func (c *sqliteConn) longest(bytes int) {
	if c.length != bytes {
		c.limit(sqlite3.SQLITE_LIMIT_LENGTH, bytes)
		c.length = bytes
	}
}

// QueryContext implements driver.QueryerContext.
func (c *sqliteConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, done, err := c.statement(text)
	if err != nil {
		return nil, err
	}
	end := c.interruptWith(ctx)
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.WithoutCancel(ctx), args)
	if err != nil {
		end()
		return nil, errors.Join(err, done())
	}
	return &sqliteRows{rows.(sqliteResult), end, done}, nil
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
	case len(c.prepared) >= maxPrepared:
		err = c.forgetStatements()
	}
	c.prepared[text] = s
	return s, kept, err
}

func (c *sqliteConn) forgetStatements() error {
	var errs []error
	for text, s := range c.prepared {
		errs = append(errs, s.Close())
		delete(c.prepared, text)
	}
	return errors.Join(errs...)
}

// Close implements driver.Conn.
func (c *sqliteConn) Close() error {
	return errors.Join(c.forgetStatements(), c.sqliteDriven.Close())
}

// sqliteResult is rows as the driver has them.
type sqliteResult interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
}

// sqliteRows are rows that can be stopped until they are closed.
type sqliteRows struct {
	sqliteResult
	end  func()
	done func() error
}

// Close implements driver.Rows.
func (r *sqliteRows) Close() error {
	r.end()
	return errors.Join(r.sqliteResult.Close(), r.done())
}

// interruptWith stops what the connection does when ctx ends, until end has
// returned.
func (c *sqliteConn) interruptWith(ctx context.Context) (end func()) {
	var mu sync.Mutex
	ended := false
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			c.interrupt()
		}
	})
	return func() {
		if stop() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		ended = true
	}
}

// interrupt may be called while the connection is used: not with its own TLS.
func (c *sqliteConn) interrupt() {
	tls := libc.NewTLS()
	defer tls.Close()
	sqlite3.Xsqlite3_interrupt(tls, c.db)
}
