package database_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// A caller's own statement stops soon after its timeout, whatever functions and operations it
// has. The worst of these took hours (instr, geopoly) or minutes (x+0) before. On a core of a
// small server they now take up to 0.7 s; the bound leaves room for a busy one.
func TestSQLite_StopsAnyFunction(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	const text = "(SELECT hex(zeroblob(7000000)) x, hex(zeroblob(7000000)) y)"
	for _, statement := range []string{
		"SELECT instr(x, substr(y, 7000000) || '1') FROM " + text,
		"SELECT length(replace(x, substr(y, 7000000) || '1', 'z')) FROM " + text,
		"SELECT x LIKE '%' || substr(y, 13950000) || '1%' FROM " + text,
		"SELECT x GLOB '*' || substr(y, 13950000) || '1*' FROM " + text,
		"SELECT length(trim(x, replace(y, '0', '1') || '0')) FROM " + text,
		"SELECT unhex(x, y) FROM " + text,
		"SELECT json_extract(j" + strings.Repeat(", '$[3000000]'", 900) + ") FROM (SELECT '[' || replace(hex(zeroblob(2000000)), '0', '1,') || '1]' j)",
		"SELECT length(concat(" + strings.Repeat("x, ", 900) + "x)) FROM " + text,
		"SELECT " + strings.Repeat("x+0, ", 1900) + "0 FROM " + text,
		"SELECT " + strings.Repeat("(x=y)+", 900) + "0 FROM " + text,
		"SELECT 1; SELECT " + strings.Repeat("CAST(x AS INTEGER)+", 900) + "0 FROM " + text,
		"SELECT " + strings.Repeat("length(x)+", 900) + "0 FROM " + text,
		"SELECT 1 WHERE 1 IN (" + strings.Repeat("1,", 3<<20) + "1)",
		"SELECT geopoly_overlap(p, p) FROM (SELECT '[' || group_concat('[' || (x%2*9999) || ',' || x || ']') || ',[0,0]]' p FROM (WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM c WHERE x<90000) SELECT x FROM c))",
		"CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f VALUES (replace(hex(zeroblob(500000)), '0', 'a ')); SELECT length(snippet(f, 0, 'b', 'c', 'd', 64)) FROM f('a')",
		"CREATE VIRTUAL TABLE g USING fts5(a); INSERT INTO g VALUES (replace(hex(zeroblob(500000)), '0', 'a ')); SELECT length(highlight(g, 0, 'b', 'c')) FROM g('a')",
	} {
		began := time.Now()
		_, err := db.Query(t.Context(), database.Query{SQL: statement, Untrusted: true, Timeout: 500 * time.Millisecond})
		if took := time.Since(began); took > 10*time.Second || err != nil && errcode.CodeOf(err) == errcode.ToolUnavailable {
			t.Errorf("%.80s: %v after %v", statement, err, took)
		}
	}
}

// What the limits leave is enough for texts of many MiB in plain statements.
func TestSQLite_LongTextsOfPlainStatements(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	for statement, want := range map[string]string{
		"SELECT length(hex(zeroblob(8000000))) AS n":                                                  `[{"n":16000000}]`,
		"SELECT instr(hex(zeroblob(7000000)) || 'needle', 'needle') AS n":                             `[{"n":14000001}]`,
		"SELECT hex(zeroblob(7000000)) || 'word' LIKE '%word%' AS n":                                  `[{"n":1}]`,
		"SELECT json_array(json('[1]'), lower('A'), max('b', 'a'), trim('  a ')) AS n":                `[{"n":"[[1],\"a\",\"b\",\"a\"]"}]`,
		"CREATE TABLE k(a); INSERT INTO k VALUES (1), (2); SELECT count(*) AS n FROM k; DROP TABLE k": `[{"n":2}]`,
		"SELECT 1 AS n; -- the end":                                                                   `[{"n":1}]`,
	} {
		rows, err := db.Query(t.Context(), database.Query{SQL: statement, Untrusted: true})
		if err != nil || string(rows) != want {
			t.Errorf("%s: got %s, %v, want %s", statement, rows, err, want)
		}
	}
}
