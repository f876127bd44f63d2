package database_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// A statement is interrupted at any row. Its connection and its compiled form can be
// reused.
func TestSQLite_InterruptsAnyRow(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	const endless = `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < ?1) SELECT 1 AS n UNION ALL SELECT count(*) FROM c`
	for n := range 300 { // some end just as the statement begins
		_, err := db.Query(t.Context(), database.Query{SQL: endless, Args: []any{int64(1 << 40)}, Timeout: time.Duration(n+1) * 10 * time.Microsecond})
		if code := errcode.CodeOf(err); code != errcode.ToolTimeout && code != errcode.ToolUnavailable {
			t.Fatalf("got %v", err)
		}
	}
	if got := query(t, db, endless, int64(3)); got != `[{"n":1},{"n":3}]` {
		t.Errorf("then: %s", got)
	}
}

// A reused compiled statement follows its arguments and the current schema, also when
// there are more or longer statements than are kept.
func TestSQLite_ReusesPreparedStatements(t *testing.T) {
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
		if _, err := db.Query(t.Context(), database.Query{SQL: fails, Args: []any{int64(-1 << 63)}}); errcode.CodeOf(err) != errcode.ToolExecutionFailed {
			t.Errorf("an overflow returned %v", err)
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
	if _, err := db.Query(t.Context(), database.Query{SQL: all}); errcode.CodeOf(err) != errcode.ToolExecutionFailed {
		t.Errorf("a dropped table returned %v", err)
	}
}

// A transaction that a statement leaves open is rolled back, and a ReadOnly statement
// cannot roll back anything else.
func TestSQLite_OpenTransactionIsRolledBack(t *testing.T) {
	for _, file := range []string{":memory:", t.TempDir() + "/t.db"} {
		db := open(t, database.Config{Type: database.SQLite, Database: file, MaxConns: 1})
		query(t, db, "CREATE TABLE k(a)")
		for n, reader := range []string{"BEGIN", "SAVEPOINT s", "BEGIN; SELECT * FROM k", "SELECT 1; BEGIN"} {
			_, _ = db.Query(t.Context(), database.Query{SQL: reader, ReadOnly: true}) // may fail
			query(t, db, "INSERT INTO k VALUES (?1)", int64(n))
			_, _ = db.Query(t.Context(), database.Query{SQL: "ROLLBACK", ReadOnly: true})
			rows, err := db.Query(t.Context(), database.Query{SQL: "SELECT count(*) AS n FROM k", ReadOnly: true})
			if want := fmt.Sprintf(`[{"n":%d}]`, n+1); err != nil || string(rows) != want {
				t.Errorf("%s: after %s: %s, %v, want %s", file, reader, rows, err, want)
			}
		}
		query(t, db, "BEGIN; INSERT INTO k VALUES (9); COMMIT")
		if got := query(t, db, "SELECT count(*) AS n FROM k"); got != `[{"n":5}]` {
			t.Errorf("%s: after a transaction of its own: %s", file, got)
		}
	}
}

// No statement changes settings of the process, and a ReadOnly statement changes no
// setting of a database in memory.
func TestSQLite_SharedSettingsCannotChange(t *testing.T) {
	file := open(t, config(t, database.SQLite))
	memory := open(t, database.Config{Type: database.SQLite, Database: ":memory:"})
	for _, c := range []struct {
		db  *database.DB
		sql string
		ok  bool
	}{
		{file, "PRAGMA temp_store_directory='/tmp'", false},
		{file, "SELECT 1; pragma\n\"TEMP_store_directory\" = '/tmp'", false},
		{memory, "PRAGMA data_store_directory='/tmp'", false},
		{memory, "PRAGMA journal_mode=OFF", false},
		{memory, "SELECT 1; PRAGMA/**/writable_schema=1", false},
		{memory, "SELECT count(*) FROM pragma_table_info('k')", true},
		{file, "PRAGMA table_info('k')", true},
	} {
		_, err := c.db.Query(t.Context(), database.Query{SQL: c.sql, ReadOnly: true, Untrusted: true})
		if (err == nil) != c.ok {
			t.Errorf("%s returned %v", c.sql, err)
		}
	}
}
