package toolbox_test

import (
	"testing"

	"github.com/tidwall/gjson"
)

// The tables of each database are listed with their keys, indexes and triggers.
func TestListing_PartsOfTables(t *testing.T) {
	trigger := map[string][]string{
		"sqlite": {"CREATE TRIGGER tick AFTER INSERT ON flight BEGIN SELECT 1; END"},
		"postgres": {"CREATE FUNCTION tick() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'", "CREATE TRIGGER tick AFTER INSERT ON flight FOR EACH ROW EXECUTE FUNCTION tick()",
			"COMMENT ON TABLE flight IS 'of today'", "COMMENT ON COLUMN flight.code IS 'as printed'", "ALTER TABLE flight ADD CHECK (code <> '')"},
		"mysql": {"CREATE TRIGGER tick BEFORE INSERT ON flight FOR EACH ROW SET new.code = 'x'", "ALTER TABLE flight COMMENT 'of today'", "ALTER TABLE flight MODIFY code varchar(9) COMMENT 'as printed'"},
	}
	eachDatabase(t, func(t *testing.T, kind, source string) {
		w := open(t, `%[2]s
---
{kind: tool, name: do, type: %[1]s-execute-sql, source: db, description: d}
---
{kind: tool, name: tables, type: %[1]s-list-tables, source: db, description: d}
`, kind, source)
		for _, statement := range append([]string{
			"CREATE TABLE plane(model integer, number integer, nick varchar(9) UNIQUE, PRIMARY KEY (number, model))",
			"CREATE TABLE flight(id integer PRIMARY KEY, code varchar(9), model integer, number integer, FOREIGN KEY (number, model) REFERENCES plane (number, model))",
			"CREATE UNIQUE INDEX by_code ON flight (code, id)",
			"CREATE TABLE bare(n integer)",
		}, trigger[kind]...) {
			w.rows("do", `{"sql": "`+statement+`"}`)
		}
		all := gjson.Parse(w.rows("tables", `{}`))
		flight, plane, bare := all.Get(`#(object_name=="flight").object_details`), all.Get(`#(object_name=="plane").object_details`), all.Get(`#(object_name=="bare").object_details`)
		for _, c := range []struct {
			in         gjson.Result
			path, want string
		}{
			{flight, `constraints.#(constraint_type=="FOREIGN KEY").constraint_columns`, `["number","model"]`},
			{flight, `constraints.#(constraint_type=="FOREIGN KEY").foreign_key_referenced_table`, `"plane"`},
			{flight, `constraints.#(constraint_type=="FOREIGN KEY").foreign_key_referenced_columns`, `["number","model"]`},
			{flight, `constraints.#(constraint_type=="PRIMARY KEY").constraint_columns`, `["id"]`},
			{flight, `indexes.#(index_name=="by_code").index_columns`, `["code","id"]`},
			{flight, `indexes.#(index_name=="by_code").is_unique`, `true`},
			{flight, `indexes.#(index_name=="by_code").is_primary`, `false`},
			{flight, `triggers.#.trigger_name`, `["tick"]`},
			{plane, `constraints.#(constraint_type=="PRIMARY KEY").constraint_columns`, `["number","model"]`},
			{plane, `constraints.#(constraint_type=="UNIQUE").constraint_columns`, `["nick"]`},
			{plane, `constraints.#(constraint_type=="UNIQUE").foreign_key_referenced_table`, `null`},
			{bare, `constraints`, `[]`}, {bare, `indexes`, `[]`}, {bare, `triggers`, `[]`},
			{bare, `columns.#.column_name`, `["n"]`},
		} {
			if got := c.in.Get(c.path).Raw; got != c.want {
				t.Errorf("%s: got %s, want %s in %s", c.path, got, c.want, c.in.Raw)
			}
		}
		if got := flight.Get("triggers.0.trigger_definition").Str; got == "" {
			t.Error("the trigger has no definition")
		}
		if kind != "sqlite" && (flight.Get("comment").Str != "of today" || flight.Get(`columns.#(column_name=="code").column_comment`).Str != "as printed") {
			t.Errorf("comments: %s", flight.Raw)
		}
		if kind == "postgres" && (flight.Get("owner").Str == "" || flight.Get(`constraints.#(constraint_type=="CHECK").constraint_definition`).Str == "" || flight.Get("indexes.0.index_method").Str != "btree") {
			t.Errorf("parts: %s", flight.Raw)
		}
	})
}
