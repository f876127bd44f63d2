package toolbox_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

// PostgreSQL arrays have one length at each depth. Other nested lists are rejected
// rather than truncated.
func TestArray_RejectsRaggedLists(t *testing.T) {
	w := open(t, `%s
---
{kind: tool, name: grid, type: postgres-sql, source: db, description: d, statement: "SELECT $1::int[] AS v", parameters: [{name: a, type: array, description: d, items: {name: r, type: array, description: d, items: {name: c, type: integer, description: d}}}]}
---
{kind: tool, name: cube, type: postgres-sql, source: db, description: d, statement: "SELECT $1::text[] AS v", parameters: [{name: a, type: array, description: d, items: {name: r, type: array, description: d, items: {name: c, type: array, description: d, items: {name: d, type: string, description: d}}}}]}
`, postgres(t))
	for args, want := range map[string]string{`[[1,2],[3,4]]`: `[[1,2],[3,4]]`, `[[1]]`: `[[1]]`, `[]`: `[]`} {
		if got := w.rows("grid", `{"a":`+args+`}`); got != `[{"v":`+want+`}]` {
			t.Errorf("%s: got %s", args, got)
		}
	}
	if got := w.rows("cube", `{"a":[[["a"],["b"]],[["c"],["d"]]]}`); got != `[{"v":[[["a"],["b"]],[["c"],["d"]]]}]` {
		t.Errorf("got %s", got)
	}
	for args, name := range map[string]string{
		`[[1],[2,3]]`: "grid", `[[1,2],[3]]`: "grid", `[[],[1]]`: "grid", `[[1],[]]`: "grid",
		`[[["a"],["b"]],[["c"]]]`: "cube", `[[["a"]],[["b","c"]]]`: "cube",
	} {
		if message := wantCode(t, w.call(t.Context(), name, `{"a":`+args+`}`), errcode.InvalidArguments); !strings.Contains(message, `"a"`) {
			t.Errorf("%s: got %q", args, message)
		}
	}
}
