package database_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunTests(m)) }

// allTypes are the types of databases that these tests run.
var allTypes = []database.Type{database.SQLite, database.Postgres, database.MySQL}

func config(t *testing.T, kind database.Type) database.Config {
	t.Helper()
	switch kind {
	case database.Postgres:
		return serverConfig(kind, dbtest.NewPostgres(t))
	case database.MySQL:
		return serverConfig(kind, dbtest.NewMariaDB(t))
	}
	return database.Config{Type: kind, Database: filepath.Join(t.TempDir(), "a?b#c d.db")}
}

func serverConfig(kind database.Type, d dbtest.Database) database.Config {
	return database.Config{Type: kind, Host: d.Host, Port: d.Port, User: d.User, Password: d.Password, Database: d.Name}
}

func open(t *testing.T, c database.Config) *database.DB {
	t.Helper()
	db, err := database.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// eachType runs a test on every type of database.
func eachType(t *testing.T, fn func(t *testing.T, kind database.Type)) {
	for _, kind := range allTypes {
		t.Run(string(kind), func(t *testing.T) { fn(t, kind) })
	}
}

func query(t *testing.T, db *database.DB, statement string, args ...any) string {
	t.Helper()
	rows, err := db.Query(t.Context(), database.Query{SQL: statement, Args: args})
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if !json.Valid(rows) {
		t.Fatalf("%s: invalid JSON: %s", statement, rows)
	}
	return string(rows)
}

func TestDB_QueryReturnsExactValues(t *testing.T) {
	tests := map[database.Type][]struct{ sql, want string }{
		database.SQLite: {
			{"SELECT 9007199254740993 AS a, -9223372036854775808 AS b", `[{"a":9007199254740993,"b":-9223372036854775808}]`},
			{"SELECT 1.5 AS a, 1e300 AS b, NULL AS c, x'00ff' AS d, 'ü\"' AS e", `[{"a":1.5,"b":1e+300,"c":null,"d":"AP8=","e":"ü\""}]`},
			{"SELECT 1 AS a, 2 AS a", `[{"a":1,"a":2}]`},
			{"SELECT '[1,2]' AS a", `[{"a":"[1,2]"}]`},
			{"CREATE TABLE d(j JSON, t TEXT); INSERT INTO d VALUES ('{\"a\": 9007199254740993}', '5'); SELECT * FROM d", `[{"j":{"a":9007199254740993},"t":"5"}]`},
			{"CREATE TABLE n(t TEXT); INSERT INTO n VALUES ('null'); SELECT t, 'null' AS e FROM n", `[{"t":"null","e":null}]`},
			{"SELECT 1 WHERE 0", `[]`},
			{"CREATE TABLE e(a)", `[]`},
		},
		database.Postgres: {
			{"SELECT 9007199254740993::int8 AS a, 12345678901234567890.12345678901234567890::numeric AS b, 'NaN'::float8 AS c", `[{"a":9007199254740993,"b":12345678901234567890.12345678901234567890,"c":"NaN"}]`},
			{"SELECT true AS a, NULL::text AS b, '\\x00ff'::bytea AS c, '{\"k\": 9007199254740993}'::jsonb AS d", `[{"a":true,"b":null,"c":"AP8=","d":{"k":9007199254740993}}]`},
			{"SELECT ARRAY['a','b \"c\"',NULL,'NULL','{}'] AS a, ARRAY[[1,2],[3,4]] AS b, '{}'::int[] AS c, ARRAY[1.10::numeric] AS d", `[{"a":["a","b \"c\"",null,"NULL","{}"],"b":[[1,2],[3,4]],"c":[],"d":[1.10]}]`},
			{"SELECT '2024-02-29 12:30:00.5+00'::timestamptz AT TIME ZONE 'UTC' AS a, '2024-02-29'::date AS b, 'infinity'::timestamptz AS c", `[{"a":"2024-02-29T12:30:00.5","b":"2024-02-29","c":"infinity"}]`},
			{"SELECT '2024-02-29 12:30:00+02'::timestamptz = '2024-02-29 10:30:00+00'::timestamptz AS a", `[{"a":true}]`},
			{"SELECT set_config('TimeZone', 'Europe/Berlin', true) AS z, '1890-01-01 00:00:00+00'::timestamptz AS a", `[{"z":"Europe/Berlin","a":"1890-01-01 00:53:28+00:53:28"}]`},
			{"SELECT 1 AS a, 2 AS a", `[{"a":1,"a":2}]`},
			{"SELECT '[0:1]={5,6}'::int[] AS a", `[{"a":[5,6]}]`},
			{"CREATE TABLE e(a int)", `[]`},
		},
		database.MySQL: {
			{"SELECT 9007199254740993 AS a, 18446744073709551615 AS b, 12345678901234567890.12345 AS c", `[{"a":9007199254740993,"b":18446744073709551615,"c":12345678901234567890.12345}]`},
			{"SELECT NULL AS a, CAST(x'00ff' AS BINARY) AS b, 'ü' AS c, 1.5e0 AS d", `[{"a":null,"b":"AP8=","c":"ü","d":1.5}]`},
			{"SELECT CAST('2024-02-29 12:30:00' AS DATETIME) AS a, CAST('2024-02-29' AS DATE) AS b", `[{"a":"2024-02-29T12:30:00","b":"2024-02-29"}]`},
			{"SELECT 1 AS a, 2 AS a", `[{"a":1,"a":2}]`},
			{"CREATE TABLE e(a int)", `[]`},
		},
	}
	eachType(t, func(t *testing.T, kind database.Type) {
		db := open(t, config(t, kind))
		for _, tt := range tests[kind] {
			if got := query(t, db, tt.sql); got != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.sql, got, tt.want)
			}
		}
	})
}

// placeholder returns the n-th placeholder of a type of database, from 1.
func placeholder(kind database.Type, n int, cast string) string {
	switch kind {
	case database.Postgres:
		return fmt.Sprintf("$%d::%s", n, cast)
	case database.MySQL:
		return "?"
	}
	return fmt.Sprintf("?%d", n)
}

func TestDB_QueryBindsArguments(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		db := open(t, config(t, kind))
		query(t, db, "CREATE TABLE a(n INT)")
		for _, evil := range []string{"'; DROP TABLE a; --", `\'; DROP TABLE a; #`, "$1", "?", "", "ü\x7f\n", strings.Repeat("x", 100_000)} {
			got := query(t, db, "SELECT "+placeholder(kind, 1, "text")+" AS v", evil)
			want, err := json.Marshal(evil)
			if err != nil {
				t.Fatal(err)
			}
			var rows []struct{ V string }
			if err := json.Unmarshal([]byte(got), &rows); err != nil || len(rows) != 1 || rows[0].V != evil {
				t.Errorf("got %.60s, want %.60s", got, want)
			}
		}
		if got := query(t, db, "SELECT count(*) AS n FROM a"); got != `[{"n":0}]` {
			t.Errorf("the table was dropped: %s", got)
		}
		if got := query(t, db, "SELECT "+placeholder(kind, 1, "int8")+" AS v", int64(9007199254740993)); got != `[{"v":9007199254740993}]` {
			t.Errorf("got %s", got)
		}
	})
}

func TestDB_QueryBindsListsAndMaps(t *testing.T) {
	const list, mapped = `["a","b"]`, `{"k":1}`
	lite := open(t, config(t, database.SQLite))
	if got := query(t, lite, "SELECT ?1 AS a, (SELECT count(*) FROM json_each(?1)) AS n, ?2 AS m", list, mapped); got != `[{"a":"[\"a\",\"b\"]","n":2,"m":"{\"k\":1}"}]` {
		t.Errorf("sqlite: %s", got)
	}
	pg := open(t, config(t, database.Postgres))
	const statement = "SELECT 'b' = ANY($1) AS a, $2::jsonb AS m, 7 = ANY($3::int[]) AS n, $4::text[] AS d, $5::float8[] AS f, $6::bool[] AS b"
	const want = `[{"a":true,"m":{"k":1},"n":true,"d":[["x","y\"z"],["","NULL"]],"f":[0.1,1e+300],"b":[true,false]}]`
	args := []any{[]string{"a", "b"}, mapped, []int64{7}, [][]string{{"x", `y"z`}, {"", "NULL"}}, []float64{0.1, 1e300}, []bool{true, false}}
	for _, reads := range []bool{true, false} {
		got, err := pg.Query(t.Context(), database.Query{SQL: statement, Args: args, ReadOnly: reads})
		if err != nil || string(got) != want {
			t.Errorf("postgres (%t): %s %v", reads, got, err)
		}
	}
}

func TestDB_ReadOnlyIsEnforced(t *testing.T) {
	statements := map[database.Type][]string{
		database.SQLite: {"INSERT INTO a VALUES (2)", "PRAGMA query_only=0; INSERT INTO a VALUES (2)", "DROP TABLE a", "ATTACH DATABASE '%s' AS x",
			"VACUUM INTO '%s'", "PRAGMA journal_mode=DELETE; DELETE FROM a", "CREATE TEMP TABLE x(a); INSERT INTO main.a VALUES (2)", "SELECT 1; DELETE FROM a"},
		database.Postgres: {"INSERT INTO a VALUES (2)", "DROP TABLE a", "SELECT nextval('s')", "SET TRANSACTION READ WRITE; INSERT INTO a VALUES (2)",
			"COMMIT; INSERT INTO a VALUES (2)", "WITH x AS (INSERT INTO a VALUES (2) RETURNING n) SELECT * FROM x"},
		database.MySQL: {"INSERT INTO a VALUES (2)", "DELETE FROM a", "COMMIT; INSERT INTO a VALUES (2)"},
	}
	eachType(t, func(t *testing.T, kind database.Type) {
		c := config(t, kind)
		db := open(t, c)
		query(t, db, "CREATE TABLE a(n INT)")
		query(t, db, "INSERT INTO a VALUES (1)")
		if kind == database.Postgres {
			query(t, db, "CREATE SEQUENCE s")
		}
		c.ReadOnly = true
		for name, on := range map[string]*database.DB{"the query": db, "the database": open(t, c)} {
			for _, statement := range statements[kind] {
				file := filepath.Join(t.TempDir(), "x.db")
				if strings.Contains(statement, "%s") {
					statement = fmt.Sprintf(statement, file)
				}
				if rows, err := on.Query(t.Context(), database.Query{SQL: statement, ReadOnly: name == "the query"}); errcode.CodeOf(err) != errcode.ToolExecutionFailed {
					t.Errorf("%s is read-only: %s returned %s, %v", name, statement, rows, err)
				}
				if _, err := os.Stat(file); err == nil {
					t.Errorf("%s created a file", statement)
				}
			}
		}
		if got := query(t, db, "SELECT n FROM a"); got != `[{"n":1}]` {
			t.Errorf("the table changed: %s", got)
		}
	})
}

func TestSQLite_ReachesNoOtherFile(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	file := filepath.Join(t.TempDir(), "x.db")
	for _, statement := range []string{"ATTACH DATABASE '" + file + "' AS x", "VACUUM INTO '" + file + "'"} {
		if _, err := db.Query(t.Context(), database.Query{SQL: statement}); err == nil {
			t.Errorf("%s succeeded", statement)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s created a file", statement)
		}
	}
}

// slowQuery takes minutes on each type of database.
var slowQuery = map[database.Type]string{
	database.SQLite:   "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 100000000000) SELECT count(*) AS n FROM c",
	database.Postgres: "SELECT pg_sleep(300)",
	database.MySQL:    "SELECT BENCHMARK(100000000000, SHA2('a', 512)) AS n",
}

func TestDB_QueryTimeout(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		db := open(t, config(t, kind))
		query(t, db, "SELECT 1 AS a")
		if _, err := db.Query(t.Context(), database.Query{SQL: slowQuery[kind], Timeout: 50 * time.Millisecond}); errcode.CodeOf(err) != errcode.ToolTimeout {
			t.Errorf("got %v, want tool_timeout", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := db.Query(ctx, database.Query{SQL: slowQuery[kind]}); err != context.DeadlineExceeded {
			t.Errorf("got %v, want the error of the context", err)
		}
		if got := query(t, db, "SELECT 1 AS a"); got != `[{"a":1}]` {
			t.Errorf("afterwards: %s", got)
		}
	})
}

func TestDB_SlowQueryBlocksNoOther(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		db := open(t, config(t, kind))
		query(t, db, "CREATE TABLE a(n INT)")
		ctx, cancel := context.WithCancel(t.Context())
		var slow sync.WaitGroup
		slow.Go(func() { db.Query(ctx, database.Query{SQL: slowQuery[kind]}) })
		query(t, db, "SELECT 1 AS a")
		query(t, db, "INSERT INTO a VALUES (1)")
		cancel()
		slow.Wait()
	})
}

func TestDB_QueryLimits(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		db := open(t, config(t, kind))
		many := "SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 3"
		for name, q := range map[string]database.Query{"rows": {SQL: many, MaxRows: 2}, "bytes": {SQL: many, MaxBytes: 20}} {
			if _, err := db.Query(t.Context(), q); errcode.CodeOf(err) != errcode.ResultTooLarge {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if rows, err := db.Query(t.Context(), database.Query{SQL: many, MaxRows: 3, MaxBytes: 100}); err != nil || len(rows) == 0 {
			t.Errorf("within the limits: %s %v", rows, err)
		}
	})
}

func TestDB_ErrorsHideConnection(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		c := config(t, kind)
		db := open(t, c)
		_, err := db.Query(t.Context(), database.Query{SQL: "SELECT * FROM nowhere"})
		if errcode.CodeOf(err) != errcode.ToolExecutionFailed || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("got %v", err)
		}
		if kind == database.SQLite {
			c.Database = filepath.Join(t.TempDir(), "no", "such", "folder.db")
		} else {
			c.Password, c.Database = "wrong", "secretname"
		}
		_, err = open(t, c).Query(t.Context(), database.Query{SQL: "SELECT 1"})
		for _, secret := range []string{c.Host, c.User, c.Database, "wrong"} {
			if err == nil || secret != "" && strings.Contains(errcode.Message(err), secret) {
				t.Errorf("the error contains %q: %v", secret, errcode.Message(err))
			}
		}
		if kind != database.SQLite && errcode.CodeOf(err) != errcode.ToolUnavailable {
			t.Errorf("got %v, want tool_unavailable", err)
		}
	})
}

func TestSQLite_FirstQueryCreatesFile(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	if got := query(t, db, "SELECT 1 AS a"); got != `[{"a":1}]` {
		t.Errorf("got %s", got)
	}
	memory := open(t, database.Config{Type: database.SQLite, Database: ":memory:"})
	query(t, memory, "CREATE TABLE a(n)")
	if _, err := memory.Query(t.Context(), database.Query{SQL: "INSERT INTO a VALUES (1)", ReadOnly: true}); err == nil {
		t.Error("a read-only query wrote to memory")
	}
	query(t, memory, "INSERT INTO a VALUES (2)")
	if got := query(t, memory, "SELECT n FROM a"); got != `[{"n":2}]` {
		t.Errorf("got %s", got)
	}
}

// A read-only source in memory is read-only for tools that write, too.
func TestSQLite_ReadOnlyMemory(t *testing.T) {
	memory := open(t, database.Config{Type: database.SQLite, Database: ":memory:", ReadOnly: true})
	if _, err := memory.Query(t.Context(), database.Query{SQL: "CREATE TABLE a(n)"}); err == nil {
		t.Error("a query wrote to a read-only database")
	}
	if got := query(t, memory, "SELECT 1 AS a"); got != `[{"a":1}]` {
		t.Errorf("got %s", got)
	}
}

func TestOpen_RejectsInvalidConfig(t *testing.T) {
	for name, c := range map[string]database.Config{
		"nothing": {}, "type": {Type: "oracle"}, "no file": {Type: database.SQLite},
		"mode": {Type: database.Postgres, Host: "h", Mode: "quick"}, "params": {Type: database.MySQL, Host: "h", Params: map[string]string{"timeout": "soon"}},
	} {
		if _, err := database.Open(c); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDB_BusyConnectionsAreUnavailable(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		c := config(t, kind)
		c.MaxConns = 1
		db := open(t, c)
		query(t, db, "CREATE TABLE a(n INT)")
		ctx, cancel := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		busy.Go(func() { _, _ = db.Query(ctx, database.Query{SQL: slowQuery[kind]}) })
		defer busy.Wait()
		defer cancel()
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // until the slow query has the connection
			_, err := db.Query(t.Context(), database.Query{SQL: "SELECT n FROM a", Timeout: 20 * time.Millisecond})
			if err == nil || errcode.CodeOf(err) == errcode.ToolTimeout { // it had the connection
				continue
			}
			if errcode.CodeOf(err) != errcode.ToolUnavailable || !errors.Is(err, database.ErrNoConnection) {
				t.Errorf("got %v, want tool_unavailable", err)
			}
			return
		}
		t.Error("no query had to wait")
	})
}

func TestSQLite_MissingFolderIsUnavailable(t *testing.T) {
	at := database.Config{Type: database.SQLite, Database: filepath.Join(t.TempDir(), "none", "a.db")}
	for _, readOnly := range []bool{false, true} {
		at.ReadOnly = readOnly
		for _, q := range []database.Query{{SQL: "SELECT 1"}, {SQL: "SELECT 1", ReadOnly: true}, {SQL: "CREATE TABLE a(n)"}} {
			if _, err := open(t, at).Query(t.Context(), q); errcode.CodeOf(err) != errcode.ToolUnavailable || strings.Contains(errcode.Message(err), "none") {
				t.Errorf("%+v: got %v, want tool_unavailable", q, err)
			}
		}
	}
}
