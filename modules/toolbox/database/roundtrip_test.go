package database_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// roundTrips counts how often its connections read after a write.
type roundTrips struct {
	count atomic.Int64
}

func (r *roundTrips) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: conn, trips: r}, nil
}

// countingConn counts its round trips.
type countingConn struct {
	net.Conn
	trips *roundTrips
	wrote atomic.Bool
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.wrote.Swap(false) {
		c.trips.count.Add(1)
	}
	return n, err
}

// A small statement needs as few round trips as possible.
func TestDB_QueryRoundTrips(t *testing.T) {
	const none, one = "SELECT 1 AS v", "SELECT %s AS v"
	for _, tt := range []struct {
		kind  database.Type
		mode  string
		reads bool
		args  []any
		want  int64
	}{
		{database.Postgres, "", true, nil, 1},
		{database.Postgres, "", true, []any{"a"}, 1},
		{database.Postgres, "", false, nil, 1},
		{database.Postgres, "", false, []any{"a"}, 1},
		{database.Postgres, "cache_describe", true, []any{"a"}, 1},
		{database.Postgres, "describe_exec", true, []any{"a"}, 2},
		{database.Postgres, "exec", true, []any{"a"}, 1},
		{database.Postgres, "simple_protocol", true, []any{"a"}, 1},
		{database.MySQL, "", true, nil, 3},
		{database.MySQL, "", true, []any{"a"}, 3},
		{database.MySQL, "", false, nil, 1},
		{database.MySQL, "", false, []any{"a"}, 1},
	} {
		t.Run(fmt.Sprintf("%s %s %t %d", tt.kind, tt.mode, tt.reads, len(tt.args)), func(t *testing.T) {
			var trips roundTrips
			c := config(t, tt.kind)
			c.Mode, c.Dial, c.MaxConns = tt.mode, trips.dial, 1
			db, statement := open(t, c), none
			if len(tt.args) > 0 {
				statement = fmt.Sprintf(one, placeholder(tt.kind, 1, "text"))
			}
			for n := range 5 {
				before := trips.count.Load()
				if _, err := db.Query(t.Context(), database.Query{SQL: statement, Args: tt.args, ReadOnly: tt.reads}); err != nil {
					t.Fatal(err)
				}
				if got := trips.count.Load() - before; n > 0 && got != tt.want {
					t.Errorf("the statement %d took %d round trips, want %d", n, got, tt.want)
				}
			}
		})
	}
}
