package toolboxfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/toolgroups"
)

// toolType is a type of declared tool and its fields.
type toolType struct {
	name    string
	sources []string // types of sources that it can use
	fields  func(item, *pendingTool) yamldoc.Fields
	needs   []string // required fields, in addition to source and description
	aliasOf string   // another type, if name is only another name of it; DeclaredTool.Type is then aliasOf
}

// toolTypes returns all types of declared tools with their fields.
func toolTypes() []toolType {
	sqlite, mysql, postgres := []string{SourceSQLite}, []string{SourceMySQL}, []string{SourcePostgres, SourceCloudSQLPostgres}
	all := []toolType{
		{ToolSQLiteSQL, sqlite, statementFields, []string{"statement"}, ""},
		{ToolSQLiteExecute, sqlite, executeFields, nil, ""},
		{ToolSQLiteListTables, sqlite, listFields, nil, ""},
		{ToolPostgresSQL, postgres, statementFields, []string{"statement"}, ""},
		{ToolPostgresExecute, postgres, executeFields, nil, ""},
		{ToolPostgresListTables, postgres, listFields, nil, ""},
		{ToolMySQLSQL, mysql, statementFields, []string{"statement"}, ""},
		{ToolMySQLExecute, mysql, executeFields, nil, ""},
		{ToolMySQLListTables, mysql, listFields, nil, ""},
		{ToolHTTP, []string{SourceHTTP}, requestFields, []string{"path", "method"}, ""},
		{ToolMCP, nil, mcpToolFields, nil, ""},
		{ToolOfService, nil, serviceToolFieldsOf, []string{"service"}, ""},
		{ToolKnowledgeQuery, []string{SourceHTTP}, knowledgeQueryFields, nil, ""},
		{ToolTextCompletion, []string{SourceHTTP}, completionFields, nil, ""},
		{ToolPrompt, []string{SourceHTTP}, promptToolFields, []string{"template"}, ""},
		{ToolStructuredQuery, []string{SourceHTTP}, structuredQueryFields, nil, ""},
		{ToolGraphUpdate, nil, noFields, nil, ""},
	}
	all = append(all, catalogToolTypes(postgres, mysql)...)
	return append(all, aliasToolTypes(postgres, mysql)...)
}

// noFields returns no fields.
func noFields(item, *pendingTool) yamldoc.Fields { return yamldoc.Fields{} }

// callsTrustGraph reports whether a type of tool calls TrustGraph. Such a tool may leave out its
// source if there is only one of type http.
func callsTrustGraph(name string) bool {
	return slices.Contains([]string{ToolKnowledgeQuery, ToolTextCompletion, ToolPrompt, ToolStructuredQuery}, name)
}

// hasSource reports whether tools of the type use a source.
func (t toolType) hasSource() bool { return t.sources != nil }

// pendingTool is the state of reading one tool. It lives until all documents are
// read, when the source and the auth services of the tool can be checked.
type pendingTool struct {
	item           // zero after the parameters are compiled, to release the nodes
	tool           DeclaredTool
	index          int      // in Declarations.Tools
	sources        []string // types of sources that it can use
	sourceAt       yamldoc.Value
	methodAt       yamldoc.Value
	scopesAt       yamldoc.Value
	specs          []parameter.Spec
	templateSpecs  []parameter.Spec
	fixedSpecs     []parameter.Spec // the same for all tools of the type
	finish         func()           // called when the fields are read; nil for most types
	mcpAt          yamldoc.Value    // of a tool of type mcp-tool
	mcpID          string
	values         map[string]yamldoc.Value // of a tool of type tool-service
	paramsCompiled bool
	anchor         bool // Options.AnchorAllowed of its parameters
	errCount       int  // number of errors before this tool
}

// readTool reads a document of kind tool. It compiles the parameters at once unless
// they need the auth services or the profile of the source, which may come in later documents.
func readTool(it item) {
	if at, ok := it.FindField("of"); ok {
		readToolLabels(it, at)
		return
	}
	p := &pendingTool{item: it, errCount: it.ErrorCount()}
	if _, named := it.FindField("name"); !named && !it.IsEntry {
		it.NameAt.AddError("is missing", `add a name, or name a tool of a server in the field "of"`)
	}
	it.DeclareItem()
	it.checkShortName("tool")
	known := it.r.toolTypes
	i, ok := it.typeIndex("tool", len(known), func(i int) (string, bool) { return known[i].name, known[i].aliasOf == "" })
	if !ok {
		return
	}
	p.sources, p.tool = known[i].sources, DeclaredTool{Name: it.Name, Type: cmp.Or(known[i].aliasOf, known[i].name), Pos: it.Pos}
	it.ReadFields(yamldoc.MergeFields(p.fieldsOf(known[i]), known[i].fields(it, p)))
	if known[i].hasSource() && !callsTrustGraph(p.tool.Type) {
		it.RequireFields("source")
	}
	if p.tool.Description == "" { // otherwise the type has one
		it.RequireFields("description")
	}
	it.RequireFields(known[i].needs...)
	if p.finish != nil {
		p.finish()
	}
	p.tool.Fingerprint = it.fingerprint()
	if !known[i].hasSource() {
		it.addSourceless(p)
		return
	}
	var hasSource bool
	if p.sourceAt, hasSource = it.FindField("source"); !hasSource {
		p.sourceAt = it.MissingField("source")
	}
	p.methodAt, _ = it.FindField("method")
	p.scopesAt, _ = it.FindField("scopesRequired")
	if !p.usesClaims() && !p.isAmbiguous() || it.ErrorCount() > p.errCount {
		p.compile(nil)
	}
	p.index = len(it.r.to.Tools)
	it.r.to.Tools = append(it.r.to.Tools, p.tool)
	it.r.pending = append(it.r.pending, p)
}

// addSourceless adds a tool that uses no source.
func (it item) addSourceless(p *pendingTool) {
	switch p.tool.Type {
	case ToolMCP:
		it.r.mcpTools = append(it.r.mcpTools, pendingMCPTool{len(it.r.to.Tools), p.mcpAt, p.mcpID})
	case ToolOfService:
		at, ok := it.FindField("service")
		if !ok {
			at = it.MissingField("service")
		}
		it.r.serviceTools = append(it.r.serviceTools, pendingServiceTool{len(it.r.to.Tools), at, p.values})
	}
	it.r.to.Tools = append(it.r.to.Tools, p.tool)
}

// fieldsOf returns the fields that tools of a type share with others.
func (p *pendingTool) fieldsOf(t toolType) yamldoc.Fields {
	all := p.commonFields()
	if p.IsEntry && p.r.section == trustGraphSection {
		all["name"] = yamldoc.TextField(new(string)) // a title
	}
	if !t.hasSource() {
		for _, name := range []string{"source", "authRequired", "scopesRequired", "annotations", "maxResponseBytes", "timeout"} {
			delete(all, name)
		}
	}
	return all
}

// commonFields returns the fields of all tools that have a source. fieldsOf removes some of them
// for the others.
func (p *pendingTool) commonFields() yamldoc.Fields {
	t := &p.tool
	return yamldoc.MergeFields(LabelFields(p.Item, &t.own), yamldoc.Fields{
		"type":             yamldoc.SkipField,
		"source":           p.ReferenceField("source", &t.Source),
		"description":      yamldoc.ScalarField(&t.Description),
		"authRequired":     p.ReferenceList("authService", &t.AuthRequired),
		"scopesRequired":   yamldoc.NameList(&t.ScopesRequired, "scopes"),
		"annotations":      annotationsField(&t.Annotations),
		"maxResponseBytes": yamldoc.IntField(&t.MaxResponseBytes, maxResultBytes),
		"timeout":          yamldoc.DurationField(&t.Timeout, maxQueryTime),
		"ui":               nil,
	})
}

// statementFields returns the fields of a tool with a statement.
func statementFields(_ item, p *pendingTool) yamldoc.Fields {
	return yamldoc.Fields{
		"statement":          yamldoc.ScalarField(&p.tool.Statement),
		"parameters":         specList(&p.specs, ""),
		"templateParameters": specList(&p.templateSpecs, ""),
		"maxRows":            yamldoc.CountField(&p.tool.MaxRows),
	}
}

// executeFields returns the fields of a tool whose caller writes the statement.
func executeFields(_ item, p *pendingTool) yamldoc.Fields {
	p.fixedSpecs = []parameter.Spec{{Name: ParameterSQL, Type: parameter.TypeString, Description: "The SQL statement to execute."}}
	return yamldoc.Fields{"maxRows": yamldoc.CountField(&p.tool.MaxRows)}
}

// listFields returns the fields of a tool that lists tables.
func listFields(_ item, p *pendingTool) yamldoc.Fields {
	p.fixedSpecs = []parameter.Spec{
		{Name: ParameterTableNames, Type: parameter.TypeString, Default: &parameter.Literal{},
			Description: "The names of tables, separated by commas. Empty for all tables."},
		{Name: ParameterOutputFormat, Type: parameter.TypeString, Default: &parameter.Literal{Text: "detailed"},
			Allowed:     []parameter.Literal{{Text: "simple"}, {Text: "detailed"}},
			Description: "simple for the names only, detailed for columns, keys and indexes too."},
	}
	return yamldoc.Fields{"maxRows": yamldoc.CountField(&p.tool.MaxRows)}
}

// annotationsField reads the hints of MCP. Like Toolbox it accepts a field without
// a value: the hints grant nothing.
func annotationsField(to *Annotations) func(yamldoc.Value) {
	hints := yamldoc.MappingField(yamldoc.Fields{
		"readOnlyHint":    yamldoc.OptionalBool(&to.ReadOnly),
		"destructiveHint": yamldoc.OptionalBool(&to.Destructive),
		"idempotentHint":  yamldoc.OptionalBool(&to.Idempotent),
		"openWorldHint":   yamldoc.OptionalBool(&to.OpenWorld),
	})
	return func(v yamldoc.Value) {
		if !v.IsNull() {
			hints(v)
		}
	}
}

// checkGroup returns what is wrong with the id of a group that a tool joins.
func checkGroup(id string) (message, hint string) {
	switch {
	case id == "*":
		return `"*" is not a tool group that a tool can join`, "name the groups of the tool, or leave the field out for the group default"
	case toolgroups.CheckID(toolgroups.GroupID(id)) != nil:
		return yamldoc.QuoteText(id) + " is not a valid id of a tool group", "at most 128 ASCII letters, digits, '_', '.', '-', and '/' between parts"
	case slices.Contains(toolgroups.ReservedIDs(), toolgroups.GroupID(id)):
		return yamldoc.QuoteText(id) + " is a built-in group, which declared tools cannot join", "choose another id"
	}
	return "", ""
}

// toolboxTypeHint returns the hint for a type that Toolbox has and this version
// does not, or "".
func toolboxTypeHint(name string) string {
	if slices.Contains([]string{"create-memory", "mysql-search-catalog", "postgres-search-catalog"}, name) {
		return "Toolbox has it, and this version does not; leave the tool out"
	}
	for _, family := range unsupportedFamilies() {
		rest, ok := strings.CutPrefix(name, family)
		if ok && (rest == "" || rest[0] == '-') {
			return "Toolbox has it for " + family + ", which this version does not support"
		}
	}
	return ""
}

// unsupportedFamilies returns the prefixes of the types of sources and tools that
// Toolbox has and this version does not.
func unsupportedFamilies() []string {
	return strings.Fields(`alloydb alloydb-postgres bigquery bigtable cassandra clickhouse cloud-gda cloud-healthcare
		cloud-logging-admin cloud-monitoring cloud-sql-admin cloud-sql-mssql cloud-sql-mysql couchbase dataform
		dataplex dataproc dgraph elasticsearch firebird firestore gemini-data-analytics looker mindsdb mongodb mssql neo4j
		oracle redis serverless-spark snowflake spanner trino valkey wait`)
}
