package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// server returns the fields of a source that is a database server.
func server(d dbtest.Database) string {
	return fmt.Sprintf(`"host": %q, "port": %d, "user": %q, "password": %q, "database": %q`, d.Host, d.Port, d.User, d.Password, d.Name)
}

func postgres(t *testing.T) string {
	return `{"kind": "source", "name": "db", "type": "postgres", ` + server(dbtest.NewPostgres(t)) + `}`
}

func mariadb(t *testing.T) string {
	return `{"kind": "source", "name": "db", "type": "mysql", ` + server(dbtest.NewMariaDB(t)) + `}`
}

func sqlite(t *testing.T) string {
	return fmt.Sprintf(`{"kind": "source", "name": "db", "type": "sqlite", "database": %q}`, filepath.Join(t.TempDir(), "a.db"))
}

// databases returns a source of each kind.
var databases = map[string]func(*testing.T) string{"sqlite": sqlite, "postgres": postgres, "mysql": mariadb}

func eachDatabase(t *testing.T, fn func(t *testing.T, kind, source string)) {
	for kind, source := range databases {
		t.Run(kind, func(t *testing.T) { fn(t, kind, source(t)) })
	}
}

func TestModule_RowsAndTablesOfEachDatabase(t *testing.T) {
	first := map[string]string{"sqlite": "?1", "postgres": "$1::int8", "mysql": "CAST(? AS SIGNED)"}
	eachDatabase(t, func(t *testing.T, kind, source string) {
		w := open(t, `%[2]s
---
{kind: tool, name: do, type: %[1]s-execute-sql, source: db, description: d}
---
{kind: tool, name: look, type: %[1]s-execute-sql, source: db, description: d, annotations: {readOnlyHint: true}}
---
{kind: tool, name: tables, type: %[1]s-list-tables, source: db, description: d}
---
{kind: tool, name: echo, type: %[1]s-sql, source: db, description: d, statement: "SELECT %[3]s AS v", parameters: [{name: n, type: integer, description: d}]}
`, kind, source, first[kind])
		w.rows("do", `{"sql": "CREATE TABLE b(id INTEGER NOT NULL, name VARCHAR(20))"}`)
		w.rows("do", `{"sql": "CREATE TABLE a(x INTEGER)"}`)
		w.rows("do", `{"sql": "INSERT INTO a VALUES (1)"}`)
		if got := w.rows("echo", `{"n": 9007199254740993}`); got != `[{"v":9007199254740993}]` {
			t.Errorf("got %s", got)
		}
		wantCode(t, w.call(t.Context(), "look", `{"sql": "DELETE FROM a"}`), errcode.ToolExecutionFailed)
		if got := w.rows("look", `{"sql": "SELECT x FROM a"}`); got != `[{"x":1}]` {
			t.Errorf("got %s", got)
		}
		wantTables(t, w)
	})
}

func wantTables(t *testing.T, w *fixture) {
	t.Helper()
	names := func(args string) string { return gjson.Get(w.rows("tables", args), "#.object_name").Raw }
	for args, want := range map[string]string{`{}`: `["a","b"]`, `{"table_names": " b ,c"}`: `["b"]`, `{"table_names": "c"}`: `[]`, `{"output_format": "simple"}`: `["a","b"]`} {
		if got := names(args); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
	got := gjson.Get(w.rows("tables", `{"table_names": "b"}`), "0.object_details.columns")
	if got.Get("#.column_name").Raw != `["id","name"]` || got.Get("0.is_not_nullable").Raw != "true" || got.Get("1.is_not_nullable").Raw != "false" || !strings.Contains(strings.ToLower(got.Get("0.data_type").Str), "int") {
		t.Errorf("got %s", got.Raw)
	}
	wantCode(t, w.call(t.Context(), "tables", `{"output_format": "xml"}`), errcode.InvalidArguments)
}

func TestModule_ToolEffects(t *testing.T) {
	w := open(t, `%s
---
{kind: tool, name: plain, type: sqlite-sql, source: db, description: d, statement: SELECT 1, state: done, available_in_states: [ready, "*"]}
---
{kind: tool, name: reads, type: sqlite-sql, source: db, description: d, statement: SELECT 1, annotations: {readOnlyHint: true}}
---
{kind: tool, name: again, type: sqlite-sql, source: db, description: d, statement: SELECT 1, annotations: {idempotentHint: true}}
---
{kind: tool, name: says, type: sqlite-sql, source: db, description: d, statement: SELECT 1, effect: mutating}
---
{kind: tool, name: tables, type: sqlite-list-tables, source: db, description: d}
`, sqlite(t))
	want := map[string]tool.Effect{"plain": tool.Mutating, "reads": tool.ReadOnly, "again": tool.Idempotent, "says": tool.Mutating, "tables": tool.ReadOnly}
	for _, d := range w.groups.CurrentSnapshot().ToolDefinitions(toolbox.GroupID("db")) {
		if d.Effect != want[d.Name] {
			t.Errorf("%s is %s, want %s", d.Name, d.Effect, want[d.Name])
		}
		if d.Name == "plain" && (d.State != "done" || len(d.States) != 2) {
			t.Errorf("got %+v", d)
		}
	}
	if alone := w.groups.CurrentSnapshot().ToolDefinitions("db/plain"); len(alone) != 1 || alone[0].Name != "call_db_plain" || alone[0].State != "done" {
		t.Errorf("a tool alone: %+v", alone)
	}
	if a := w.call(t.Context(), "plain", `{}`); a.NewState != "done" {
		t.Errorf("the state moves to %q", a.NewState)
	}
}

// The example of Toolbox for its v2 configuration format, with a PostgreSQL server in
// place of a Cloud SQL instance.
func TestModule_UpstreamExample(t *testing.T) {
	const example = `
kind: sources
name: my-pg-instance
type: cloud-sql-postgres
project: my-project
region: my-region
instance: my-instance
database: %[1]s
user: %[2]s
password: %[3]q
---
kind: authServices
name: my-google-auth
type: google
clientId: testing-id
---
kind: tools
name: example_tool
type: postgres-sql
source: my-pg-instance
description: some description
statement: SELECT * FROM SQL_STATEMENT;
parameters:
- name: country
  type: string
  description: some description
---
kind: tools
name: example_tool_2
type: postgres-sql
source: my-pg-instance
description: returning the number one
statement: SELECT 1;
---
kind: tools
name: set_up
type: postgres-execute-sql
source: my-pg-instance
description: not in the example
---
kind: toolsets
name: example_toolset
tools:
- example_tool
`
	d := dbtest.NewPostgres(t)
	c := parse(t, fmt.Sprintf(example, d.Name, d.User, d.Password))
	w := newFixture(t, c)
	w.change = func(c *toolbox.Config) {
		c.CloudSQL = func(ctx context.Context, instance string) (net.Conn, error) {
			if instance != "my-project:my-region:my-instance" {
				return nil, fmt.Errorf("unknown instance %s", instance)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", d.Host, d.Port))
		}
	}
	w.load(c)
	w.rows("set_up", `{"sql": "CREATE TABLE SQL_STATEMENT AS SELECT 'CY' AS country"}`)
	if got := w.rows("example_tool", `{"country": "CY"}`); got != `[{"country":"CY"}]` {
		t.Errorf("got %s", got)
	}
	if got := w.rows("example_tool_2", `{}`); got != `[{"?column?":1}]` {
		t.Errorf("got %s", got)
	}
	wantCode(t, w.call(t.Context(), "example_tool", `{}`), errcode.InvalidArguments)
	groups := toolbox.BuildToolsets(c.Tools, c.Toolsets)
	if len(groups) != 2 || groups[1].ID != "example_toolset" || fmt.Sprint(groups[1].Refs) != "[example_tool]" {
		t.Errorf("got %+v", groups)
	}
}

func TestNew_RejectsInvalidSource(t *testing.T) {
	var pools toolbox.Pools
	for name, c := range map[string]toolbox.Config{
		"nothing":  {},
		"no pools": {Source: toolboxfile.Source{Name: "a", Type: toolboxfile.SourceSQLite, Database: "a.db"}},
		"type":     {Source: toolboxfile.Source{Name: "a", Type: "oracle"}, Pools: &pools},
		"base":     {Source: toolboxfile.Source{Name: "a", Type: toolboxfile.SourceHTTP, BaseURL: "ftp://a"}, Pools: &pools},
		"password": {Source: toolboxfile.Source{Name: "a", Type: toolboxfile.SourceHTTP, BaseURL: "https://a:b@c"}, Pools: &pools},
		"header":   {Source: toolboxfile.Source{Name: "a", Type: toolboxfile.SourceHTTP, BaseURL: "https://a", Headers: map[string]yamldoc.Secret{"Host": "b"}}, Pools: &pools},
		"a tool of another source": {Source: toolboxfile.Source{Name: "a", Type: toolboxfile.SourceSQLite, Database: "a.db"}, Pools: &pools,
			Tools: []toolboxfile.DeclaredTool{{Name: "t", Type: toolboxfile.ToolHTTP}}},
	} {
		if _, err := toolbox.New(c); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The error of an invalid query parameter names it and does not contain its value.
func TestNew_ErrorNamesParameterWithoutValue(t *testing.T) {
	var pools toolbox.Pools
	for name, params := range map[string]map[string]string{
		"sslmode":     {"sslmode": "s3cret", "application_name": "a b"},
		"sslrootcert": {"sslmode": "verify-full", "sslrootcert": "/s3cret/ca.pem"},
		"queryParams": {"sslmode": "s3cret", "sslrootcert": "/s3cret/ca.pem"}, // more than one is invalid
	} {
		s := toolboxfile.Source{Name: "a", Type: toolboxfile.SourcePostgres, Host: "h", Port: 1, User: "u", Database: "d", Params: params}
		_, err := toolbox.New(toolbox.Config{Source: s, Pools: &pools})
		if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestModuleName_IsValidAndUnique(t *testing.T) {
	for _, name := range []string{"db", "my db", "my.db", "Root", "ü/\x00", strings.Repeat("x", 300), strings.Repeat("x", 128)} {
		m, err := toolbox.New(toolbox.Config{Source: toolboxfile.Source{Name: name, Type: toolboxfile.SourceSQLite, Database: "a.db"}, Pools: new(toolbox.Pools)})
		if err != nil {
			t.Fatal(err)
		}
		w := newFixture(t, nil)
		if err := w.loader.LoadModule(t.Context(), m); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	if toolbox.ModuleName("my db") == toolbox.ModuleName("my_db") || toolbox.ModuleName("my db") == toolbox.ModuleName("my/db") {
		t.Error("two sources have the same module name")
	}
}

func TestBuildToolsets_IncludeGroupsOfTools(t *testing.T) {
	tools := []toolboxfile.DeclaredTool{{Name: "a"}, {Name: "b", Groups: []string{"g", "s"}}, {Name: "c", Groups: []string{"g"}}}
	sets := []toolboxfile.Toolset{{Name: "s", Description: "d", Tools: []string{"c"}}, {Name: "", Description: "all"}}
	text := func(sets []toolboxfile.Toolset) string {
		var all []string
		for _, g := range toolbox.BuildToolsets(tools, sets) {
			all = append(all, fmt.Sprintf("%s%s", g.ID, g.Refs))
		}
		return strings.Join(all, " ")
	}
	if got := text(sets); got != "default[a] g[b c] s[c b]" {
		t.Errorf("got %s", got)
	}
	if got := text(append(sets, toolboxfile.Toolset{Name: "default", Tools: []string{"c"}})); got != "default[c] g[b c] s[c b]" {
		t.Errorf("got %s", got)
	}
}

func TestModule_Limits(t *testing.T) {
	w := open(t, `%s
---
{kind: tool, name: many, type: sqlite-sql, source: db, description: d, maxRows: 2, annotations: {readOnlyHint: true}, statement: "SELECT value AS v FROM json_each('[1,2,3]')"}
---
{kind: tool, name: long, type: sqlite-sql, source: db, description: d, maxResponseBytes: 100, statement: "SELECT printf('%%1000d', 1) AS v"}
---
{kind: tool, name: slow, type: sqlite-sql, source: db, description: d, timeout: 50ms, statement: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"}
---
{kind: tool, name: slowly, type: sqlite-sql, source: db, description: d, timeout: 50ms, annotations: {readOnlyHint: true}, statement: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"}
`, sqlite(t))
	wantCode(t, w.call(t.Context(), "many", `{}`), errcode.ResultTooLarge)
	wantCode(t, w.call(t.Context(), "long", `{}`), errcode.ResultTooLarge)
	wantCode(t, w.call(t.Context(), "slow", `{}`), errcode.ToolInterrupted)
	wantCode(t, w.call(t.Context(), "slowly", `{}`), errcode.ToolTimeout)
}

func TestModule_HidesSecureArguments(t *testing.T) {
	w := open(t, `%s
---
{kind: tool, name: p, type: sqlite-sql, source: db, description: d, statement: "SELECT ?1 AS a, ?2 AS b", parameters: [{name: a, type: string, description: d, secure: true}, {name: b, type: string, description: d}]}
---
{kind: tool, name: fails, type: sqlite-sql, source: db, description: d, statement: "SELECT json_extract('{}', ?1) AS a", parameters: [{name: a, type: string, description: d, secure: true}]}
`, sqlite(t))
	wantCode(t, w.call(t.Context(), "p", `{"a": "model", "b": "y"}`), errcode.InvalidArguments)
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Secure: json.RawMessage(`{"a":"s3cret"}`)})
	if a := w.call(ctx, "p", `{"a": "model", "b": "y"}`); string(a.Result.Structured) != `[{"a":"s3cret","b":"y"}]` {
		t.Errorf("got %s", a.Result.JSON())
	}
	a := w.call(ctx, "fails", `{}`)
	wantCode(t, a, errcode.ToolExecutionFailed)
	if all := fmt.Sprint(a.Result, string(a.Request.Args), w.log.String()); strings.Contains(all, "s3cret") {
		t.Errorf("%s contains the secret", all)
	}
}

// Error texts of the database or the service, which may repeat a claim, are withheld.
func TestModule_HidesClaims(t *testing.T) {
	refuses := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, r.URL.RawQuery, http.StatusTeapot) })
	idp := oidctest.NewIssuer(t)
	c := parse(t, fmt.Sprintf(`%s
---
{kind: source, name: api, type: http, baseUrl: '%s'}
---
{kind: authService, name: id, type: generic, audience: us, authorizationServer: '%s'}
---
{kind: tool, name: states, type: sqlite-sql, source: db, description: d, statement: "SELECT json_extract('{}', ?1) AS a", parameters: [{name: a, type: string, description: d, authServices: [{name: id, field: sub}]}]}
---
{kind: tool, name: copies, type: sqlite-sql, source: db, description: d, statement: "SELECT json_extract('{}', ?1) AS a", parameters: [{name: b, type: string, description: d, valueFromParam: a}, {name: a, type: string, description: d, authServices: [{name: id, field: sub}]}]}
---
{kind: tool, name: asks, type: http, source: api, description: d, method: GET, path: /, queryParams: [{name: a, type: string, description: d, authServices: [{name: id, field: sub}]}]}
`, sqlite(t), refuses, idp.URL))
	w := newFixture(t, c)
	w.change = func(c *toolbox.Config) {
		c.Network = func() toolbox.Network {
			return toolbox.Network{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		}
	}
	w.load(c)
	token := idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"us","sub":"s3cret","exp":%d}`, idp.URL, time.Now().Add(time.Hour).Unix()))
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: map[string]string{"id": token}})
	for _, name := range []string{"states", "copies", "asks"} {
		a := w.call(ctx, name, `{}`)
		wantCode(t, a, errcode.ToolExecutionFailed)
		if all := string(a.Result.JSON()) + w.log.String(); strings.Contains(all, "s3cret") || !strings.Contains(all, "withheld") {
			t.Errorf("%s: %s", name, all)
		}
	}
}
