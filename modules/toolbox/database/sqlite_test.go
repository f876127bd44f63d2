package database_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// Statements that write are remembered by hash, not by text.
func TestSQLite_LongStatementsAreNotKept(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	query(t, db, "CREATE TABLE a(n)")
	before := heapInUse()
	for n := range 12 {
		q := database.Query{SQL: fmt.Sprintf("INSERT INTO a VALUES (%d) --%s", n, strings.Repeat("x", 1<<20)), Untrusted: n%2 == 0}
		if _, err := db.Query(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if more := heapInUse() - before; more > 4<<20 {
		t.Errorf("%d bytes are kept", more)
	}
	if got := query(t, db, "SELECT count(*) AS n FROM a"); got != `[{"n":12}]` {
		t.Errorf("got %s", got)
	}
}

// A statement that reads before the file exists is not remembered as one that writes: it would
// wait for the one connection that writes, then and later.
func TestSQLite_FirstStatementOfNewFileReads(t *testing.T) {
	db := open(t, config(t, database.SQLite))
	const changesOfConnection = "SELECT total_changes() AS n"
	if got := query(t, db, changesOfConnection); got != `[{"n":0}]` {
		t.Fatalf("got %s", got)
	}
	query(t, db, "CREATE TABLE a(n)")
	query(t, db, "INSERT INTO a VALUES (1)")
	if got := query(t, db, changesOfConnection); got != `[{"n":0}]` {
		t.Errorf("it ran on the connection that writes: %s", got)
	}
}

// heapInUse returns the bytes of the heap that are in use.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
