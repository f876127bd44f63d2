package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// listing lists the tables of a database.
type listing struct {
	tool      *declaredTool
	statement string
}

// columnQueries select a row for each column of the tables that the one argument
// names, separated by commas; an empty argument selects all tables. Tables and
// columns are in order. A table without columns has one row. The type column says what the letters
// that name the columns of the result mean.
var columnQueries = map[database.Type]string{
	database.SQLite: `SELECT 'main' AS s, m.name AS o, 'TABLE' AS k, p.name AS c, p.type AS t, p."notnull" = 1 AS n, p.dflt_value AS d, NULL AS w, NULL AS m, NULL AS x
		FROM sqlite_schema m LEFT JOIN pragma_table_xinfo(m.name) p ON p.hidden <> 1
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite!_%' ESCAPE '!' AND (?1 = '' OR instr(',' || ?1 || ',', ',' || m.name || ',') > 0)
		ORDER BY m.name, p.cid`,
	database.Postgres: `SELECT n.nspname AS s, c.relname AS o, CASE c.relkind WHEN 'p' THEN 'PARTITIONED TABLE' ELSE 'TABLE' END AS k,
			a.attname AS c, format_type(a.atttypid, a.atttypmod) AS t, a.attnotnull AS n, pg_get_expr(d.adbin, d.adrelid) AS d,
			pg_get_userbyid(c.relowner) AS w, obj_description(c.oid, 'pg_class') AS m, col_description(c.oid, a.attnum) AS x
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('information_schema', 'crdb_internal') AND n.nspname NOT LIKE 'pg\_%'
			AND ($1 = '' OR c.relname = ANY (string_to_array($1, ',')))
		ORDER BY n.nspname, c.relname, a.attnum`,
	database.MySQL: `SELECT t.table_schema AS s, t.table_name AS o, 'TABLE' AS k,
			c.column_name AS c, c.column_type AS t, c.is_nullable = 'NO' AS n, c.column_default AS d,
			NULL AS w, nullif(t.table_comment, '') AS m, nullif(c.column_comment, '') AS x
		FROM information_schema.tables t LEFT JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
		WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND (? = '' OR FIND_IN_SET(t.table_name, ?) > 0)
		ORDER BY t.table_name, c.ordinal_position`,
}

// maxColumns limits the columns of all tables of a listing together.
const maxColumns = 100_000

func newListing(t *declaredTool) (action, error) {
	return &listing{t, columnQueries[databaseTypes[t.module.config.Source.Type]]}, nil
}

// column is a row that columnQueries select.
type column struct {
	Schema  string  `json:"s"`
	Table   string  `json:"o"`
	Kind    string  `json:"k"`
	Name    *string `json:"c"` // nil in a table without columns
	Type    string  `json:"t"`
	NotNull dbBool  `json:"n"`
	Default *string `json:"d"`

	// The following are nil if the table or column has none, or the database knows none.
	Owner        *string `json:"w"`
	TableComment *string `json:"m"`
	Comment      *string `json:"x"`
}

// dbBool is a boolean that some databases return as a number.
type dbBool bool

// UnmarshalJSON implements json.Unmarshaler.
func (b *dbBool) UnmarshalJSON(data []byte) error {
	*b = string(data) == "true" || string(data) == "1"
	return nil
}

// The rows of the result, in the form of MCP Toolbox.
type (
	tableRow struct {
		Schema  string `json:"schema_name"`
		Name    string `json:"object_name"`
		Details any    `json:"object_details"` // simpleTable or *detailedTable
	}
	simpleTable struct {
		Name string `json:"name"`
	}
	detailedTable struct {
		Schema  string         `json:"schema_name"`
		Name    string         `json:"object_name"`
		Kind    string         `json:"object_type"`
		Owner   *string        `json:"owner"`
		Comment *string        `json:"comment"`
		Columns []listedColumn `json:"columns"`
		tableParts
	}
	listedColumn struct {
		Name     string  `json:"column_name"`
		Type     string  `json:"data_type"`
		Position int     `json:"ordinal_position"` // from 1
		NotNull  bool    `json:"is_not_nullable"`
		Default  *string `json:"column_default"`
		Comment  *string `json:"column_comment"`
	}
)

func (l *listing) run(ctx context.Context, p callerPool, v parameter.Values) (tool.Result, error) {
	format := stringValue(v, toolboxfile.ParameterOutputFormat)
	if format != "" && format != "simple" && format != "detailed" {
		return tool.Result{}, errcode.New(errcode.InvalidArguments, "parameter %q must be simple or detailed, not %q", toolboxfile.ParameterOutputFormat, format).With("parameter", toolboxfile.ParameterOutputFormat)
	}
	names, simple := trimNames(stringValue(v, toolboxfile.ParameterTableNames)), format == "simple"
	columns, err := queryRows[column](ctx, l, p, l.statement, names)
	if err != nil {
		return tool.Result{}, err
	}
	var parts map[tableName]tableParts
	if !simple && !l.tool.module.config.Source.NoTableParts {
		if parts, err = l.parts(ctx, p, names); err != nil {
			return tool.Result{}, err
		}
	}
	rows := groupByTable(columns, parts, simple)
	if most := cmp.Or(l.tool.maxRows(), database.DefaultRows); len(rows) > most {
		return tool.Result{}, errcode.New(errcode.ResultTooLarge, "there are more than %d tables; select some with table_names", most)
	}
	doc, err := json.Marshal(rows)
	if err != nil {
		return tool.Result{}, err
	}
	if most := cmp.Or(l.tool.maxBytes(), database.DefaultBytes); len(doc) > most {
		return tool.Result{}, errcode.New(errcode.ResultTooLarge, "the descriptions of the tables have more than %d bytes; select some with table_names", most)
	}
	return jsonResult(doc), nil
}

// queryRows runs a statement whose only argument is a list of table names, and returns its rows. MySQL
// has no numbered placeholders, so there the argument is repeated for each "?".
func queryRows[T any](ctx context.Context, l *listing, p callerPool, statement, names string) (list []T, err error) {
	args := []any{names}
	if databaseTypes[l.tool.module.config.Source.Type] == database.MySQL {
		for range strings.Count(statement, "?") - 1 {
			args = append(args, names)
		}
	}
	rows, err := p.query(ctx, database.Query{SQL: statement, Args: args, ReadOnly: !l.tool.module.config.Source.NoReadOnlyTransactions, MaxRows: maxColumns, MaxBytes: 4 * database.DefaultBytes, Timeout: l.tool.timeout()})
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(rows, &list)
	return list, err
}

// groupByTable returns a row for each table, with its columns and parts. A simple row has its name only.
func groupByTable(columns []column, parts map[tableName]tableParts, simple bool) []tableRow {
	rows := []tableRow{}
	var last *detailedTable
	for _, c := range columns {
		if last == nil || last.Schema != c.Schema || last.Name != c.Table {
			last = &detailedTable{
				Schema: c.Schema, Name: c.Table, Kind: c.Kind, Owner: c.Owner, Comment: c.TableComment,
				Columns: []listedColumn{}, tableParts: parts[tableName{c.Schema, c.Table}].orEmpty(),
			}
			var details any = last
			if simple {
				details = simpleTable{c.Table}
			}
			rows = append(rows, tableRow{c.Schema, c.Table, details})
		}
		if c.Name != nil {
			last.Columns = append(last.Columns, listedColumn{*c.Name, c.Type, len(last.Columns) + 1, bool(c.NotNull), c.Default, c.Comment})
		}
	}
	return rows
}

// stringValue returns the value of a string parameter, "" if it is missing.
func stringValue(v parameter.Values, name string) string {
	value, _ := v.LookupValue(name)
	text, _ := value.(string)
	return text
}

// trimNames removes the spaces around names that are separated by commas.
func trimNames(list string) string {
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return strings.Join(names, ",")
}
