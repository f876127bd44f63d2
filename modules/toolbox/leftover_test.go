package toolbox_test

import "testing"

// Words of a caller that become part of a statement may end it and begin
// another. What that leaves on its connection nobody else meets.
func TestWordsInAStatementLeaveNothingBehind(t *testing.T) {
	each(t, func(t *testing.T, kind, source string) {
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
			w.call(t.Context(), "look", `{"col":"`+col+`"}`) // it may be refused
			for range 9 {
				if r := w.call(t.Context(), "list", `{}`); r.Result.IsError || string(r.Result.JSON()) != `[]` {
					t.Fatalf("after %q another reads %s", col, r.Result.JSON())
				}
			}
		}
	})
}
