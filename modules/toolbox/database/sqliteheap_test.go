package database_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// Each value is within the limit of a value, but all of them together take more memory than
// the process may have.
func TestSQLite_LimitsMemoryOfStatement(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	columns := make([]string, 48)
	for i := range columns {
		columns[i] = fmt.Sprintf("hex(zeroblob(8000000)) AS c%d", i)
	}
	_, err := db.Query(t.Context(), database.Query{SQL: "SELECT " + strings.Join(columns, ", "), ReadOnly: true})
	if errcode.CodeOf(err) != errcode.ResultTooLarge || !strings.Contains(err.Error(), "needs more than 512 MiB of memory") {
		t.Errorf("got %v, want result_too_large for lack of memory", err)
	}
	if got := query(t, db, "SELECT length(hex(zeroblob(8000000))) AS n"); got != `[{"n":16000000}]` {
		t.Errorf("afterwards got %s", got)
	}
}

// The limit of memory belongs to the process. No caller may lower it for the others.
func TestSQLite_HeapLimitCannotChange(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	for _, statement := range []string{"PRAGMA hard_heap_limit=1", "pragma SOFT_heap_limit = 1", `PRAGMA main."hard_heap_limit"(1)`, "SELECT 1; PRAGMA/**/hard_heap_limit=1"} {
		if _, err := db.Query(t.Context(), database.Query{SQL: statement, Untrusted: true}); errcode.CodeOf(err) != errcode.ToolExecutionFailed {
			t.Errorf("%s: got %v, want an error", statement, err)
		}
	}
}
