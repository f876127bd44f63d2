//go:build cloudsql

package toolbox_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

func TestCloudSQL_MissingCredentialsFailCalls(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	w := open(t, `{kind: source, name: pg, type: cloud-sql-postgres, project: my-project, region: r, instance: i, database: d, user: u, password: p}
---
{kind: tool, name: one, type: postgres-sql, source: pg, description: d, statement: SELECT 1}`)
	if message := wantCode(t, w.call(t.Context(), "one", `{}`), errcode.ToolUnavailable); strings.Contains(message, "my-project") || strings.Contains(message, "none.json") {
		t.Errorf("%q reveals too much", message)
	}
	if log := w.log.String(); strings.Count(log, "source unreachable") != 1 {
		t.Errorf("got the log\n%s", log)
	}
}
