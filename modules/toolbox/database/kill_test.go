package database_test

import (
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// running counts the statements of the test that a server is at.
var running = map[database.Type]string{
	database.Postgres: "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() AND pid <> pg_backend_pid()",
	database.MySQL:    "SELECT count(*) AS n FROM information_schema.processlist WHERE command = 'Query' AND db = DATABASE() AND id <> CONNECTION_ID()",
}

// A statement whose time is up ends in the database too: else calls that are
// over would use it up.
func TestAStatementWhoseTimeIsUpEndsInTheDatabase(t *testing.T) {
	for kind, count := range running {
		db := open(t, config(t, kind))
		query(t, db, "SELECT 1 AS a")
		if _, err := db.Query(t.Context(), database.Query{SQL: slow[kind], Timeout: 100 * time.Millisecond}); errcode.Of(err) != errcode.ToolTimeout {
			t.Errorf("%s: got %v", kind, err)
		}
		for end := time.Now().Add(5 * time.Second); query(t, db, count) != `[{"n":0}]`; {
			if time.Now().After(end) {
				t.Errorf("%s: it goes on", kind)
				break
			}
		}
	}
}
