package database_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// A read-only query returns its rows as JSON.
func Example() {
	db, err := database.Open(database.Config{Type: database.SQLite, Database: ":memory:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	ctx := context.Background()
	rows, err := db.Query(ctx, database.Query{SQL: "SELECT ?1 AS number, upper(?2) AS airline", Args: []any{int64(9007199254740993), "lh"}, ReadOnly: true})
	fmt.Println(string(rows), err)
	_, err = db.Query(ctx, database.Query{SQL: "CREATE TABLE flights (number)", ReadOnly: true})
	fmt.Println(err)
	// Output:
	// [{"number":9007199254740993,"airline":"LH"}] <nil>
	// tool_execution_failed: run a statement: attempt to write a readonly database (8)
}
