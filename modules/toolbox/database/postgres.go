package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rolecall/rolecall/errcode"
)

// postgresDB is a PostgreSQL server.
type postgresDB struct {
	config   *pgxpool.Config
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
		Host: net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), Path: "/" + c.Database, RawQuery: strings.ReplaceAll(params.Encode(), "+", "%20")} // a plus is itself to the driver
	config, err := pgxpool.ParseConfig(at.String())
	if err != nil {
		return nil, errors.New("host, port, user, database or queryParams cannot be used together")
	}
	settle(config.ConnConfig.RuntimeParams)
	config.MaxConns = int32(c.MaxConns)
	config.ConnConfig.DefaultQueryExecMode = mode
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = patience
	}
	if c.Dial != nil {
		config.ConnConfig.DialFunc = func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }
		config.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	return &postgresDB{config: config, readOnly: c.ReadOnly}, nil
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
			return nil, unreachable{err}
		}
		d.pool = pool
	}
	pool := d.pool
	d.mu.Unlock()
	if pool == nil {
		return nil, unreachable{errors.New("the source is closed")}
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, unreachable{err}
	}
	return conn, nil
}

func (d *postgresDB) query(ctx context.Context, q Query, t *table) error {
	args, err := postgresArgs(q.Args)
	if err != nil {
		return err
	}
	reads := q.ReadOnly || d.readOnly
	if reads {
		if err := reading(Postgres, q.SQL); err != nil {
			return err
		}
	}
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if q.Foreign {
		defer closeNow(ctx, conn)
	}
	conn.Conn().PgConn().Frontend().SetMaxBodyLen(4*q.MaxBytes + maxHead)
	if !reads {
		return postgresError(d.run(ctx, conn, q.SQL, d.options(false), args, t))
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return unreachable{err}
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	return postgresError(d.run(ctx, tx, q.SQL, d.options(true), args, t))
}

// maxHead is what a message of the server may have beside a row, in bytes. Rows
// as text are longer than as JSON, but not four times.
const maxHead = 1 << 20

// options ask for all columns as text, which is exact for every type. The simple
// protocol takes several statements at once, of which the first could end the
// transaction of a reader.
func (d *postgresDB) options(reads bool) []any {
	formats := pgx.QueryResultFormats{pgx.TextFormatCode}
	if reads && d.config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		return []any{pgx.QueryExecModeExec, formats}
	}
	return []any{formats}
}

// closeNow ends a connection before its pool has it back.
func closeNow(ctx context.Context, conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = conn.Conn().Close(ctx) // it is gone either way
}

// run adds the rows of a statement to t.
func (d *postgresDB) run(ctx context.Context, on interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, statement string, options, args []any, t *table) error {
	rows, err := on.Query(ctx, statement, append(options, args...)...)
	if err != nil {
		return err
	}
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
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Errorf("%s (SQLSTATE %s)", said.Message, said.Code)
	}
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return errcode.New(errcode.ResultTooLarge, "run a statement: one of its rows is too long; ask for less")
	}
	if pgconn.SafeToRetry(err) {
		return unreachable{err}
	}
	if isBroken(err) {
		return lost{err}
	}
	return err
}

// postgresArgs gives arguments as pgx takes them: lists of one type as such, so
// that ANY($1) works, everything else that is no scalar as JSON.
func postgresArgs(args []any) ([]any, error) {
	list := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case []any:
			list[i] = postgresList(v)
		case json.RawMessage:
			list[i] = string(v)
		default:
			list[i] = arg
		}
	}
	return list, nil
}

func postgresList(v []any) any {
	if len(v) == 0 {
		return []string{}
	}
	switch v[0].(type) {
	case string:
		return typed[string](v)
	case int64:
		return typed[int64](v)
	case float64:
		return typed[float64](v)
	case bool:
		return typed[bool](v)
	}
	return v
}

func typed[T any](v []any) any {
	list := make([]T, len(v))
	for i, item := range v {
		one, ok := item.(T)
		if !ok {
			return v
		}
		list[i] = one
	}
	return list
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
