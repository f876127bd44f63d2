package toolbox_test

import "testing"

// A free-text template parameter can end the statement and begin another. What that
// leaves on the connection must not affect other callers.
func TestStatement_FreeTextLeavesNothingBehind(t *testing.T) {
	eachDatabase(t, func(t *testing.T, kind, source string) {
		w := open(t, "%s\n---\n"+`{kind: tool, name: look, type: `+kind+`-sql, source: db, description: d, statement: "SELECT {{.col}} FROM planes", templateParameters: [{name: col, type: string, description: d}]}
---
{kind: tool, name: make, type: `+kind+`-sql, source: db, description: d, statement: "CREATE TABLE planes(name VARCHAR(9))"}
---
{kind: tool, name: list, type: `+kind+`-sql, source: db, description: d, annotations: {readOnlyHint: true}, statement: "SELECT name FROM planes"}`, source)
		w.call(t.Context(), "make", `{}`)
		for _, col := range []string{
			"1 FROM planes; CREATE TEMP TABLE planes AS SELECT 'fake' AS name; SELECT * ",
			"1 FROM planes; CREATE TEMPORARY TABLE planes (name VARCHAR(9)) AS SELECT 'fake' AS name; SELECT * ",
			"1 FROM planes; BEGIN; SELECT * ",
		} {
			w.call(t.Context(), "look", `{"col":"`+col+`"}`) // may fail
			for range 9 {
				if r := w.call(t.Context(), "list", `{}`); r.Result.IsError || string(r.Result.JSON()) != `[]` {
					t.Fatalf("after %q another caller reads %s", col, r.Result.JSON())
				}
			}
		}
	})
}
