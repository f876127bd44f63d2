package database_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// A statement is stopped at whatever row it is, and its connection and its
// compiled form are good for the next.
func TestALaterRowOfSQLiteIsStoppedToo(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	const endless = `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < ?1) SELECT 1 AS n UNION ALL SELECT count(*) FROM c`
	for n := range 300 { // some end just as the statement begins
		_, err := db.Query(t.Context(), database.Query{SQL: endless, Args: []any{int64(1 << 40)}, Timeout: time.Duration(n+1) * 10 * time.Microsecond})
		if code := errcode.Of(err); code != errcode.ToolTimeout && code != errcode.ToolUnavailable {
			t.Fatalf("got %v", err)
		}
	}
	if got := query(t, db, endless, int64(3)); got != `[{"n":1},{"n":3}]` {
		t.Errorf("then: %s", got)
	}
}

// A statement is compiled once for a connection: what it gives follows its
// arguments and the schema all the same, also when there are more statements
// than are kept, and longer ones.
func TestStatementsOfSQLiteAreKept(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	query(t, db, "CREATE TABLE k(a)")
	query(t, db, "INSERT INTO k VALUES (?1)", int64(7))
	const all, fails = "SELECT * FROM k", "SELECT abs(?1) AS v"
	for round := range 3 {
		for n := range 100 {
			sql := fmt.Sprintf("SELECT ?1 AS v, %d AS n%s", n, strings.Repeat(" ", n%2*10_000))
			if got, want := query(t, db, sql, int64(round)), fmt.Sprintf(`[{"v":%d,"n":%d}]`, round, n); got != want {
				t.Fatalf("%s: got %s, want %s", sql, got, want)
			}
		}
		if _, err := db.Query(t.Context(), database.Query{SQL: fails, Args: []any{int64(-1 << 63)}}); errcode.Of(err) != errcode.ToolExecutionFailed {
			t.Errorf("an overflow gave %v", err)
		}
		if got := query(t, db, fails, int64(-2)); got != `[{"v":2}]` {
			t.Errorf("after an error: %s", got)
		}
	}
	for n, want := range []string{`[{"a":7}]`, `[{"a":7,"b0":null}]`, `[{"a":7,"b0":null,"b1":null}]`} {
		if got := query(t, db, all); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		query(t, db, fmt.Sprintf("ALTER TABLE k ADD COLUMN b%d", n))
	}
	query(t, db, "DROP TABLE k")
	if _, err := db.Query(t.Context(), database.Query{SQL: all}); errcode.Of(err) != errcode.ToolExecutionFailed {
		t.Errorf("a table that is gone gave %v", err)
	}
}
