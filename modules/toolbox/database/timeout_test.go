package database_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// runningStatements counts the statements that the server is running for the test.
var runningStatements = map[database.Type]string{
	database.Postgres: "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() AND pid <> pg_backend_pid()",
	database.MySQL:    "SELECT count(*) AS n FROM information_schema.processlist WHERE command = 'Query' AND db = DATABASE() AND id <> CONNECTION_ID()",
}

// A statement that timed out ends in the database too, and does not keep using it.
func TestDB_TimeoutEndsStatementInDatabase(t *testing.T) {
	for kind, count := range runningStatements {
		db := open(t, config(t, kind))
		query(t, db, "SELECT 1 AS a")
		for _, reads := range []bool{true, false} {
			if _, err := db.Query(t.Context(), database.Query{SQL: slowQuery[kind], ReadOnly: reads, Timeout: 100 * time.Millisecond}); errcode.CodeOf(err) != errcode.ToolTimeout {
				t.Errorf("%s (%t): got %v", kind, reads, err)
			}
			for end := time.Now().Add(5 * time.Second); query(t, db, count) != `[{"n":0}]`; {
				if time.Now().After(end) {
					t.Errorf("%s (%t): the statement is still running", kind, reads)
					break
				}
			}
		}
	}
}

// After a failed statement, or one with too many rows, the connection is reused and
// has no open transaction.
func TestDB_FailedReadKeepsConnection(t *testing.T) {
	for kind, number := range map[database.Type]string{database.Postgres: "SELECT pg_backend_pid() AS n", database.MySQL: "SELECT CONNECTION_ID() AS n"} {
		modes := []string{""}
		if kind == database.Postgres {
			modes = []string{"", "cache_describe", "describe_exec", "exec", "simple_protocol"}
		}
		for _, mode := range modes {
			c := config(t, kind)
			c.MaxConns, c.Mode = 1, mode
			db := open(t, c)
			query(t, db, "CREATE TABLE a(n INT)")
			first := query(t, db, number)
			for _, q := range []database.Query{
				{SQL: "SELECT * FROM nowhere"}, {SQL: "SELEKT"}, {SQL: "SELECT 1 AS a UNION ALL SELECT 2", MaxRows: 1}, {SQL: "SELECT (SELECT 1 AS a UNION ALL SELECT 2) AS a"},
				{SQL: "WITH x AS (SELECT 1 AS a) SELECT n FROM a, nowhere"},
			} {
				for range 3 {
					q.ReadOnly = true
					if rows, err := db.Query(t.Context(), q); err == nil {
						t.Errorf("%s %s: %s returned %s", kind, mode, q.SQL, rows)
					}
					query(t, db, "INSERT INTO a VALUES (1)")
				}
			}
			if last := query(t, db, number); last != first {
				t.Errorf("%s %s: connection %s, then %s", kind, mode, first, last)
			}
			if got := query(t, open(t, c), "SELECT count(*) AS n FROM a"); got != `[{"n":15}]` {
				t.Errorf("%s %s: others read %s", kind, mode, got)
			}
		}
	}
}

// A connection that the server terminated is not an error of the statement, and the next
// statement gets another one.
func TestPostgres_TerminatedConnectionIsLost(t *testing.T) {
	c := config(t, database.Postgres)
	c.MaxConns = 1
	db, other := open(t, c), open(t, c)
	query(t, db, "CREATE TABLE a(n INT)")
	for _, reads := range []bool{true, false} {
		for range 5 {
			number := strings.Trim(query(t, db, "SELECT pg_backend_pid() AS n"), `[{"n:}]`)
			query(t, other, "SELECT pg_terminate_backend("+number+", 5000) AS v")
			_, err := db.Query(t.Context(), database.Query{SQL: "SELECT n FROM a", ReadOnly: reads})
			if code := errcode.CodeOf(err); err != nil && code != errcode.ToolInterrupted && code != errcode.ToolUnavailable {
				t.Errorf("%t: got %v", reads, err)
			}
			query(t, db, "SELECT n FROM a")
		}
	}
}
