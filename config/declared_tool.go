package config

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/parameter"
	"github.com/rolecall/rolecall/toolgroups"
)

// toolType is a type of declared tool.
type toolType struct {
	name    string
	sources []string // types of source that it asks
	fields  func(docItem, *pendingTool) []field
	needs   []string // fields that have to be there, beside source and description
}

// toolTypes is the one place that lists what a declared tool can be.
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

// pendingTool is a tool while it is read, and until all that it names is read.
type pendingTool struct {
	docItem       // gone once the parameters are compiled, with the nodes it stands for
	tool          DeclaredTool
	index         int      // among config.Tools
	sources       []string // types
	sourceAt      value
	methodAt      value
	scopesAt      value
	specs         []parameter.Spec
	templateSpecs []parameter.Spec
	fixedSpecs    []parameter.Spec // those that all tools of the type have
	errCount      int              // there were before this one
}

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

// commonFields are the fields of all declared tools.
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

// statementFields are those of a tool with a statement of its own.
func statementFields(_ docItem, p *pendingTool) []field {
	return []field{
		{"statement", scalarTextField(&p.tool.Statement)},
		{"parameters", specList(&p.specs, "")},
		{"templateParameters", specList(&p.templateSpecs, "")},
		{"maxRows", countField(&p.tool.MaxRows)},
	}
}

// executeFields are those of a tool that takes any statement.
func executeFields(_ docItem, p *pendingTool) []field {
	p.fixedSpecs = []parameter.Spec{{Name: ParameterSQL, Type: parameter.TypeString, Description: "The SQL statement to execute."}}
	return []field{{"maxRows", countField(&p.tool.MaxRows)}}
}

// listFields are those of a tool that lists tables.
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

// annotationsField reads the hints of MCP. As with Toolbox, there may be none behind
// the name: they only say more than nothing.
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

// optionalBool reads an annotation.
func optionalBool(to **bool) func(value) {
	return func(v value) {
		yes := new(bool)
		boolField(yes)(v)
		*to = yes
	}
}

// groups reads the tool groups that the tool is in.
func (p *pendingTool) groups(v value) {
	nameList(&p.tool.Groups, "tool groups")(v)
	for i, at := range v.items() {
		if i >= len(p.tool.Groups) {
			break
		}
		if id, ok := at.nonEmpty(); ok && slices.Contains(toolgroups.Reserved(), toolgroups.GroupID(id)) {
			at.fail(quote(id)+" is a group of the runtime, which no declared tool joins", "choose another id")
		}
	}
}

// states reads the states that the tool can be called in, under either name.
func (p *pendingTool) states(v value) {
	_, one := p.child("available_in_states")
	_, other := p.child("applicable-states")
	if one && other {
		v.fail("available_in_states and applicable-states are the same", "leave one out")
		return
	}
	nameList(&p.tool.States, "states")(v)
}

// toolboxTypeHint says of a type that is Toolbox's that this version has not got it.
func toolboxTypeHint(name string) string {
	for _, family := range toolboxFamilies() {
		rest, ok := strings.CutPrefix(name, family)
		if ok && (rest == "" || rest[0] == '-') {
			return "Toolbox has it for " + family + ", which this version does not serve"
		}
	}
	return ""
}

// toolboxFamilies are how the types of sources and tools begin that Toolbox
// has and this version has not.
func toolboxFamilies() []string {
	return strings.Fields(`alloydb alloydb-postgres bigquery bigtable cassandra clickhouse cloud-gda cloud-healthcare
		cloud-logging-admin cloud-monitoring cloud-sql-admin cloud-sql-mssql cloud-sql-mysql cockroachdb couchbase dataform
		dataplex dataproc dgraph elasticsearch firebird firestore gemini-data-analytics looker mindsdb mongodb mssql neo4j
		oceanbase oracle redis serverless-spark singlestore snowflake spanner tidb trino valkey wait yugabytedb`)
}
