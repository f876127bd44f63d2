package database_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// crowd has a hundred slow statements of one caller under way, until its end.
func crowd(t *testing.T, db *database.DB, q database.Query) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	for range 100 {
		beside.Go(func() { _, _ = db.Query(ctx, q) })
	}
	return func() { cancel(); beside.Wait() }
}

// One caller with a hundred slow statements holds up another's quick one no
// longer than its own takes.
func TestOneCallerLeavesConnectionsToOthers(t *testing.T) {
	each(t, func(t *testing.T, kind database.Type) {
		for _, reads := range []bool{true, false} {
			db := open(t, config(t, kind))
			query(t, db, "CREATE TABLE a(n INT)")
			end := crowd(t, db, database.Query{SQL: slow[kind], Caller: "ann", ReadOnly: reads, Timeout: time.Minute})
			waits := database.Query{SQL: "SELECT n FROM a", Caller: "ann", ReadOnly: reads, Timeout: 20 * time.Millisecond}
			for err := error(nil); !errors.Is(err, database.ErrNoConnection); { // until ann has what she may have
				if _, err = db.Query(t.Context(), waits); err != nil && errcode.Of(err) != errcode.ToolUnavailable && errcode.Of(err) != errcode.ToolTimeout {
					t.Fatalf("got %v", err)
				}
			}
			for _, who := range []string{"bob", "eve", "joe"} {
				q := database.Query{SQL: "SELECT count(*) AS n FROM a", Caller: who, ReadOnly: reads}
				if rows, err := db.Query(t.Context(), q); err != nil || string(rows) != `[{"n":0}]` {
					t.Errorf("%s (%t): got %s %v", who, reads, rows, err)
				}
			}
			end()
			if got := query(t, db, "SELECT count(*) AS n FROM a"); got != `[{"n":0}]` {
				t.Errorf("afterwards: %s", got)
			}
		}
	})
}

// Of a database with one connection a caller with many statements has every
// other turn, not all.
func TestCallersOfOneConnectionTakeTurns(t *testing.T) {
	const statement = "INSERT INTO a VALUES (1)"
	for _, kind := range kinds {
		c := config(t, kind)
		c.MaxConns = 1
		db := open(t, c)
		query(t, db, "CREATE TABLE a(n INT)")
		ctx, cancel := context.WithCancel(t.Context())
		var beside sync.WaitGroup
		for range 100 {
			beside.Go(func() {
				for ctx.Err() == nil {
					_, _ = db.Query(ctx, database.Query{SQL: statement, Caller: "ann"})
				}
			})
		}
		before := written(t, db)
		for range 20 {
			if _, err := db.Query(t.Context(), database.Query{SQL: statement, Caller: "bob"}); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if now := written(t, db) - before; now > 600 {
			t.Errorf("%s: while bob wrote 20 rows, %d were written", kind, now)
		}
		cancel()
		beside.Wait()
	}
}

// written counts the rows of a.
func written(t *testing.T, db *database.DB) (n int64) {
	t.Helper()
	rows, err := db.Query(t.Context(), database.Query{SQL: "SELECT count(*) AS n FROM a", Caller: "eve"})
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ N int64 }
	if err := json.Unmarshal(rows, &list); err != nil {
		t.Fatal(err)
	}
	return list[0].N
}
