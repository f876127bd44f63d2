//go:build cloudsql

package toolbox_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

func TestAMachineWithoutCredentialsMakesItsToolsSaySo(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	w := open(t, `{kind: source, name: pg, type: cloud-sql-postgres, project: my-project, region: r, instance: i, database: d, user: u, password: p}
---
{kind: tool, name: one, type: postgres-sql, source: pg, description: d, statement: SELECT 1}`)
	if said := wantCode(t, w.call(t.Context(), "one", `{}`), errcode.ToolUnavailable); strings.Contains(said, "my-project") || strings.Contains(said, "none.json") {
		t.Errorf("%q tells too much", said)
	}
	if log := w.log.String(); strings.Count(log, "cannot be reached") != 1 {
		t.Errorf("got the log\n%s", log)
	}
}
