package toolbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/dbtest"
)

// Databases that speak the protocol of another are used by that protocol. The servers here are
// PostgreSQL and MariaDB.
func TestModule_Aliases(t *testing.T) {
	pg, my := dbtest.NewPostgres(t), dbtest.NewMariaDB(t)
	for _, tt := range []struct {
		name   string
		server dbtest.Database
		fields string
	}{
		{"cockroachdb", pg, "enableWriteMode: true, maxRowLimit: 2, queryTimeoutSec: 20"},
		{"yugabytedb", pg, "timeout: 20s"},
		{"oceanbase", my, "queryTimeout: 20s"},
		{"singlestore", my, "connectionParams: {charset: utf8mb4}"},
		{"tidb", my, "ssl: false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.server
			text := fmt.Sprintf(`
{kind: source, name: db, type: %[1]s, host: %[2]q, port: %[3]d, user: %[4]q, password: %[5]q, database: %[6]q, %[7]s}
---
{kind: tool, name: one, type: %[1]s-sql, source: db, description: d, statement: SELECT 1 AS v}
`, tt.name, d.Host, d.Port, d.User, d.Password, d.Name, tt.fields)
			if tt.name != "yugabytedb" { // which has no tool for any statement
				text += fmt.Sprintf("---\n{kind: tool, name: any, type: %s-execute-sql, source: db, description: d}\n", tt.name)
			}
			listing := map[string]string{"cockroachdb": "cockroachdb-list-tables", "yugabytedb": "postgres-list-tables", "tidb": "tidb-list-tables"}[tt.name]
			if listing == "" { // Toolbox has none of their own
				listing = "mysql-list-tables"
			}
			text += fmt.Sprintf("---\n{kind: tool, name: tables, type: %s, source: db, description: d}\n", listing)
			w := open(t, "%s", text)
			if got := w.rows("one", `{}`); got != `[{"v":1}]` {
				t.Errorf("got %s", got)
			}
			if d == my {
				if got := w.rows("any", `{"sql": "SELECT @@tmpdir AS dir"}`); !strings.Contains(got, "dbtest-mariadb") {
					t.Errorf("the server has its temporary files in %s, where another server may delete them", got)
				}
			}
			if strings.Contains(text, "name: any") {
				w.rows("any", fmt.Sprintf(`{"sql": "CREATE TABLE %s_t (v integer)"}`, tt.name))
				if got := w.rows("tables", fmt.Sprintf(`{"table_names": "%s_t", "output_format": "simple"}`, tt.name)); !strings.Contains(got, `{"name":"`+tt.name+`_t"}`) {
					t.Errorf("got %s", got)
				}
				if got := w.rows("tables", fmt.Sprintf(`{"table_names": "%s_t"}`, tt.name)); !strings.Contains(got, `"column_name":"v"`) {
					t.Errorf("got %s", got)
				}
			} else if got := w.rows("tables", `{"table_names": "none"}`); got != `[]` {
				t.Errorf("got %s", got)
			}
		})
	}
}

// The functions that describe constraints, indexes and triggers are not asked of CockroachDB.
func TestModule_CockroachListsColumnsOnly(t *testing.T) {
	d := dbtest.NewPostgres(t)
	for kind, want := range map[string]bool{"cockroachdb, enableWriteMode: true": false, "postgres": true} {
		w := open(t, `
{kind: source, name: db, host: %[2]q, port: %[3]d, user: %[4]q, password: %[5]q, database: %[6]q, type: %[1]s}
---
{kind: tool, name: any, type: postgres-execute-sql, source: db, description: d}
---
{kind: tool, name: tables, type: cockroachdb-list-tables, source: db, description: d}
`, kind, d.Host, d.Port, d.User, d.Password, d.Name)
		w.rows("any", `{"sql": "CREATE TABLE IF NOT EXISTS keyed (id integer PRIMARY KEY)"}`)
		got := w.rows("tables", `{"table_names": "keyed"}`)
		if !strings.Contains(got, `"column_name":"id"`) || strings.Contains(got, "keyed_pkey") != want {
			t.Errorf("%s: got %s", kind, got)
		}
	}
}

// Without enableWriteMode the statements on CockroachDB cannot write.
func TestModule_CockroachIsReadOnly(t *testing.T) {
	d := dbtest.NewPostgres(t)
	w := open(t, `
{kind: source, name: db, type: cockroachdb, host: %q, port: %d, user: %q, password: %q, database: %q}
---
{kind: tool, name: any, type: cockroachdb-execute-sql, source: db, description: d}
`, d.Host, d.Port, d.User, d.Password, d.Name)
	wantCode(t, w.call(t.Context(), "any", `{"sql": "CREATE TABLE t (v integer)"}`), errcode.ToolExecutionFailed)
}

// TiDB rejects transactions that only read in its default settings, so none is begun to list
// tables. MariaDB counts those that a connection has begun.
func TestModule_TiDBListsWithoutReadOnlyTransaction(t *testing.T) {
	d := dbtest.NewMariaDB(t)
	for kind, begins := range map[string]bool{"tidb": false, "mysql": true} {
		w := open(t, `
{kind: source, name: db, type: %[1]s, host: %[2]q, port: %[3]d, user: %[4]q, password: %[5]q, database: %[6]q, maxConnections: 1}
---
{kind: tool, name: tables, type: mysql-list-tables, source: db, description: d}
---
{kind: tool, name: begun, type: mysql-sql, source: db, description: d,
 statement: "SHOW SESSION STATUS LIKE 'Com_begin'"}
`, kind, d.Host, d.Port, d.User, d.Password, d.Name)
		w.rows("tables", `{}`)
		if got := w.rows("begun", `{}`); (got != `[{"Variable_name":"Com_begin","Value":"0"}]`) != begins || !strings.Contains(got, "Com_begin") {
			t.Errorf("%s: got %s", kind, got)
		}
	}
}
