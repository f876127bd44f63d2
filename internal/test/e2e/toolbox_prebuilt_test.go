package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/test/dbtest"
)

// prebuiltConfig has a role with all tools that are declared.
const prebuiltConfig = `kind: role
name: all
toolGroups: [%s]
---
kind: gateway
name: api
tokens:
  - {name: ann, role: all, sha256: %s}
`

// prebuiltCase is a prebuilt configuration, of which Toolbox and rolecall are compared.
type prebuiltCase struct {
	toolsets []string
	database func(testing.TB) dbtest.Database
	setup    []string          // statements
	args     map[string]string // of tools that need some
	other    []string          // tools whose results are compared in no way
}

var prebuiltCases = map[string]prebuiltCase{
	"sqlite": {
		toolsets: []string{"sqlite_database_tools"}, other: []string{"list_tables"}, // has more
		database: func(t testing.TB) dbtest.Database { return dbtest.Database{Name: t.TempDir() + "/a.db"} },
	},
	"mysql": {
		toolsets: []string{"data", "monitor"}, database: dbtest.NewObservedMariaDB,
		setup: []string{"CREATE TABLE bare (n integer)", "INSERT INTO bare VALUES (1)"},
		args:  map[string]string{"get_query_plan": `{"sql_statement": "SELECT * FROM bare"}`, "list_table_fragmentation": `{"data_free_threshold_bytes": 0}`},
		other: []string{"list_all_locks", "list_active_queries", "get_query_plan"}, // Toolbox fails on MariaDB; nothing else runs; the plan is one column
	},
	"postgres": {
		toolsets: []string{"data", "monitor", "health", "view-config", "replication"}, database: dbtest.NewPostgres,
		setup: []string{
			"CREATE EXTENSION pg_stat_statements", "CREATE TABLE thing (id serial PRIMARY KEY, name text)", "CREATE VIEW things AS SELECT * FROM thing",
			"CREATE FUNCTION tick() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'", "CREATE TRIGGER tick AFTER INSERT ON thing FOR EACH ROW EXECUTE FUNCTION tick()",
			"CREATE PUBLICATION news FOR TABLE thing", "INSERT INTO thing (name) VALUES ('a')", "ANALYZE",
		},
		args: map[string]string{
			"get_query_plan": `{"query": "SELECT * FROM thing"}`, "get_column_cardinality": `{"table_name": "thing"}`,
			"long_running_transactions": `{"min_duration": "0 seconds"}`, "list_active_queries": `{"min_duration": "0 seconds"}`,
		},
		other: []string{"list_stored_procedure"}, // Toolbox has all rows in one
	},
}

// --prebuilt NAME has the toolsets, tools and parameters of Toolbox, and the rows of the results have
// the same columns.
func TestToolboxServer_SamePrebuiltTools(t *testing.T) {
	for name, c := range prebuiltCases {
		t.Run(name, func(t *testing.T) {
			s := newToolboxServer(t)
			d := c.database(t)
			env := databaseVariables(name, d)
			d.Password = strconv.Quote(d.Password) // Toolbox inserts variables into YAML as they are
			s.start(t, databaseVariables(name, d), "--prebuilt", name)
			fx := newServeFixture(t, fmt.Sprintf(prebuiltConfig, strings.Join(c.toolsets, ", "), digest("all")), env...)
			gateway, _ := fx.serve(t, "--prebuilt", name)
			// Not through the proxy: it cannot repeat a request whose connection the server has closed.
			theirs, ours := mcpPeer{s.target.Load().String() + "/mcp", ""}, mcpPeer{gateway + "/mcp", tokenOf("all")}
			for _, set := range c.toolsets {
				want, got := theirs.listTools(t, set), ours.listTools(t, set)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("toolset %s (-Toolbox +rolecall):\n%s", set, diff)
				}
			}
			args := map[string]string{"execute_sql": `{"sql": "SELECT 1 AS one"}`}
			for _, statement := range c.setup {
				ours.call(t, "execute_sql", fmt.Sprintf(`{"sql": %q}`, statement))
			}
			for tool, text := range c.args {
				args[tool] = text
			}
			for tool := range theirs.listTools(t, "") {
				if slices.Contains(c.other, tool) {
					continue
				}
				want, got := columnsOf(theirs.call(t, tool, args[tool])), columnsOf(ours.call(t, tool, args[tool]))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("columns of %s (-Toolbox +rolecall):\n%s", tool, diff)
				}
			}
		})
	}
}

// databaseVariables returns the variables that name a database to a prebuilt configuration.
func databaseVariables(name string, d dbtest.Database) []string {
	prefix := strings.ToUpper(name) + "_"
	return []string{prefix + "DATABASE=" + d.Name, prefix + "HOST=" + d.Host, prefix + "PORT=" + strconv.Itoa(d.Port), prefix + "USER=" + d.User, prefix + "PASSWORD=" + d.Password}
}

// mcpPeer is an MCP server of Toolbox or rolecall.
type mcpPeer struct{ url, token string }

// request sends one request without a session, and returns its answer.
func (p mcpPeer) request(t *testing.T, path, method string, params any) gjson.Result {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/plain, */*")
	r.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	if e := gjson.GetBytes(text.Bytes(), "error"); e.Exists() {
		t.Errorf("%s%s %s: %s", p.url, path, method, e.Raw)
	}
	return gjson.GetBytes(text.Bytes(), "result")
}

// listTools returns the parameters of the tools of a toolset, "" for all.
func (p mcpPeer) listTools(t *testing.T, toolset string) map[string]string {
	t.Helper()
	if toolset != "" {
		toolset = "/" + toolset
	}
	tools := map[string]string{}
	for _, tool := range p.request(t, toolset, "tools/list", map[string]any{}).Get("tools").Array() {
		tools[tool.Get("name").Str] = describeParameters(tool.Get("inputSchema"))
	}
	if len(tools) == 0 {
		t.Fatalf("%s lists no tools", p.url)
	}
	return tools
}

// describeParameters returns names, types, defaults and what is required.
func describeParameters(schema gjson.Result) string {
	var list []string
	for name, p := range schema.Get("properties").Map() {
		list = append(list, fmt.Sprintf("%s %s = %s", name, p.Get("type").Raw, p.Get("default").Raw))
	}
	for _, name := range schema.Get("required").Array() {
		list = append(list, "required "+name.Str)
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// call returns the texts of a tool's result.
func (p mcpPeer) call(t *testing.T, tool, args string) (texts []string) {
	t.Helper()
	if args == "" {
		args = `{}`
	}
	result := p.request(t, "", "tools/call", map[string]any{"name": tool, "arguments": json.RawMessage(args)})
	for _, c := range result.Get("content").Array() {
		texts = append(texts, c.Get("text").Str)
	}
	if result.Get("isError").Bool() {
		t.Errorf("%s of %s: %s", tool, p.url, texts)
	}
	return texts
}

// columnsOf returns the names in the first row, nil without rows.
func columnsOf(rows []string) (names []string) {
	if len(rows) == 0 {
		return nil
	}
	gjson.Parse(rows[0]).ForEach(func(name, _ gjson.Result) bool { names = append(names, name.Str); return true })
	return names
}
