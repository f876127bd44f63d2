package database_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// readOnlyQuery runs a ReadOnly query.
func readOnlyQuery(t *testing.T, db *database.DB, statement string) error {
	t.Helper()
	_, err := db.Query(t.Context(), database.Query{SQL: statement, ReadOnly: true})
	return err
}

// No statement of a ReadOnly query can end its transaction and change data, or write a
// file.
func TestDB_ReadOnlyStatementCannotEscape(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		file := filepath.Join(os.TempDir(), "rolecall-escape-"+fmt.Sprint(os.Getpid()))
		attacks := map[database.Type][]string{
			database.SQLite: {"PRAGMA query_only=0; DELETE FROM a", "PRAGMA query_only=0; DROP TABLE a"},
			database.Postgres: {"COMMIT; DELETE FROM a", "ROLLBACK; DROP TABLE a", "SET TRANSACTION READ WRITE; DELETE FROM a", "COMMIT",
				"COPY a TO '" + file + "'", "copy (select 1) to program 'cat > " + file + "'", "DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM a; END $$",
				"/* */ -- \n COPY a TO '" + file + "'", "EXPLAIN ANALYZE DELETE FROM a", "WITH x AS (DELETE FROM a RETURNING 1) SELECT * FROM x"},
			database.MySQL: {"BEGIN NOT ATOMIC COMMIT; DELETE FROM a; END", "BEGIN NOT ATOMIC SET SESSION TRANSACTION READ WRITE; COMMIT; DELETE FROM a; COMMIT; END",
				"/*!50000 BEGIN NOT ATOMIC COMMIT; DELETE FROM a; END */", "/*M! BEGIN NOT ATOMIC COMMIT; DELETE FROM a; END */",
				"EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC COMMIT; DELETE FROM a; END'", "IF 1 THEN COMMIT; DELETE FROM a; END IF",
				"SELECT 1 INTO OUTFILE '" + file + "'", "SELECT 1 INTO/**/DUMPFILE '" + file + "'", "SET GLOBAL max_connections = 77", "CREATE TABLE z(a int)", "CALL erase()",
				"FLUSH TABLES", "EXPLAIN DELETE FROM a; DELETE FROM a"},
		}
		modes := []string{""}
		if kind == database.Postgres {
			modes = []string{"", "simple_protocol", "exec", "cache_describe", "describe_exec"}
		}
		for _, mode := range modes {
			c := config(t, kind)
			c.Mode = mode
			if kind == database.SQLite {
				c.Database = ":memory:"
			}
			db := open(t, c)
			query(t, db, "CREATE TABLE a(n INT)")
			query(t, db, "INSERT INTO a VALUES (1)")
			if kind == database.MySQL {
				query(t, db, "CREATE PROCEDURE erase() BEGIN COMMIT; DELETE FROM a; COMMIT; END")
			}
			for _, statement := range attacks[kind] {
				err := readOnlyQuery(t, db, statement)
				if got := query(t, db, "SELECT count(*) AS n FROM a"); got != `[{"n":1}]` {
					t.Fatalf("%s %s: the table changed: %s (%v)", mode, statement, got, err)
				}
				if os.Remove(file) == nil {
					t.Errorf("%s %s wrote a file (%v)", mode, statement, err)
				}
				if !strings.HasPrefix(statement, "EXPLAIN") && errcode.CodeOf(err) != errcode.ToolExecutionFailed {
					t.Errorf("%s %s: got %v", mode, statement, err)
				}
			}
		}
	})
}

// What an untrusted statement does to its connection does not affect the next caller.
func TestDB_UntrustedStatementLeavesNothingBehind(t *testing.T) {
	poisons := map[database.Type][]string{
		database.SQLite:   {"CREATE TEMP TABLE a AS SELECT 666 AS n", "CREATE TEMP VIEW a AS SELECT 666 AS n", "BEGIN; DELETE FROM a"},
		database.Postgres: {"CREATE TEMP TABLE a AS SELECT 666 AS n", "SET standard_conforming_strings = off", "BEGIN", "SET default_transaction_read_only = on"},
		database.MySQL:    {"CREATE TEMPORARY TABLE a AS SELECT 666 AS n", "SET SESSION TRANSACTION READ ONLY", "BEGIN", "SET autocommit=0", "SET sql_mode='ANSI_QUOTES'", "SET @rate = 5"},
	}
	eachType(t, func(t *testing.T, kind database.Type) {
		for _, poison := range poisons[kind] {
			for _, reads := range []bool{true, false} {
				c := config(t, kind)
				c.MaxConns = 1
				db, watch := open(t, c), open(t, c)
				query(t, db, "CREATE TABLE a(n INT)")
				query(t, db, "INSERT INTO a VALUES (1)")
				_, _ = db.Query(t.Context(), database.Query{SQL: poison, ReadOnly: reads, Untrusted: true})
				if got := query(t, db, "SELECT n FROM a"); got != `[{"n":1}]` {
					t.Errorf("%s (%t): the next caller reads %s", poison, reads, got)
				}
				if _, err := db.Query(t.Context(), database.Query{SQL: "INSERT INTO a VALUES (2)"}); err != nil {
					t.Errorf("%s (%t): the next caller cannot write: %v", poison, reads, err)
				}
				if got := query(t, watch, "SELECT count(*) AS n FROM a"); got != `[{"n":2}]` {
					t.Errorf("%s (%t): others read %s", poison, reads, got)
				}
				if kind == database.Postgres {
					if got := query(t, db, `SELECT 'a\' AS v`); got != `[{"v":"a\\"}]` {
						t.Errorf("%s (%t): %s", poison, reads, got)
					}
				}
			}
		}
	})
}

// The end of a quoted string does not depend on the connection parameters.
func TestOpen_QuotingIsIndependentOfParams(t *testing.T) {
	params := map[database.Type][]map[string]string{
		database.Postgres: {{"standard_conforming_strings": "off"}, {"options": "-c standard_conforming_strings=off"}, {"client_encoding": "GBK"}},
		database.MySQL:    {{"charset": "gbk"}, {"character_set_client": "gbk"}, {"sql_mode": "'NO_BACKSLASH_ESCAPES'"}, {"sql_mode": "'ANSI_QUOTES'"}, {"charset": "utf8mb4,gbk"}, {"collation": "gbk_chinese_ci"}},
	}
	eachType(t, func(t *testing.T, kind database.Type) {
		for _, p := range params[kind] {
			c := config(t, kind)
			c.Params = p
			db, err := database.Open(c)
			if err != nil {
				continue // rejected
			}
			t.Cleanup(func() { _ = db.Close() })
			for _, text := range []string{`'\'' OR 1=1 --'`, `'中\\'`, `'中\\'' OR 1=1 -- '`} {
				if kind == database.Postgres {
					text = strings.ReplaceAll(text, `\\`, `\`)
				}
				if kind == database.MySQL {
					text = strings.ReplaceAll(text, `'\''`, `'\\''`)
				}
				if _, err := db.Query(t.Context(), database.Query{SQL: "SELECT " + text + " AS v"}); err != nil {
					t.Errorf("%v %s: %v", p, text, err)
				}
			}
		}
	})
}

// A connection parameter cannot contain another one.
func TestOpen_ParamCannotAddAnother(t *testing.T) {
	for _, p := range []map[string]string{{"tls": "preferred&allowCleartextPasswords=true"}, {"tls=preferred&allowOldPasswords": "true"}} {
		if _, err := database.Open(database.Config{Type: database.MySQL, Host: "h", Params: p}); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%v: got %v", p, err)
		}
	}
}

// A row far over the limit is not read completely.
func TestDB_LongRowIsNotReadCompletely(t *testing.T) {
	long := map[database.Type]string{
		database.SQLite:   "SELECT hex(zeroblob(40000000)) AS v",
		database.Postgres: "SELECT repeat('x', 20000000) AS v",
	}
	for kind, statement := range long {
		db := open(t, config(t, kind))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := db.Query(t.Context(), database.Query{SQL: statement, MaxBytes: 1000})
		runtime.ReadMemStats(&after)
		if err == nil || after.TotalAlloc-before.TotalAlloc > 10<<20 {
			t.Errorf("%s: %v, with %d bytes", kind, err, after.TotalAlloc-before.TotalAlloc)
		}
		if got := query(t, db, "SELECT 1 AS a"); got != `[{"a":1}]` {
			t.Errorf("%s afterwards: %s", kind, got)
		}
	}
}

// A ReadOnly statement may begin with comments, except for those that servers read
// differently.
func TestCheckReadOnly_AcceptsComments(t *testing.T) {
	eachType(t, func(t *testing.T, kind database.Type) {
		db := open(t, config(t, kind))
		for _, statement := range []string{"-- why\n SELECT 1 AS a", "/* why */ (SELECT 1 AS a)", "\r\n-- why\r\nselect 1 AS a", "WITH x AS (SELECT 1 AS a) SELECT a FROM x"} {
			if kind == database.SQLite && strings.Contains(statement, "(SELECT 1 AS a)") && !strings.HasPrefix(statement, "WITH") {
				continue // SQLite has no such statement
			}
			if err := readOnlyQuery(t, db, statement); err != nil {
				t.Errorf("%q: %v", statement, err)
			}
		}
		if kind == database.SQLite {
			return
		}
		for _, statement := range []string{"-- \rCOPY (\nSELECT 1) TO '/nowhere'", "/* /* */ SELECT */ COMMIT", "/*!SELECT*/ 1", "/*M!SELECT*/ 1", "/* SELECT 1", "", ";SELECT 1", "-- SELECT 1"} {
			if err := readOnlyQuery(t, db, statement); err == nil || !strings.Contains(err.Error(), "only statements that read") {
				t.Errorf("%q: %v", statement, err)
			}
		}
	})
}

// The statement that begins a read-only transaction cannot be replaced at the server.
func TestPostgres_ReadTransactionCannotBeReplaced(t *testing.T) {
	c := config(t, database.Postgres)
	c.MaxConns = 1
	db := open(t, c)
	query(t, db, "CREATE TABLE a(n INT)")
	query(t, db, "INSERT INTO a VALUES (1)")
	const erases = "WITH x AS (DELETE FROM a RETURNING n) SELECT * FROM x"
	for range 3 {
		if err := readOnlyQuery(t, db, erases); errcode.CodeOf(err) != errcode.ToolExecutionFailed {
			t.Errorf("got %v", err)
		}
		if err := readOnlyQuery(t, db, "SELECT n FROM a"); err != nil {
			t.Error(err)
		}
		query(t, db, `DO $$ DECLARE s text; BEGIN
			FOR s IN SELECT name FROM pg_prepared_statements WHERE statement ~* '^begin' LOOP
				EXECUTE format('DEALLOCATE %I', s); EXECUTE format('PREPARE %I AS SELECT 1', s);
			END LOOP; END $$`)
	}
	if got := query(t, db, "SELECT n FROM a"); got != `[{"n":1}]` {
		t.Errorf("the table changed: %s", got)
	}
}
