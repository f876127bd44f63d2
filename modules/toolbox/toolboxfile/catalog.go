package toolboxfile

import (
	"strconv"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// catalogTool is a type of tool whose statement and parameters are fixed: it reads the catalogs
// and the statistics of a database. Names, parameters and columns are the same as in Toolbox.
type catalogTool struct {
	name        string
	description string // of a tool without a description of its own
	statement   string
	parameters  []parameter.Spec // in the order of the placeholders
	template    []parameter.Spec // template parameters
}

// CatalogTypes returns the types of tools that only read the catalogs of a source of this type,
// SourcePostgres or SourceMySQL.
func CatalogTypes(source string) (names []string) {
	for _, c := range catalogTools(source) {
		names = append(names, c.name)
	}
	return names
}

func catalogTools(source string) []catalogTool {
	switch source {
	case SourcePostgres:
		return postgresCatalog()
	case SourceMySQL:
		return mysqlCatalog()
	}
	return nil
}

// catalogToolTypes returns the types of tools for the catalogs of PostgreSQL and MySQL. Errors that
// list the types leave out types that have the field is.
func catalogToolTypes(postgres, mysql []string) (all []toolType) {
	for _, c := range postgresCatalog() {
		all = append(all, toolType{name: c.name, sources: postgres, fields: c.fields, aliasOf: c.name})
	}
	for _, c := range mysqlCatalog() {
		all = append(all, toolType{name: c.name, sources: mysql, fields: c.fields, aliasOf: c.name})
	}
	return all
}

// fields returns the fields of a tool that reads a catalog.
func (c catalogTool) fields(_ item, p *pendingTool) yamldoc.Fields {
	p.tool.Statement, p.tool.Description, p.templateSpecs = c.statement, c.description, c.template
	p.fixedSpecs = append([]parameter.Spec{}, c.parameters...) // not nil
	return yamldoc.Fields{"maxRows": yamldoc.CountField(&p.tool.MaxRows)}
}

// filterParam is a text that is "" if the caller leaves it out.
func filterParam(name, description string) parameter.Spec {
	return textParam(name, "", description)
}

// textParam is a text with a default.
func textParam(name, otherwise, description string) parameter.Spec {
	return parameter.Spec{Name: name, Type: parameter.TypeString, Default: &parameter.Literal{Text: otherwise}, Description: description}
}

// choiceParam is one of some words, or "", which is the default.
func choiceParam(name, description string, words ...string) parameter.Spec {
	p := filterParam(name, description)
	p.Allowed = []parameter.Literal{{}}
	for _, word := range words {
		p.Allowed = append(p.Allowed, parameter.Literal{Text: word})
	}
	return p
}

// requiredParam is a text that the caller has to send.
func requiredParam(name, description string) parameter.Spec {
	return parameter.Spec{Name: name, Type: parameter.TypeString, Description: description}
}

// optionalParam is a text that is null if the caller leaves it out.
func optionalParam(name, description string) parameter.Spec {
	return parameter.Spec{Name: name, Type: parameter.TypeString, Description: description, Required: new(bool)}
}

// countParam is a whole number that is not negative.
func countParam(name string, otherwise int, description string) parameter.Spec {
	return parameter.Spec{
		Name: name, Type: parameter.TypeInteger, Description: description, Min: &parameter.Literal{Kind: parameter.KindNumber, Text: "0"},
		Default: &parameter.Literal{Kind: parameter.KindNumber, Text: strconv.Itoa(otherwise)},
	}
}

// limitParam is the largest number of rows.
func limitParam(otherwise int) parameter.Spec {
	return countParam("limit", otherwise, "The largest number of rows.")
}

// flagParam is false if the caller leaves it out.
func flagParam(name, description string) parameter.Spec {
	return parameter.Spec{Name: name, Type: parameter.TypeBoolean, Default: &parameter.Literal{Kind: parameter.KindBool, Text: "false"}, Description: description}
}
