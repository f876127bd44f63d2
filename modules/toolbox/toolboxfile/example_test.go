package toolboxfile_test

import (
	"fmt"

	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

func ExampleMigrateFile() {
	out, err := toolboxfile.MigrateFile([]byte(`sources:
  db: # of the flight desk
    kind: sqlite
    database: ${DB}
toolsets:
  empty: []
`))
	fmt.Printf("%s%v\n", out, err)
	// Output:
	// # of the flight desk
	// kind: source
	// name: db
	// type: sqlite
	// database: ${DB}
	// ---
	// kind: toolset
	// name: empty
	// tools: []
	// <nil>
}
