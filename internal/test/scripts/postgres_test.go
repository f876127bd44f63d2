package scripts_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/dbtest"
)

// runBinary runs the program in a new directory and returns its standard output.
func runBinary(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "rolecall", args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), append(os.Environ(), env...), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("rolecall %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// An agent whose role has one toolset answers a question from PostgreSQL and cannot call
// the tools of the other toolset.
func TestRun_AnswersFromPostgres(t *testing.T) {
	db := dbtest.NewPostgres(t)
	flights, err := filepath.Abs("../../../examples/flights")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PGHOST=" + db.Host, "PGPORT=" + strconv.Itoa(db.Port), "PGUSER=" + db.User, "PGPASSWORD=" + db.Password, "PGDATABASE=" + db.Name}
	got := runBinary(t, env, "run", "-f", flights+"/postgres.yaml", "-f", flights+"/organization.yaml", "When does DL 1234 leave?")
	want := "DL 1234 departs 2026-11-22T09:40:00Z\nthe caller's own: unauthenticated, the table filled: tool_not_available\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var rows int
	if err := dbtest.OpenPostgres(t, db).QueryRow("SELECT count(*) FROM flights").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("the table has %d rows, %v; want 2", rows, err)
	}
}

// The example of MCP Toolbox runs unchanged except for the address of the database. Its
// role has the one tool of its toolset.
func TestRun_ToolboxExampleOnPostgres(t *testing.T) {
	db := dbtest.NewPostgres(t)
	if _, err := dbtest.OpenPostgres(t, db).ExecContext(context.Background(), "CREATE TABLE sql_statement (id bigint); INSERT INTO sql_statement VALUES (42)"); err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../../cmd/testdata/toolbox/plural.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"type: cloud-sql-postgres", "type: postgres",
		"project: my-project\nregion: my-region\ninstance: my-instance\n", fmt.Sprintf("host: %s\nport: %d\n", db.Host, db.Port),
		"my_db", db.Name, "my_user", db.User, "my_pass", strconv.Quote(db.Password),
	).Replace(string(example))
	dir := t.TempDir()
	for name, content := range map[string]string{"tools.yaml": text, "org.yaml": exampleOrg, "agents.js": exampleScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := runBinary(t, nil, "run", "-f", dir, "What is there?")
	if want := `{"rows":"[{\"id\":42}]","other":"tool_not_available"}` + "\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

const (
	exampleOrg = `{kind: organization, name: example, model: main}
---
{kind: model, name: main, type: script, file: agents.js}
---
{kind: role, name: asker, toolGroups: [example_toolset]}
`
	exampleScript = `role("root", function* () {
  const asker = yield call("find_role_by_name", { name: "asker" });
  yield call("spawn_agent_with_task", {
    roleId: asker.id, initialMessage: "go",
    taskBrief: { objective: "o", constraints: [], inputs: "i", outputs: "o", completion_criteria: "c" },
  });
  return (yield receive()).payload;
});
role("asker", function* () {
  const [rows, other] = yield [call("example_tool", { country: "CY" }), call("example_tool_2", {})];
  return { rows: JSON.stringify(rows), other: other.error };
});
`
)
