package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rolecall/rolecall/internal/fair"
)

// mysqlDB is a MySQL or MariaDB server.
type mysqlDB struct {
	pool     *sql.DB
	slots    *fair.Semaphore // one for each connection of the pool
	killPool *sql.DB         // for KILL statements; keeps no idle connection
	readOnly bool
}

func openMySQL(c Config) (engine, error) {
	config, err := mysqlConfig(c)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(mysqlConnector{connector})
	pool.SetMaxOpenConns(c.MaxConns)
	pool.SetMaxIdleConns(c.MaxConns)
	killPool := sql.OpenDB(connector)
	killPool.SetMaxOpenConns(c.MaxConns)
	killPool.SetMaxIdleConns(-1)
	return &mysqlDB{pool, fair.NewSemaphore(c.MaxConns), killPool, c.ReadOnly}, nil
}

func mysqlConfig(c Config) (*mysql.Config, error) {
	config := mysql.NewConfig()
	if err := checkParams(c.Params); err != nil {
		return nil, err
	}
	if len(c.Params) > 0 { // the driver parses them only as a connection string
		var pairs []string
		for name, value := range c.Params {
			pairs = append(pairs, name+"="+value)
		}
		parsed, err := mysql.ParseDSN("/?" + strings.Join(pairs, "&"))
		if err != nil {
			return nil, errors.New("queryParams: the MySQL driver does not accept them")
		}
		config = parsed
	}
	if c.Port == 0 {
		c.Port = 3306
	}
	config.Net, config.Addr = "tcp", net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	config.User, config.Passwd, config.DBName = c.User, c.Password, c.Database
	config.MultiStatements, config.AllowAllFiles, config.InterpolateParams, config.ParseTime = false, false, false, false
	config.Logger = discardLogger{}
	if config.Timeout == 0 {
		config.Timeout = connectTimeout
	}
	if c.Dial != nil {
		config.DialFunc = func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }
	}
	return config, nil
}

// checkParams rejects an & that would begin another parameter, and character sets other
// than UTF-8. In some of them a byte of a character may be a backslash, so that quotes
// would end in another place.
func checkParams(params map[string]string) error {
	for name, value := range params {
		if strings.ContainsAny(name, "&=") || strings.Contains(value, "&") {
			return errors.New("queryParams: a name or value contains &, which begins another parameter; write %26")
		}
		name = strings.ToLower(name)
		if !strings.Contains(name, "charset") && !strings.Contains(name, "character_set") && !strings.Contains(name, "collation") {
			continue
		}
		for one := range strings.SplitSeq(value, ",") {
			if !strings.HasPrefix(strings.ToLower(strings.Trim(one, `'" `)), "utf8") {
				return errors.New("queryParams: " + name + " must be a UTF-8 character set or collation such as utf8mb4")
			}
		}
	}
	return nil
}

// discardLogger is a mysql.Logger that drops everything: the driver logs host names.
type discardLogger struct{}

func (discardLogger) Print(...any) {}

func (d *mysqlDB) query(ctx context.Context, q Query, t *table) error {
	reads := q.ReadOnly || d.readOnly
	if reads {
		if err := checkReadOnly(MySQL, q.SQL); err != nil {
			return err
		}
	}
	release, err := acquireSlot(ctx, d.slots, q.Caller)
	if err != nil {
		return err
	}
	defer release()
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return unavailableError{err}
	}
	defer conn.Close()
	if q.Untrusted {
		defer dropConn(conn)
	}
	number := connectionIDOf(conn)
	defer func() {
		if ctx.Err() != nil {
			d.kill(conn, number)
		}
	}()
	if reads {
		return runReadOnly(ctx, conn, func(tx *sql.Tx) error { return runMySQL(ctx, tx, q, t) })
	}
	return runMySQL(ctx, conn, q, t)
}

// killTimeout limits the time to end a statement.
const killTimeout = 2 * time.Second

// kill ends the statement of a connection, since the server would continue it after
// the client is gone. The connection must not be back in its pool yet.
func (d *mysqlDB) kill(conn *sql.Conn, number string) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_, _ = d.killPool.ExecContext(ctx, "KILL "+number) // the statement may have ended
	dropConn(conn)
}

// runReadOnly runs fn in a transaction in which the database rejects changes.
func runReadOnly(ctx context.Context, conn *sql.Conn, fn func(*sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return unavailableError{err}
	}
	defer tx.Rollback()
	return fn(tx)
}

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
}

// runMySQL runs a statement and adds its rows to t.
func runMySQL(ctx context.Context, on querier, q Query, t *table) error {
	args := q.Args
	if !strings.Contains(q.SQL, "?") { // nothing to prepare
		args = nil
	}
	rows, err := on.QueryContext(ctx, q.SQL, args...)
	if err != nil {
		return mysqlError(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	if len(types) == 0 {
		return mysqlError(errors.Join(rows.Err(), rows.Close()))
	}
	return mysqlError(collectMySQL(rows, types, t))
}

// mysqlError distinguishes a lost connection from an error of the statement.
func mysqlError(err error) error {
	if errors.Is(err, driver.ErrBadConn) { // nothing was sent
		return unavailableError{err}
	}
	if errors.Is(err, mysql.ErrInvalidConn) || isBroken(err) {
		return connLostError{err}
	}
	return err
}

// isBroken reports whether an error comes from a broken connection.
func isBroken(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func collectMySQL(rows *sql.Rows, types []*sql.ColumnType, t *table) error {
	names, kinds := make([]string, len(types)), make([]string, len(types))
	values, targets := make([]any, len(types)), make([]any, len(types))
	for i, c := range types {
		names[i], kinds[i], targets[i] = c.Name(), strings.TrimPrefix(c.DatabaseTypeName(), "UNSIGNED "), &values[i]
	}
	t.begin(names)
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		err := t.addRow(func(buf []byte, i int) ([]byte, error) { return appendMySQL(buf, values[i], kinds[i]), nil })
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// appendMySQL appends a value by its column's type. The text protocol returns every
// value as bytes, the binary protocol numbers as Go values.
func appendMySQL(buf []byte, v any, kind string) []byte {
	text, ok := v.([]byte)
	if !ok {
		return appendValue(buf, v)
	}
	switch kind {
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR", "DECIMAL", "FLOAT", "DOUBLE":
		if isNumber(text) {
			return append(buf, text...)
		}
		return appendText(buf, string(text))
	case "JSON":
		return appendDocument(buf, string(text))
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "BIT", "GEOMETRY":
		return appendValue(buf, text)
	case "TIMESTAMP", "DATETIME":
		return appendText(buf, isoTime(string(text)))
	}
	return appendText(buf, string(text))
}

// isoTime returns a time of the server in the form of RFC 3339, but without a zone. The server's
// time has no zone.
func isoTime(text string) string { return strings.Replace(text, " ", "T", 1) }

func (d *mysqlDB) close() error { return errors.Join(d.pool.Close(), d.killPool.Close()) }
