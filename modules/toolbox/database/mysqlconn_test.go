package database_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// A question mark in a string or a comment is not a placeholder. Extra arguments are
// ignored.
func TestMySQL_PlaceholdersAreCountedByServer(t *testing.T) {
	db := open(t, config(t, database.MySQL))
	for statement, want := range map[string]string{
		"SELECT 'why?' AS q, ? AS v":                            `[{"q":"why?","v":"a"}]`,
		"SELECT 'it''s ?' AS q, \"\\\"?\" AS r, ? AS v":         `[{"q":"it's ?","r":"\"?","v":"a"}]`,
		"SELECT 1 AS `?`, ? AS v /* ? */ -- ?\n # ?":            `[{"?":1,"v":"a"}]`,
		"SELECT '?' AS q":                                       `[{"q":"?"}]`,
		"SELECT 1 AS q":                                         `[{"q":1}]`,
		"SELECT ? AS v, ? AS w, ? AS x":                         `[{"v":"a","w":"b","x":7}]`,
		"SELECT ? AS v /*" + strings.Repeat("?", 10_000) + "*/": `[{"v":"a"}]`,
	} {
		for range 3 {
			if got := query(t, db, statement, "a", "b", int64(7)); got != want {
				t.Errorf("%.40s: got %s, want %s", statement, got, want)
			}
		}
	}
	if _, err := db.Query(t.Context(), database.Query{SQL: "SELECT ? AS v, ? AS w", Args: []any{"a"}}); errcode.CodeOf(err) != errcode.ToolExecutionFailed || !strings.Contains(err.Error(), "2 placeholders") {
		t.Errorf("got %v", err)
	}
}

// A reused prepared statement follows its arguments and the current schema, also when
// there are more or longer statements than are kept.
func TestMySQL_ReusesPreparedStatements(t *testing.T) {
	c := config(t, database.MySQL)
	c.MaxConns = 1
	db := open(t, c)
	query(t, db, "CREATE TABLE k(a INT)")
	query(t, db, "INSERT INTO k VALUES (?)", int64(7))
	for round := range 3 {
		for n := range 100 {
			sql := fmt.Sprintf("SELECT ? AS v, %d AS n%s", n, strings.Repeat(" ", n%2*10_000))
			if got, want := query(t, db, sql, int64(round)), fmt.Sprintf(`[{"v":%d,"n":%d}]`, round, n); got != want {
				t.Fatalf("%s: got %s, want %s", sql, got, want)
			}
		}
	}
	if got := query(t, open(t, c), "SELECT 1 AS one WHERE (SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Prepared_stmt_count') > 100"); got != `[]` {
		t.Errorf("the server keeps too many statements")
	}
	const all = "SELECT * FROM k WHERE a = ?"
	for n, want := range []string{`[{"a":7}]`, `[{"a":7,"b0":null}]`, `[{"a":7,"b0":null,"b1":null}]`} {
		for range 2 {
			if got := query(t, db, all, int64(7)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		query(t, db, fmt.Sprintf("ALTER TABLE k ADD COLUMN b%d INT", n))
	}
	query(t, db, "DROP TABLE k")
	for range 2 {
		if _, err := db.Query(t.Context(), database.Query{SQL: all, Args: []any{int64(7)}}); errcode.CodeOf(err) != errcode.ToolExecutionFailed {
			t.Errorf("a dropped table returned %v", err)
		}
	}
	query(t, db, "CREATE TABLE k(c TEXT, a INT)")
	query(t, db, "INSERT INTO k VALUES ('x', 7)")
	if got := query(t, db, all, int64(7)); got != `[{"c":"x","a":7}]` {
		t.Errorf("the new table returned %s", got)
	}
}

// A statement is killed by the id of its current connection, also after a reconnect.
func TestMySQL_KillsReconnectedConnection(t *testing.T) {
	c := config(t, database.MySQL)
	c.MaxConns = 1
	db, other := open(t, c), open(t, c)
	const number = "SELECT CONNECTION_ID() AS n"
	bystander := query(t, other, number)
	for range 3 {
		first := query(t, db, number)
		query(t, other, "KILL "+strings.Trim(first, `[{"n:}]`))
		second := query(t, db, number)
		if first == second {
			t.Fatalf("the connection is still %s", first)
		}
		if _, err := db.Query(t.Context(), database.Query{SQL: slowQuery[database.MySQL], Timeout: 100 * time.Millisecond}); errcode.CodeOf(err) != errcode.ToolTimeout {
			t.Errorf("got %v", err)
		}
		for end := time.Now().Add(5 * time.Second); query(t, other, runningStatements[database.MySQL]) != `[{"n":0}]`; {
			if time.Now().After(end) {
				t.Fatal("the statement is still running")
			}
		}
		if now := query(t, other, number); now != bystander {
			t.Errorf("another connection was killed: %s, then %s", bystander, now)
		}
	}
}
