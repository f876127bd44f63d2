package toolbox

import (
	"context"

	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// tableName names a table.
type tableName struct{ schema, table string }

// tableParts are what a table has besides columns.
type tableParts struct {
	Constraints []*constraint `json:"constraints"`
	Indexes     []*index      `json:"indexes"`
	Triggers    []trigger     `json:"triggers"`
}

type (
	constraint struct {
		Name       string   `json:"constraint_name"`
		Type       string   `json:"constraint_type"` // PRIMARY KEY, UNIQUE, FOREIGN KEY, CHECK, EXCLUDE
		Definition *string  `json:"constraint_definition,omitempty"`
		Columns    []string `json:"constraint_columns"`
		RefTable   *string  `json:"foreign_key_referenced_table"`
		RefColumns []string `json:"foreign_key_referenced_columns"`
	}
	index struct {
		Name       string   `json:"index_name"`
		Definition *string  `json:"index_definition,omitempty"`
		Unique     bool     `json:"is_unique"`
		Primary    bool     `json:"is_primary"`
		Method     *string  `json:"index_method,omitempty"`
		Columns    []string `json:"index_columns"`
	}
	trigger struct {
		Name       string  `json:"trigger_name"`
		Definition *string `json:"trigger_definition"`
	}
)

// part is a row that partQueries select: a trigger, or a column of a constraint or an index.
type part struct {
	Schema     string  `json:"s"`
	Table      string  `json:"o"`
	Kind       string  `json:"k"` // constraint, index or trigger
	Name       string  `json:"n"`
	Type       string  `json:"t"` // of a constraint
	Definition *string `json:"e"`
	Column     *string `json:"c"`
	RefTable   *string `json:"rt"`
	RefColumn  *string `json:"rc"`
	Unique     dbBool  `json:"u"`
	Primary    dbBool  `json:"p"`
	Method     *string `json:"m"`
}

// partQueries select the parts of the tables that the one argument names, as columnQueries do.
// The rows of one part follow each other.
var partQueries = map[database.Type]string{
	database.SQLite: `WITH t AS (SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND (?1 = '' OR instr(',' || ?1 || ',', ',' || name || ',') > 0))
		SELECT 'main' AS s, * FROM (
			SELECT t.name AS o, 'constraint' AS k, 'PRIMARY' AS n, 'PRIMARY KEY' AS t, NULL AS e, c.name AS c, NULL AS rt, NULL AS rc, 0 AS u, 0 AS p, NULL AS m, c.pk AS at
			FROM t, pragma_table_xinfo(t.name) c WHERE c.pk > 0
			UNION ALL SELECT t.name, 'constraint', 'fk_' || t.name || '_' || f.id, 'FOREIGN KEY', NULL, f."from", f."table", f."to", 0, 0, NULL, f.seq FROM t, pragma_foreign_key_list(t.name) f
			UNION ALL SELECT t.name, 'constraint', i.name, 'UNIQUE', NULL, c.name, NULL, NULL, 0, 0, NULL, c.seqno FROM t, pragma_index_list(t.name) i, pragma_index_info(i.name) c WHERE i.origin = 'u'
			UNION ALL SELECT t.name, 'index', i.name, '', NULL, c.name, NULL, NULL, i."unique", i.origin = 'pk', NULL, c.seqno FROM t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
			UNION ALL SELECT t.name, 'trigger', g.name, '', g.sql, NULL, NULL, NULL, 0, 0, NULL, 0 FROM t, sqlite_schema g WHERE g.type = 'trigger' AND g.tbl_name = t.name
		) ORDER BY o, k, n, at`,
	database.Postgres: `WITH t AS (SELECT c.oid, n.nspname AS s, c.relname AS o FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%' AND ($1 = '' OR c.relname = ANY (string_to_array($1, ','))))
		SELECT t.s, t.o, p.* FROM t JOIN (
			SELECT q.conrelid AS id, 'constraint' AS k, q.conname AS n,
				CASE q.contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' WHEN 'c' THEN 'CHECK' WHEN 'x' THEN 'EXCLUDE' ELSE q.contype::text END AS t,
				pg_get_constraintdef(q.oid) AS e, a.attname AS c, nullif(q.confrelid, 0)::regclass::text AS rt, r.attname AS rc, false AS u, false AS p, NULL::name AS m, w.at
			FROM pg_constraint q LEFT JOIN LATERAL unnest(q.conkey) WITH ORDINALITY AS w(num, at) ON true
				LEFT JOIN pg_attribute a ON a.attrelid = q.conrelid AND a.attnum = w.num
				LEFT JOIN pg_attribute r ON r.attrelid = q.confrelid AND r.attnum = q.confkey[w.at]
			UNION ALL SELECT i.indrelid, 'index', x.relname, '', pg_get_indexdef(i.indexrelid), pg_get_indexdef(i.indexrelid, w.at::int, true), NULL, NULL, i.indisunique, i.indisprimary, y.amname, w.at
			FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am y ON y.oid = x.relam, generate_series(1, i.indnkeyatts) AS w(at)
			UNION ALL SELECT g.tgrelid, 'trigger', g.tgname, '', pg_get_triggerdef(g.oid), NULL, NULL, NULL, false, false, NULL, 0 FROM pg_trigger g WHERE NOT g.tgisinternal
		) p ON p.id = t.oid
		ORDER BY t.s, t.o, p.k, p.n, p.at`,
	database.MySQL: `SELECT p.* FROM (
			SELECT q.table_schema AS s, q.table_name AS o, 'constraint' AS k, q.constraint_name AS n, q.constraint_type AS t, NULL AS e, u.column_name AS c,
				u.referenced_table_name AS rt, u.referenced_column_name AS rc, 0 AS u, 0 AS p, NULL AS m, u.ordinal_position AS place
			FROM information_schema.table_constraints q LEFT JOIN information_schema.key_column_usage u
				ON u.table_schema = q.table_schema AND u.table_name = q.table_name AND u.constraint_name = q.constraint_name
			WHERE q.table_schema = DATABASE()
			UNION ALL SELECT table_schema, table_name, 'index', index_name, '', NULL, column_name, NULL, NULL, non_unique = 0, index_name = 'PRIMARY', index_type, seq_in_index
			FROM information_schema.statistics WHERE table_schema = DATABASE()
			UNION ALL SELECT event_object_schema, event_object_table, 'trigger', trigger_name, '', action_statement, NULL, NULL, NULL, 0, 0, NULL, 0
			FROM information_schema.triggers WHERE event_object_schema = DATABASE()
		) p WHERE (? = '' OR FIND_IN_SET(p.o, ?) > 0)
		ORDER BY p.o, p.k, p.n, p.place`,
}

// parts returns the parts of the named tables; "" are all.
func (l *listing) parts(ctx context.Context, p callerPool, names string) (map[tableName]tableParts, error) {
	rows, err := queryRows[part](ctx, l, p, partQueries[databaseTypes[l.tool.module.config.Source.Type]], names)
	if err != nil {
		return nil, err
	}
	all := map[tableName]tableParts{}
	var last part
	for _, r := range rows {
		name := tableName{r.Schema, r.Table}
		t := all[name]
		if last.Schema != r.Schema || last.Table != r.Table || last.Kind != r.Kind || last.Name != r.Name {
			t.add(r)
		}
		t.addColumn(r)
		all[name], last = t, r
	}
	return all, nil
}

// add adds the part that a row begins.
func (t *tableParts) add(r part) {
	switch r.Kind {
	case "constraint":
		t.Constraints = append(t.Constraints, &constraint{Name: r.Name, Type: r.Type, Definition: r.Definition, Columns: []string{}, RefTable: r.RefTable})
	case "index":
		t.Indexes = append(t.Indexes, &index{Name: r.Name, Definition: r.Definition, Unique: bool(r.Unique), Primary: bool(r.Primary), Method: r.Method, Columns: []string{}})
	case "trigger":
		t.Triggers = append(t.Triggers, trigger{r.Name, r.Definition})
	}
}

// addColumn adds the column of a row to the part that was added last.
func (t *tableParts) addColumn(r part) {
	switch {
	case r.Column == nil:
	case r.Kind == "constraint":
		c := t.Constraints[len(t.Constraints)-1]
		c.Columns = append(c.Columns, *r.Column)
		if r.RefColumn != nil {
			c.RefColumns = append(c.RefColumns, *r.RefColumn)
		}
	case r.Kind == "index":
		i := t.Indexes[len(t.Indexes)-1]
		i.Columns = append(i.Columns, *r.Column)
	}
}

// orEmpty returns t with empty lists in place of nil ones.
func (t tableParts) orEmpty() tableParts {
	if t.Constraints == nil {
		t.Constraints = []*constraint{}
	}
	if t.Indexes == nil {
		t.Indexes = []*index{}
	}
	if t.Triggers == nil {
		t.Triggers = []trigger{}
	}
	return t
}
