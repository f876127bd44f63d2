package database_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// trips counts the times that its connections wrote, and then read.
type trips struct {
	count atomic.Int64
}

func (c *trips) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &counted{Conn: conn, trips: c}, nil
}

type counted struct {
	net.Conn
	trips *trips
	asked atomic.Bool
}

func (c *counted) Write(b []byte) (int, error) {
	c.asked.Store(true)
	return c.Conn.Write(b)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.asked.Swap(false) {
		c.trips.count.Add(1)
	}
	return n, err
}

// The way to a database and back is what a small statement costs.
func TestAStatementGoesToTheDatabaseAsSeldomAsCanBe(t *testing.T) {
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
			var way trips
			c := config(t, tt.kind)
			c.Mode, c.Dial, c.MaxConns = tt.mode, way.dial, 1
			db, statement := open(t, c), none
			if len(tt.args) > 0 {
				statement = fmt.Sprintf(one, placeholder(tt.kind, 1, "text"))
			}
			for n := range 5 {
				before := way.count.Load()
				if _, err := db.Query(t.Context(), database.Query{SQL: statement, Args: tt.args, ReadOnly: tt.reads}); err != nil {
					t.Fatal(err)
				}
				if got := way.count.Load() - before; n > 0 && got != tt.want {
					t.Errorf("the statement %d took %d round trips, want %d", n, got, tt.want)
				}
			}
		})
	}
}
