package toolbox_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/tool"
)

// openPrebuilt loads a prebuilt file on a database.
func openPrebuilt(t *testing.T, name string, d dbtest.Database) *fixture {
	t.Helper()
	upper := strings.ToUpper(name) + "_"
	env := map[string]string{
		upper + "HOST": d.Host, upper + "PORT": strconv.Itoa(d.Port), upper + "USER": d.User, upper + "PASSWORD": d.Password, upper + "DATABASE": d.Name,
	}
	c, err := config.LoadFiles([]string{"prebuilt:" + name}, func(name string) (string, bool) { value, ok := env[name]; return value, ok })
	if err != nil {
		t.Fatal(err)
	}
	w := newFixture(t, c)
	w.load(c)
	return w
}

// Only execute_sql of a prebuilt file may change something.
func TestPrebuilt_Effects(t *testing.T) {
	for name, source := range map[string]string{"sqlite": "sqlite-source", "mysql": "mysql-source", "postgres": "postgresql-source"} {
		w := openPrebuilt(t, name, dbtest.Database{Host: "127.0.0.1", Port: 1, User: "u", Password: "p", Name: ":memory:"})
		for _, d := range w.groups.CurrentSnapshot().ToolDefinitions(toolbox.GroupID(source)) {
			if changes := d.Name == "execute_sql"; changes != (d.Effect == tool.Mutating) || !changes && d.Effect != tool.ReadOnly {
				t.Errorf("%s: %s is %s", name, d.Name, d.Effect)
			}
			if d.Description == "" {
				t.Errorf("%s: %s has no description", name, d.Name)
			}
		}
	}
}

// Each tool of the prebuilt files runs on its database, and no tool but execute_sql changes it.
func TestPrebuilt_RunOnDatabases(t *testing.T) {
	required := map[string]string{
		"execute_sql": `{"sql": "SELECT 1 AS one"}`, "get_column_cardinality": `{"table_name": "thing"}`,
		"get_query_plan": `{"query": "SELECT * FROM thing", "sql_statement": "SELECT * FROM thing"}`,
	}
	for name, database := range map[string]func(testing.TB) dbtest.Database{
		"sqlite":   func(t testing.TB) dbtest.Database { return dbtest.Database{Name: t.TempDir() + "/a.db"} },
		"postgres": dbtest.NewPostgres, "mysql": dbtest.NewObservedMariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			w := openPrebuilt(t, name, database(t))
			w.rows("execute_sql", `{"sql": "CREATE TABLE thing (id integer PRIMARY KEY)"}`)
			if name == "postgres" {
				w.rows("execute_sql", `{"sql": "CREATE EXTENSION pg_stat_statements"}`)
			}
			source := map[string]string{"postgres": "postgresql-source"}[name]
			if source == "" {
				source = name + "-source"
			}
			for _, d := range w.groups.CurrentSnapshot().ToolDefinitions(toolbox.GroupID(source)) {
				args := required[d.Name]
				if args == "" {
					args = `{}`
				}
				if got := w.rows(d.Name, args); !gjson.Parse(got).IsArray() {
					t.Errorf("%s: %s", d.Name, got)
				}
			}
			if got := w.rows("list_tables", `{"table_names": "thing"}`); !strings.Contains(got, `"object_name":"thing"`) {
				t.Errorf("got %s", got)
			}
			if name == "sqlite" { // has no plans
				return
			}
			for _, attack := range []string{"SELECT 1; DROP TABLE thing", "DROP TABLE thing"} {
				wantCode(t, w.call(t.Context(), "get_query_plan", `{"query": "`+attack+`", "sql_statement": "`+attack+`"}`), errcode.ToolExecutionFailed)
			}
		})
	}
}

// The plan of a statement that changes something does not run it.
func TestPrebuilt_PlanDoesNotRun(t *testing.T) {
	w := openPrebuilt(t, "postgres", dbtest.NewPostgres(t))
	w.rows("execute_sql", `{"sql": "CREATE TABLE thing (id integer PRIMARY KEY)"}`)
	w.rows("execute_sql", `{"sql": "INSERT INTO thing VALUES (1)"}`)
	if got := w.rows("get_query_plan", `{"query": "DELETE FROM thing"}`); !strings.Contains(got, "ModifyTable") {
		t.Errorf("got %s", got)
	}
	for _, attack := range []string{") SELECT 1", "ANALYZE DELETE FROM thing", "SELECT 1) ; DELETE FROM thing"} {
		wantCode(t, w.call(t.Context(), "get_query_plan", `{"query": "`+attack+`"}`), errcode.ToolExecutionFailed)
	}
	if got := w.rows("execute_sql", `{"sql": "SELECT id FROM thing"}`); got != `[{"id":1}]` {
		t.Errorf("got %s", got)
	}
}
