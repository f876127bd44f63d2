package database

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
)

// postgresDB is a PostgreSQL server.
type postgresDB struct {
	config   *pgxpool.Config
	mode     pgx.QueryExecMode
	slots    *fair.Semaphore // one for each connection of the pool
	readOnly bool

	mu     sync.Mutex // guards what follows
	pool   *pgxpool.Pool
	closed bool
}

// execModes are the values of queryExecMode.
var execModes = map[string]pgx.QueryExecMode{
	"":                pgx.QueryExecModeCacheStatement,
	"cache_statement": pgx.QueryExecModeCacheStatement,
	"cache_describe":  pgx.QueryExecModeCacheDescribe,
	"describe_exec":   pgx.QueryExecModeDescribeExec,
	"exec":            pgx.QueryExecModeExec,
	"simple_protocol": pgx.QueryExecModeSimpleProtocol,
}

func openPostgres(c Config) (engine, error) {
	mode, ok := execModes[c.Mode]
	if !ok {
		return nil, fmt.Errorf("queryExecMode %q must be cache_statement, cache_describe, describe_exec, exec or simple_protocol", c.Mode)
	}
	if c.Port == 0 {
		c.Port = 5432
	}
	params := url.Values{}
	for name, value := range c.Params {
		params.Set(name, value)
	}
	at := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password),
		Host: net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), Path: "/" + c.Database}
	config, err := parsePostgres(at, params)
	if err != nil {
		return nil, invalidParam(at, params)
	}
	pinQuoting(config.ConnConfig.RuntimeParams)
	config.MaxConns = int32(c.MaxConns)
	config.ConnConfig.DefaultQueryExecMode = readOnlyExecMode(mode)
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error { registerTextCodecs(conn.TypeMap()); return nil }
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if c.Dial != nil {
		config.ConnConfig.DialFunc = func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }
		config.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	return &postgresDB{config: config, mode: mode, slots: fair.NewSemaphore(c.MaxConns), readOnly: c.ReadOnly}, nil
}

func parsePostgres(at url.URL, params url.Values) (*pgxpool.Config, error) {
	at.RawQuery = strings.ReplaceAll(params.Encode(), "+", "%20") // the driver reads a plus as a plus
	return pgxpool.ParseConfig(at.String())
}

// invalidParam returns an error with the name of the invalid parameter. The driver accepts the
// address without that parameter. The driver's own error may contain values.
func invalidParam(at url.URL, params url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		rest := maps.Clone(params)
		rest.Del(name)
		if _, err := parsePostgres(at, rest); err == nil {
			return fmt.Errorf("queryParams: %s has a value that the driver does not accept, or names an unreadable file", name)
		}
	}
	return errors.New("the driver does not accept this combination of host, port, user, database and queryParams")
}

// readOnlyExecMode returns the mode for statements in a read-only transaction. The simple
// protocol accepts several statements in one text. The first of them could end the transaction.
// A statement could also replace a named prepared statement at the server, even "begin".
func readOnlyExecMode(mode pgx.QueryExecMode) pgx.QueryExecMode {
	switch mode {
	case pgx.QueryExecModeSimpleProtocol:
		return pgx.QueryExecModeExec
	case pgx.QueryExecModeCacheStatement:
		return pgx.QueryExecModeCacheDescribe
	}
	return mode
}

// pinQuoting sets the parameters that decide where a quoted string ends. It replaces what the
// server, the database or the configuration set.
func pinQuoting(params map[string]string) {
	for name, value := range map[string]string{"standard_conforming_strings": "on", "client_encoding": "UTF8"} {
		maps.DeleteFunc(params, func(key, _ string) bool { return strings.EqualFold(key, name) })
		params[name] = value
	}
}

// acquire returns a connection of the pool. The first call creates the pool.
func (d *postgresDB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	d.mu.Lock()
	if d.pool == nil && !d.closed {
		pool, err := pgxpool.NewWithConfig(context.Background(), d.config) // does not connect
		if err != nil {
			d.mu.Unlock()
			return nil, unavailableError{err}
		}
		d.pool = pool
	}
	pool := d.pool
	d.mu.Unlock()
	if pool == nil {
		return nil, unavailableError{errors.New("the database is closed")}
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, unavailableError{err}
	}
	return conn, nil
}

func (d *postgresDB) query(ctx context.Context, q Query, t *table) error {
	reads := q.ReadOnly || d.readOnly
	if reads {
		if err := checkReadOnly(Postgres, q.SQL); err != nil {
			return err
		}
	}
	release, err := acquireSlot(ctx, d.slots, q.Caller)
	if err != nil {
		return err
	}
	defer release()
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if q.Untrusted {
		defer closeConn(ctx, conn)
	}
	conn.Conn().PgConn().Frontend().SetMaxBodyLen(4*q.MaxBytes + maxMessageOverhead)
	if reads {
		return postgresError(d.read(ctx, conn, q, t))
	}
	return postgresError(d.run(ctx, conn, q, t))
}

// maxMessageOverhead is how many bytes a message of the server may have in addition to a row.
// The row itself has at most four times the bytes that it has as JSON.
const maxMessageOverhead = 1 << 20

// read runs a statement in a transaction in which the database rejects changes. The
// three statements are sent together, for one round trip. If the transaction does not
// begin, the server skips the rest.
func (d *postgresDB) read(ctx context.Context, conn *pgxpool.Conn, q Query, t *table) error {
	defer endTransaction(ctx, conn)
	b := &pgx.Batch{}
	b.Queue("begin read only")
	b.Queue(q.SQL, q.Args...)
	b.Queue("rollback")
	answers := conn.SendBatch(ctx, b)
	defer answers.Close() // rows.Err returns the same error
	if _, err := answers.Exec(); err != nil {
		return err
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	return collectPostgres(rows, t)
}

// endTransaction rolls back the transaction of a failed statement.
func endTransaction(ctx context.Context, conn *pgxpool.Conn) {
	if pg := conn.Conn().PgConn(); pg.IsClosed() || pg.TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback") // otherwise the pool discards the connection
}

// closeConn closes a connection before it goes back to its pool.
func closeConn(ctx context.Context, conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	_ = conn.Conn().Close(ctx) // the connection is closed even with an error
}

// run runs a statement outside a transaction.
func (d *postgresDB) run(ctx context.Context, conn *pgxpool.Conn, q Query, t *table) error {
	rows, err := conn.Query(ctx, q.SQL, append([]any{d.mode, pgx.QueryResultFormats{pgx.TextFormatCode}}, q.Args...)...)
	if err != nil {
		return err
	}
	return collectPostgres(rows, t)
}

// collectPostgres adds rows to t, and closes them.
func collectPostgres(rows pgx.Rows, t *table) error {
	defer rows.Close()
	fields := rows.FieldDescriptions()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	t.begin(names)
	for rows.Next() {
		raw := rows.RawValues()
		err := t.addRow(func(buf []byte, i int) ([]byte, error) {
			return appendPGText(buf, raw[i], fields[i].DataTypeOID), nil
		})
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// postgresError distinguishes a lost connection from an error of the statement. Of the
// latter only message and code are kept.
func postgresError(err error) error {
	if err == nil {
		return nil
	}
	if step, ok := errors.AsType[pgx.ErrPreprocessingBatch](err); ok { // its text repeats the statement
		err = errors.Unwrap(step)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if e.SeverityUnlocalized == "FATAL" { // the server closes the connection
			return connLostError{err}
		}
		return fmt.Errorf("%s (SQLSTATE %s)", e.Message, e.Code)
	}
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return errcode.New(errcode.ResultTooLarge, "run a statement: a row is too long; request less data")
	}
	if pgconn.SafeToRetry(err) {
		return unavailableError{err}
	}
	if isBroken(err) {
		return connLostError{err}
	}
	return err
}

// close closes the pool. It waits for running statements.
func (d *postgresDB) close() error {
	d.mu.Lock()
	pool := d.pool
	d.pool, d.closed = nil, true
	d.mu.Unlock()
	if pool != nil {
		pool.Close()
	}
	return nil
}
