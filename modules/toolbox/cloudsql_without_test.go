//go:build !cloudsql

package toolbox_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

const cloudSQLFile = `{kind: source, name: pg, type: cloud-sql-postgres, project: my-project, region: r, instance: i, database: d, user: u, password: p}
---
{kind: tool, name: one, type: postgres-sql, source: pg, description: d, statement: "SELECT $1::text", parameters: [{name: a, type: string, description: d}]}
---
{kind: tool, name: tables, type: postgres-list-tables, source: pg, description: d}
`

// In a build without the connector the tools are there, and their calls name the build that
// has it, also when many run at once.
func TestCloudSQL_BuildWithoutConnectorNamesTag(t *testing.T) {
	w := open(t, cloudSQLFile)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for name, args := range map[string]string{"one": `{"a":"b"}`, "tables": `{}`} {
				message := wantCode(t, w.call(t.Context(), name, args), errcode.ToolUnavailable)
				if !strings.Contains(message, "source pg cannot be used: this build of rolecall has no connector for cloud-sql-postgres") || !strings.Contains(message, "go build -tags cloudsql") {
					t.Errorf("got %s", message)
				}
			}
		})
	}
	all.Wait()
	wantCode(t, w.call(t.Context(), "one", `{}`), errcode.InvalidArguments)
	w.pools.PingServers(t.Context())
	if log := w.log.String(); strings.Contains(log, "unreachable") {
		t.Errorf("got the log\n%s", log)
	}
	if err := w.loader.UnloadModule(t.Context(), "pg"); err != nil || w.pools.CountOpen() != 0 {
		t.Errorf("%d pools are open, %v", w.pools.CountOpen(), err)
	}
}

// Other mistakes of such a source are still found when it is loaded.
func TestCloudSQL_BuildWithoutConnectorChecksTools(t *testing.T) {
	_, err := toolbox.New(toolbox.Config{
		Source: toolboxfile.Source{Name: "pg", Type: toolboxfile.SourceCloudSQLPostgres}, Pools: new(toolbox.Pools),
		Tools: []toolboxfile.DeclaredTool{{Name: "bad", Type: "unheard-of", Source: "pg"}},
	})
	if errcode.CodeOf(err) != errcode.InvalidConfig {
		t.Errorf("got %v", err)
	}
}

func TestMissingConnector_OnlyOfCloudSQL(t *testing.T) {
	for kind, missing := range map[string]bool{
		toolboxfile.SourceCloudSQLPostgres: true, toolboxfile.SourcePostgres: false, toolboxfile.SourceHTTP: false, toolboxfile.SourceSQLite: false, "": false,
	} {
		if got := toolbox.MissingConnector(toolboxfile.Source{Type: kind}); (got != "") != missing {
			t.Errorf("%s: got %q", kind, got)
		}
	}
}
