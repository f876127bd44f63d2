package config

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/parameter"
	"github.com/rolecall/rolecall/toolgroups"
)

// toolType is a type of declared tool and its fields.
type toolType struct {
	name    string
	sources []string // types of sources that it can use
	fields  func(docItem, *pendingTool) []field
	needs   []string // required fields, in addition to source and description
}

// toolTypes returns all types of declared tools. It is the only list of them.
func toolTypes() []toolType {
	sqlite, mysql, postgres := []string{SourceSQLite}, []string{SourceMySQL}, []string{SourcePostgres, SourceCloudSQLPostgres}
	return []toolType{
		{ToolSQLiteSQL, sqlite, statementFields, []string{"statement"}},
		{ToolSQLiteExecute, sqlite, executeFields, nil},
		{ToolSQLiteListTables, sqlite, listFields, nil},
		{ToolPostgresSQL, postgres, statementFields, []string{"statement"}},
		{ToolPostgresExecute, postgres, executeFields, nil},
		{ToolPostgresListTables, postgres, listFields, nil},
		{ToolMySQLSQL, mysql, statementFields, []string{"statement"}},
		{ToolMySQLExecute, mysql, executeFields, nil},
		{ToolMySQLListTables, mysql, listFields, nil},
		{ToolHTTP, []string{SourceHTTP}, requestFields, []string{"path", "method"}},
	}
}

// pendingTool is the state of reading one tool. It lives until all documents are
// read, when the source and the auth services of the tool can be checked.
type pendingTool struct {
	docItem       // zero after the parameters are compiled, to release the nodes
	tool          DeclaredTool
	index         int      // in config.Tools
	sources       []string // types of sources that it can use
	sourceAt      value
	methodAt      value
	scopesAt      value
	specs         []parameter.Spec
	templateSpecs []parameter.Spec
	fixedSpecs    []parameter.Spec // the same for all tools of the type
	errCount      int              // number of errors before this tool
}

// readTool reads a document of kind tool. It compiles the parameters at once unless
// they need the auth services, which may come in later documents.
func readTool(it docItem) {
	p := &pendingTool{docItem: it, errCount: len(it.doc.errs)}
	it.declare()
	it.checkShortName("tool")
	known := it.doc.toolTypes
	i, ok := it.typeIndex("tool", len(known), func(i int) string { return known[i].name })
	if !ok {
		return
	}
	p.sources, p.tool = known[i].sources, DeclaredTool{Name: it.name, Type: known[i].name, Pos: it.pos}
	it.fields(append(p.commonFields(), known[i].fields(it, p)...)...)
	it.requireFields("source", "description")
	it.requireFields(known[i].needs...)
	p.tool.Fingerprint = it.fingerprint()
	p.sourceAt, _ = it.child("source")
	p.methodAt, _ = it.child("method")
	p.scopesAt, _ = it.child("scopesRequired")
	if !p.usesClaims() || len(it.doc.errs) > p.errCount {
		p.compile(nil)
	}
	p.index = len(it.doc.config.Tools)
	it.doc.config.Tools = append(it.doc.config.Tools, p.tool)
	it.doc.tools = append(it.doc.tools, p)
}

// commonFields returns the fields of all declared tools.
func (p *pendingTool) commonFields() []field {
	t := &p.tool
	return []field{
		typeField(),
		{"source", referenceField("source", &t.Source)},
		{"description", scalarTextField(&t.Description)},
		{"authRequired", referenceList("authService", &t.AuthRequired)},
		{"scopesRequired", nameList(&t.ScopesRequired, "scopes")},
		{"annotations", annotationsField(&t.Annotations)},
		{"effect", oneOfField(&t.Effect, "readOnly", "idempotent", "mutating")},
		{"group", p.groups},
		{"state", nonEmptyField(&t.State)},
		{"available_in_states", p.states},
		{"applicable-states", p.states},
		{"maxResponseBytes", intField(&t.MaxResponseBytes, maxResponseBytes)},
		{"timeout", durationField(&t.Timeout, maxCallTime)},
		unavailable("ui"),
	}
}

// statementFields returns the fields of a tool with a statement.
func statementFields(_ docItem, p *pendingTool) []field {
	return []field{
		{"statement", scalarTextField(&p.tool.Statement)},
		{"parameters", specList(&p.specs, "")},
		{"templateParameters", specList(&p.templateSpecs, "")},
		{"maxRows", countField(&p.tool.MaxRows)},
	}
}

// executeFields returns the fields of a tool whose caller gives the statement.
func executeFields(_ docItem, p *pendingTool) []field {
	p.fixedSpecs = []parameter.Spec{{Name: ParameterSQL, Type: parameter.TypeString, Description: "The SQL statement to execute."}}
	return []field{{"maxRows", countField(&p.tool.MaxRows)}}
}

// listFields returns the fields of a tool that lists tables.
func listFields(_ docItem, p *pendingTool) []field {
	p.fixedSpecs = []parameter.Spec{
		{Name: ParameterTableNames, Type: parameter.TypeString, Default: &parameter.Literal{},
			Description: "The names of tables, separated by commas. Empty for all tables."},
		{Name: ParameterOutputFormat, Type: parameter.TypeString, Default: &parameter.Literal{Text: "detailed"},
			Allowed:     []parameter.Literal{{Text: "simple"}, {Text: "detailed"}},
			Description: "simple for the names only, detailed for columns, keys and indexes too."},
	}
	return []field{{"maxRows", countField(&p.tool.MaxRows)}}
}

// annotationsField reads the hints of MCP. Like Toolbox it accepts a field without
// a value: the hints grant nothing.
func annotationsField(to *Annotations) func(value) {
	hints := mappingField(
		field{"readOnlyHint", optionalBool(&to.ReadOnly)},
		field{"destructiveHint", optionalBool(&to.Destructive)},
		field{"idempotentHint", optionalBool(&to.Idempotent)},
		field{"openWorldHint", optionalBool(&to.OpenWorld)},
	)
	return func(v value) {
		if !v.isNull() {
			hints(v)
		}
	}
}

// optionalBool reads true or false into a pointer, which is nil without the field.
func optionalBool(to **bool) func(value) {
	return func(v value) {
		yes := new(bool)
		boolField(yes)(v)
		*to = yes
	}
}

// groups reads the tool groups that the tool is in and rejects reserved ones.
func (p *pendingTool) groups(v value) {
	nameList(&p.tool.Groups, "tool groups")(v)
	for i, at := range v.items() {
		if i >= len(p.tool.Groups) {
			break
		}
		if id, ok := at.nonEmpty(); ok && slices.Contains(toolgroups.ReservedIDs(), toolgroups.GroupID(id)) {
			at.fail(quote(id)+" is a built-in group, which declared tools cannot join", "choose another id")
		}
	}
}

// states reads the states in which the tool can be called. The field has two names.
func (p *pendingTool) states(v value) {
	_, one := p.child("available_in_states")
	_, other := p.child("applicable-states")
	if one && other {
		v.fail("available_in_states and applicable-states are the same field", "leave one out")
		return
	}
	nameList(&p.tool.States, "states")(v)
}

// toolboxTypeHint returns the hint for a type that Toolbox has and this version
// does not, or "".
func toolboxTypeHint(name string) string {
	for _, family := range toolboxFamilies() {
		rest, ok := strings.CutPrefix(name, family)
		if ok && (rest == "" || rest[0] == '-') {
			return "Toolbox has it for " + family + ", which this version does not support"
		}
	}
	return ""
}

// toolboxFamilies returns the prefixes of the types of sources and tools that
// Toolbox has and this version does not.
func toolboxFamilies() []string {
	return strings.Fields(`alloydb alloydb-postgres bigquery bigtable cassandra clickhouse cloud-gda cloud-healthcare
		cloud-logging-admin cloud-monitoring cloud-sql-admin cloud-sql-mssql cloud-sql-mysql cockroachdb couchbase dataform
		dataplex dataproc dgraph elasticsearch firebird firestore gemini-data-analytics looker mindsdb mongodb mssql neo4j
		oceanbase oracle redis serverless-spark singlestore snowflake spanner tidb trino valkey wait yugabytedb`)
}
