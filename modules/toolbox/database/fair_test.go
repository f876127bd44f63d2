package database_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// startSlowQueries runs a hundred statements of one caller until end is called.
func startSlowQueries(t *testing.T, db *database.DB, q database.Query) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() { _, _ = db.Query(ctx, q) })
	}
	return func() { cancel(); running.Wait() }
}

// A caller with a hundred slow statements does not delay the quick ones of others.
func TestDB_OneCallerLeavesConnectionsToOthers(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		for _, reads := range []bool{true, false} {
			db := open(t, config(t, kind))
			query(t, db, "CREATE TABLE a(n INT)")
			end := startSlowQueries(t, db, database.Query{SQL: slowQuery[kind], Caller: fair.Key{Owner: "ann"}, ReadOnly: reads, Timeout: time.Minute})
			waits := database.Query{SQL: "SELECT n FROM a", Caller: fair.Key{Owner: "ann"}, ReadOnly: reads, Timeout: 20 * time.Millisecond}
			for err := error(nil); !errors.Is(err, database.ErrNoConnection); { // until ann has all her connections
				if _, err = db.Query(t.Context(), waits); err != nil && errcode.CodeOf(err) != errcode.ToolUnavailable && errcode.CodeOf(err) != errcode.ToolTimeout {
					t.Fatalf("got %v", err)
				}
			}
			for _, caller := range []string{"bob", "eve", "joe"} {
				q := database.Query{SQL: "SELECT count(*) AS n FROM a", Caller: fair.Key{Owner: caller}, ReadOnly: reads}
				if rows, err := db.Query(t.Context(), q); err != nil || string(rows) != `[{"n":0}]` {
					t.Errorf("%s (%t): got %s %v", caller, reads, rows, err)
				}
			}
			end()
			if got := query(t, db, "SELECT count(*) AS n FROM a"); got != `[{"n":0}]` {
				t.Errorf("afterwards: %s", got)
			}
		}
	})
}

// On one connection two callers alternate, however many statements one of them has.
func TestDB_CallersTakeTurns(t *testing.T) {
	const statement = "INSERT INTO a VALUES (1)"
	for _, kind := range allTypes {
		c := config(t, kind)
		c.MaxConns = 1
		db := open(t, c)
		query(t, db, "CREATE TABLE a(n INT)")
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 100 {
			running.Go(func() {
				for ctx.Err() == nil {
					_, _ = db.Query(ctx, database.Query{SQL: statement, Caller: fair.Key{Owner: "ann"}})
				}
			})
		}
		before := countRows(t, db)
		for range 20 {
			if _, err := db.Query(t.Context(), database.Query{SQL: statement, Caller: fair.Key{Owner: "bob"}}); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if now := countRows(t, db) - before; now > 600 {
			t.Errorf("%s: while bob wrote 20 rows, %d were written", kind, now)
		}
		cancel()
		running.Wait()
	}
}

// countRows returns the number of rows in table a.
func countRows(t *testing.T, db *database.DB) (n int64) {
	t.Helper()
	rows, err := db.Query(t.Context(), database.Query{SQL: "SELECT count(*) AS n FROM a", Caller: fair.Key{Owner: "eve"}})
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ N int64 }
	if err := json.Unmarshal(rows, &list); err != nil {
		t.Fatal(err)
	}
	return list[0].N
}
