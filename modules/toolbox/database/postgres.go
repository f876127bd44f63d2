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
	places   *fair.Semaphore // at the pool's connections
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
		return nil, fmt.Errorf("queryExecMode %q is none of cache_statement, cache_describe, describe_exec, exec, simple_protocol", c.Mode)
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
	settle(config.ConnConfig.RuntimeParams)
	config.MaxConns = int32(c.MaxConns)
	config.ConnConfig.DefaultQueryExecMode = readerExecMode(mode)
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error { registerTextCodecs(conn.TypeMap()); return nil }
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = patience
	}
	if c.Dial != nil {
		config.ConnConfig.DialFunc = func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }
		config.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	return &postgresDB{config: config, mode: mode, places: fair.NewSemaphore(c.MaxConns), readOnly: c.ReadOnly}, nil
}

func parsePostgres(at url.URL, params url.Values) (*pgxpool.Config, error) {
	at.RawQuery = strings.ReplaceAll(params.Encode(), "+", "%20") // a plus is itself to the driver
	return pgxpool.ParseConfig(at.String())
}

// invalidParam names the parameter without which an address could be used. What the
// driver says of it may hold values.
func invalidParam(at url.URL, params url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		rest := maps.Clone(params)
		rest.Del(name)
		if _, err := parsePostgres(at, rest); err == nil {
			return fmt.Errorf("queryParams: %s has a value that the driver does not take, or names a file that cannot be read", name)
		}
	}
	return errors.New("host, port, user, database or queryParams cannot be used together")
}

// readerExecMode gives how statements that read are sent. The simple protocol
// takes several at once, of which the first could end a reader's transaction; and
// what has a name at the server, as what begins that transaction would, could be
// replaced by another statement.
func readerExecMode(mode pgx.QueryExecMode) pgx.QueryExecMode {
	switch mode {
	case pgx.QueryExecModeSimpleProtocol:
		return pgx.QueryExecModeExec
	case pgx.QueryExecModeCacheStatement:
		return pgx.QueryExecModeCacheDescribe
	}
	return mode
}

// settle has quotes end where they seem to, whatever the server, the database or
// the parameters say.
func settle(params map[string]string) {
	for name, value := range map[string]string{"standard_conforming_strings": "on", "client_encoding": "UTF8"} {
		maps.DeleteFunc(params, func(key, _ string) bool { return strings.EqualFold(key, name) })
		params[name] = value
	}
}

// acquire takes a connection of the pool, which is made with the first.
func (d *postgresDB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	d.mu.Lock()
	if d.pool == nil && !d.closed {
		pool, err := pgxpool.NewWithConfig(context.Background(), d.config) // connects to nothing yet
		if err != nil {
			d.mu.Unlock()
			return nil, unavailableError{err}
		}
		d.pool = pool
	}
	pool := d.pool
	d.mu.Unlock()
	if pool == nil {
		return nil, unavailableError{errors.New("the source is closed")}
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
	give, err := place(ctx, d.places, q.Caller)
	if err != nil {
		return err
	}
	defer give()
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if q.Untrusted {
		defer closeNow(ctx, conn)
	}
	conn.Conn().PgConn().Frontend().SetMaxBodyLen(4*q.MaxBytes + maxHead)
	if reads {
		return postgresError(d.read(ctx, conn, q, t))
	}
	return postgresError(d.run(ctx, conn, q, t))
}

// maxHead is what a message of the server may have beside a row, in bytes. Rows
// as text are longer than as JSON, but not four times.
const maxHead = 1 << 20

// read runs a statement in a transaction in which the database refuses changes.
// All goes out at once: when the transaction does not begin, the server leaves
// out the rest.
func (d *postgresDB) read(ctx context.Context, conn *pgxpool.Conn, q Query, t *table) error {
	defer endTransaction(ctx, conn)
	b := &pgx.Batch{}
	b.Queue("begin read only")
	b.Queue(q.SQL, q.Args...)
	b.Queue("rollback")
	answers := conn.SendBatch(ctx, b)
	defer answers.Close() // what it may say, the rows have said
	if _, err := answers.Exec(); err != nil {
		return err
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	return collectPostgres(rows, t)
}

// endTransaction ends the transaction of a statement that failed.
func endTransaction(ctx context.Context, conn *pgxpool.Conn) {
	if pg := conn.Conn().PgConn(); pg.IsClosed() || pg.TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback") // else the pool does not take it back
}

// closeNow ends a connection before its pool has it back.
func closeNow(ctx context.Context, conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = conn.Conn().Close(ctx) // it is gone either way
}

// run runs a statement by itself.
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
		err := t.row(func(buf []byte, i int) ([]byte, error) {
			return appendPostgres(buf, raw[i], fields[i].DataTypeOID), nil
		})
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// postgresError tells a lost connection from the server's words, of which the
// message is passed on.
func postgresError(err error) error {
	if err == nil {
		return nil
	}
	if step, ok := errors.AsType[pgx.ErrPreprocessingBatch](err); ok { // it repeats the statement
		err = errors.Unwrap(step)
	}
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		if said.SeverityUnlocalized == "FATAL" { // it closes the connection with that
			return connLostError{err}
		}
		return fmt.Errorf("%s (SQLSTATE %s)", said.Message, said.Code)
	}
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return errcode.New(errcode.ResultTooLarge, "run a statement: one of its rows is too long; ask for less")
	}
	if pgconn.SafeToRetry(err) {
		return unavailableError{err}
	}
	if isBroken(err) {
		return connLostError{err}
	}
	return err
}

// close closes the connections when they are given back.
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
