package toolbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// catalogFile returns a source with a tool of each type that reads its catalogs, under the
// name of the type, and the tool do, which runs any statement.
func catalogFile(kind, source string) string {
	text := source + fmt.Sprintf("\n---\n{kind: tool, name: do, type: %s-execute-sql, source: db, description: d}", kind)
	for _, name := range toolboxfile.CatalogTypes(kind) {
		text += fmt.Sprintf("\n---\n{kind: tool, name: %[1]s, type: %[1]s, source: db}", name)
	}
	return text
}

// The tools that read catalogs only read, and describe themselves.
func TestCatalog_OnlyReads(t *testing.T) {
	for kind, source := range map[string]string{
		"postgres": `{kind: source, name: db, type: postgres, host: 127.0.0.1, port: 1, user: u, database: d}`,
		"mysql":    `{kind: source, name: db, type: mysql, host: 127.0.0.1, port: 1}`,
	} {
		w := open(t, "%s", catalogFile(kind, source))
		list := w.groups.CurrentSnapshot().ToolDefinitions(toolbox.GroupID("db"))
		if len(list) != len(toolboxfile.CatalogTypes(kind))+1 {
			t.Errorf("%s: %d tools", kind, len(list))
		}
		for _, d := range list {
			if d.Name == "do" {
				continue
			}
			if d.Effect != tool.ReadOnly || d.Description == "" {
				t.Errorf("%s: %s, %q", d.Name, d.Effect, d.Description)
			}
		}
	}
}

// A description of the document replaces that of the type, and effect cannot make the tool write.
func TestCatalog_OwnDescription(t *testing.T) {
	w := open(t, `
{kind: source, name: db, type: mysql, host: 127.0.0.1, port: 1}
---
{kind: tool, name: locks, type: mysql-list-all-locks, source: db, description: Mine., effect: mutating}
`)
	d := w.groups.CurrentSnapshot().ToolDefinitions(toolbox.GroupID("db"))[0]
	if d.Description != "Mine." || d.Effect != tool.ReadOnly {
		t.Errorf("%+v", d)
	}
}

// shop has what the catalog tools list. Statements are separated by empty lines.
var shop = map[string]string{
	"postgres": `
CREATE TABLE customer (id int PRIMARY KEY, email text UNIQUE NOT NULL, note text DEFAULT 'x')

CREATE TABLE orders (id bigserial PRIMARY KEY, customer int NOT NULL REFERENCES customer (id), total numeric CHECK (total >= 0))

CREATE INDEX orders_by_customer ON orders (customer)

CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100

CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$

CREATE TRIGGER orders_touch BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch()

CREATE PROCEDURE tidy(n int) LANGUAGE sql AS 'DELETE FROM orders WHERE id < n'

CREATE PUBLICATION news FOR TABLE customer

CREATE SCHEMA accounting

GRANT USAGE ON SCHEMA accounting TO public

INSERT INTO customer SELECT g, g || '@example.com' FROM generate_series(1, 40) g

INSERT INTO orders (customer, total) SELECT g, 5 FROM generate_series(1, 40) g

ANALYZE`,
	"mysql": `
CREATE TABLE customer (id int PRIMARY KEY, email varchar(60) UNIQUE NOT NULL, note text DEFAULT 'x')

CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, customer int NOT NULL, total decimal(10,2), KEY by_customer (customer), FOREIGN KEY (customer) REFERENCES customer (id))

CREATE TABLE bare (n int)

INSERT INTO customer (id, email) VALUES (1, 'a'), (2, 'b')`,
}

// openShop opens a database with the shop, and the tools that read its catalogs.
func openShop(t *testing.T, kind string) *fixture {
	t.Helper()
	source := databases[kind]
	if kind == "mysql" {
		source = func(t *testing.T) string {
			return `{"kind": "source", "name": "db", "type": "mysql", ` + server(dbtest.NewObservedMariaDB(t)) + `}`
		}
	}
	w := open(t, "%s", catalogFile(kind, source(t)))
	for statement := range strings.SplitSeq(shop[kind], "\n\n") {
		w.rows("do", fmt.Sprintf(`{"sql": %q}`, strings.TrimSpace(statement)))
	}
	return w
}

// catalogCase is a call of a tool whose result contains texts and not others.
type catalogCase struct {
	tool, args string
	has        []string
	lacks      []string
}

func (w *fixture) checkCatalog(list []catalogCase) {
	w.t.Helper()
	for _, c := range list {
		got := w.rows(c.tool, c.args)
		for _, text := range c.has {
			if !strings.Contains(got, text) {
				w.t.Errorf("%s %s has no %s: %s", c.tool, c.args, text, got)
			}
		}
		for _, text := range c.lacks {
			if strings.Contains(got, text) {
				w.t.Errorf("%s %s has %s: %s", c.tool, c.args, text, got)
			}
		}
	}
}

func TestCatalog_Postgres(t *testing.T) {
	w := openShop(t, "postgres")
	w.checkCatalog([]catalogCase{
		{"postgres-list-views", `{}`, []string{`"view_name":"big_orders"`, `"schema_name":"public"`, `"owner_name"`, `total > `}, []string{"pg_stat"}},
		{"postgres-list-views", `{"view_name": "small"}`, []string{`[]`}, nil},
		{"postgres-list-schemas", `{"schema_name": "account"}`, []string{`"grants":{`, `"PUBLIC":["USAGE"]`, `"tables":0`}, []string{"public\"", "pg_"}},
		{"postgres-list-schemas", `{"schema_name": "public"}`, []string{`"tables":2,"views":1,"functions":2`}, nil},
		{"postgres-list-triggers", `{}`, []string{`"trigger_name":"orders_touch"`, `"status":"ENABLED","timing":"BEFORE","events":"INSERT, UPDATE","activation_level":"ROW","function_name":"touch"`}, []string{"RI_"}},
		{"postgres-list-triggers", `{"table_name": "customer"}`, []string{`[]`}, nil},
		{"postgres-list-indexes", `{"table_name": "orders"}`, []string{`"index_name":"orders_by_customer","index_type":"btree","is_unique":false,"is_primary":false`, `"is_primary":true`}, []string{"customer_pkey"}},
		{"postgres-list-indexes", `{"only_unused": true, "limit": 1, "index_name": "by_customer"}`, []string{`"is_used":false`}, nil},
		{"postgres-list-sequences", `{}`, []string{`"sequence_name":"orders_id_seq"`, `"last_value":40`, `"max_value":9223372036854775807`}, nil},
		{"postgres-list-stored-procedure", `{}`, []string{`"name":"tidy"`, `"language":"sql"`, `"schema_name":"public"`}, []string{"touch"}},
		{"postgres-list-stored-procedure", `{"schema_name": "accounting"}`, []string{`[]`}, nil},
		{"postgres-list-table-stats", `{"sort_by": "size", "limit": 1}`, []string{`"live_rows":`, `"total_size_bytes":`}, nil},
		{"postgres-list-table-stats", `{"table_name": "customer"}`, []string{`"table_name":"customer"`}, []string{`"orders"`}},
		{"postgres-get-column-cardinality", `{"table_name": "customer"}`, []string{`{"column_name":"email","estimated_cardinality":40}`}, nil},
		{"postgres-get-column-cardinality", `{"table_name": "customer", "column_name": "id"}`, []string{`"id"`}, []string{"email"}},
		{"postgres-list-publication-tables", `{"publication_names": "none, news"}`, []string{`"table_name":"customer","publishes_all_tables":false,"publishes_inserts":true`}, nil},
		{"postgres-list-publication-tables", `{"table_names": "orders"}`, []string{`[]`}, nil},
		{"postgres-database-overview", `{}`, []string{`"is_replica":false`, `"uptime":"`, `"pct_connections_used":`}, nil},
		{"postgres-list-available-extensions", `{}`, []string{`"name":"plpgsql"`}, nil},
		{"postgres-list-installed-extensions", `{}`, []string{`"name":"plpgsql","version":`, `"schema":"pg_catalog"`}, nil},
		{"postgres-list-tablespaces", `{"tablespace_name": "default"}`, []string{`"tablespace_name":"pg_default"`, `"oid":1663`}, []string{"pg_global"}},
		{"postgres-list-pg-settings", `{"setting_name": "shared_buffers"}`, []string{`"name":"shared_buffers"`, `"requires_restart":"Yes"`}, []string{"work_mem"}},
		{"postgres-list-roles", `{}`, []string{`"role_name":`, `"direct_members":[]`}, []string{"pg_monitor"}},
		{"postgres-list-database-stats", `{"order_by": "size"}`, []string{`"is_connectable":true`, `"database_size_bytes":`}, []string{`"template0"`}},
		{"postgres-list-database-stats", `{"include_templates": true, "database_name": "template0"}`, []string{`"template0"`}, nil},
		{"postgres-replication-stats", `{}`, []string{`[]`}, nil},
		{"postgres-list-active-queries", `{"min_duration": "1 day"}`, []string{`[]`}, nil},
	})
	wantCode(t, w.call(t.Context(), "postgres-list-query-stats", `{}`), errcode.ToolExecutionFailed) // without the extension
	w.rows("do", `{"sql": "CREATE EXTENSION pg_stat_statements"}`)
	w.checkCatalog([]catalogCase{
		{"postgres-list-query-stats", `{"limit": 1000}`, []string{`CREATE TABLE customer`, `"calls":1,"total_exec_time":`}, nil},
		{"postgres-list-query-stats", `{"database_name": "none"}`, []string{`[]`}, nil},
	})
	wantCode(t, w.call(t.Context(), "postgres-list-table-stats", `{"sort_by": "name; DROP TABLE orders"}`), errcode.InvalidArguments)
	wantCode(t, w.call(t.Context(), "postgres-list-views", `{"limit": -1}`), errcode.InvalidArguments)
}

// What another connection does appears in the lists of queries, transactions and locks.
func TestCatalog_PostgresActivity(t *testing.T) {
	w := openShop(t, "postgres")
	defer w.inBackground(bob, "SELECT pg_sleep(60) FROM orders LIMIT 1")()
	waitFor(t, "the query is listed", func() bool {
		return strings.Contains(w.rows("postgres-list-active-queries", `{"min_duration": "0 seconds"}`), "PgSleep") // it has its locks
	})
	w.checkCatalog([]catalogCase{
		{"postgres-list-active-queries", `{"min_duration": "0 seconds"}`, []string{`"state":"active","wait_event_type":"Timeout","wait_event":"PgSleep"`, `"query_duration":"`}, nil},
		{"postgres-long-running-transactions", `{"min_duration": "0 seconds"}`, []string{`pg_sleep`, `"xact_age":"`}, nil},
		{"postgres-list-locks", `{}`, []string{`true,orders,AccessShareLock`, "pg_sleep"}, nil},
	})
}

func TestCatalog_MySQL(t *testing.T) {
	w := openShop(t, "mysql")
	db := strings.Split(strings.Split(w.rows("do", `{"sql": "SELECT DATABASE() AS d"}`), `:"`)[1], `"`)[0]
	here := fmt.Sprintf(`{"table_schema": %q, "data_free_threshold_bytes": 0}`, db)
	w.checkCatalog([]catalogCase{
		{"mysql-list-tables-missing-unique-indexes", here, []string{`"table_name":"bare"`}, []string{`"customer"`}},
		{"mysql-list-table-fragmentation", here, []string{`"table_name":"orders"`, `"fragmentation_percentage":0.00`}, nil},
		{"mysql-list-table-fragmentation", `{"table_schema": "none"}`, []string{`[]`}, nil},
		{"mysql-list-table-stats", here, []string{`"table_name":"customer"`, `"size_MB":`, `"rows_fetched":`}, nil},
		{"mysql-list-table-stats", `{"table_name": "bare", "sort_by": "row_count", "limit": 1}`, []string{`"table_name":"bare"`}, []string{`"orders"`}},
		{"mysql-get-query-plan", `{"sql_statement": "SELECT * FROM customer WHERE id = 1"}`, []string{`query_block`, `PRIMARY`}, nil},
		{"mysql-show-query-stats", strings.Replace(here, "}", `, "limit": 100}`, 1), []string{`"query":"CREATE TABLE `, `"execution_count":1,"total_latency_ms":`}, nil},
		{"mysql-list-all-locks", here, []string{`[]`}, nil},
	})
	wantCode(t, w.call(t.Context(), "mysql-get-query-plan", `{"sql_statement": "SELECT 1; DROP TABLE orders"}`), errcode.ToolExecutionFailed)
	wantCode(t, w.call(t.Context(), "mysql-list-table-stats", `{"sort_by": "size"}`), errcode.InvalidArguments)
	wantCode(t, w.call(t.Context(), "mysql-get-query-plan", `{"sql_statement": "DELETE FROM customer"}`), errcode.ToolExecutionFailed)
	if got := w.rows("do", `{"sql": "SELECT count(*) AS n FROM customer"}`); got != `[{"n":2}]` {
		t.Errorf("got %s", got)
	}
}

// innodbPause is longer than InnoDB keeps its lists of transactions and locks while they are read.
const innodbPause = 300 * time.Millisecond

// What other connections do appears in the lists of queries and locks.
func TestCatalog_MySQLActivity(t *testing.T) {
	w := openShop(t, "mysql")
	defer w.inBackground(bob, "SELECT sleep(60) FROM customer FOR UPDATE")()
	waitEvery(t, innodbPause, "the query is listed", func() bool { return strings.Contains(w.rows("mysql-list-active-queries", `{}`), "User sleep") }) // it has its locks
	defer w.inBackground(ann, "UPDATE customer SET note = 'y'")()
	waitEvery(t, innodbPause, "the locks are listed", func() bool { return strings.Contains(w.rows("mysql-list-all-locks", `{}`), "WAITING") })
	w.checkCatalog([]catalogCase{
		{"mysql-list-active-queries", `{}`, []string{`"trx_state":"LOCK WAIT"`, `"query":"UPDATE customer`}, []string{"trx_mysql_thread_id"}},
		{"mysql-list-all-locks", `{"table_name": "customer"}`, []string{`"lock_status":"GRANTED"`, `"lock_mode":"X"`}, nil},
		{"mysql-list-all-locks", `{"table_name": "orders"}`, []string{`[]`}, nil},
	})
}

// inBackground runs a statement until stop is called.
func (w *fixture) inBackground(by identity.Principal, statement string) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.callAs(ctx, by, "do", fmt.Sprintf(`{"sql": %q}`, statement))
	}()
	return func() { cancel(); <-done }
}
