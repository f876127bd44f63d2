package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// mysqlConnector opens connections that know their connection id at the server.
type mysqlConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	driven, ok := conn.(mysqlDriverConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("unexpected MySQL driver connection type %T", conn), conn.Close())
	}
	id, err := queryConnectionID(ctx, driven)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &mysqlConn{mysqlDriverConn: driven, connectionID: id, prepared: prepared{}}, nil
}

// queryConnectionID returns the server's id of a connection, which KILL needs.
func queryConnectionID(ctx context.Context, conn driver.QueryerContext) (string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT CONNECTION_ID()", nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return "", err
	}
	switch id := row[0].(type) {
	case int64, uint64:
		return fmt.Sprint(id), nil
	case []byte:
		return string(id), nil
	}
	return "", fmt.Errorf("unexpected type of a connection id: %T", row[0])
}

// mysqlDriverConn is a connection of the driver.
type mysqlDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// mysqlConn knows its connection id, by which kill ends its statement, and reuses
// prepared statements. Like every driver.Conn it is used by one goroutine at a time.
type mysqlConn struct {
	mysqlDriverConn
	connectionID string
	prepared     prepared
	long         driver.Stmt // the last statement that was too long for prepared; may be nil
}

// connectionIDOf returns the server id of a connection, which must not be released yet.
func connectionIDOf(conn *sql.Conn) (id string) {
	_ = conn.Raw(func(c any) error { // cannot fail before the release
		id = c.(*mysqlConn).connectionID
		return nil
	})
	return id
}

// QueryContext implements driver.QueryerContext. The server counts the placeholders,
// since a question mark may stand in a string or a comment.
func (c *mysqlConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 {
		return c.mysqlDriverConn.QueryContext(ctx, text, nil)
	}
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	n := s.NumInput()
	if n > len(args) {
		return nil, fmt.Errorf("the statement has %d placeholders but %d values", n, len(args))
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, args[:n])
	if err != nil { // the server may require preparing it again
		delete(c.prepared, text)
		return nil, errors.Join(err, s.Close())
	}
	return rows, nil
}

// statement returns the prepared statement of a text, which it reuses.
func (c *mysqlConn) statement(ctx context.Context, text string) (driver.Stmt, error) {
	if s, ok := c.prepared[text]; ok {
		return s, nil
	}
	s, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(text) > maxPreparedText {
		before := c.long
		if c.long = s; before != nil {
			err = before.Close()
		}
		return s, err
	}
	return s, c.prepared.add(text, s)
}
