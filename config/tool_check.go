package config

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/parameter"
)

// usesClaims reports whether the value of a parameter comes from a token. Compiling
// such a parameter needs the names of all auth services.
func (p *pendingTool) usesClaims() bool {
	has := func(spec parameter.Spec) bool { return len(spec.Auth) > 0 }
	return slices.ContainsFunc(p.specs, has) || slices.ContainsFunc(p.templateSpecs, has)
}

// compile compiles the parameters and checks the templates that use them.
func (p *pendingTool) compile(services []string) {
	errs := &p.doc.errs
	if len(*errs) == p.errCount {
		p.tool.Parameters = p.compileSet(services)
	}
	if p.tool.Parameters != nil {
		p.checkTemplates(p.tool.Parameters)
	}
	if len(*errs) > p.errCount {
		p.tool.Parameters = nil
	}
	p.tool.cacheable = p.tool.Parameters != nil && !p.v1Entry
	p.docItem, p.specs, p.templateSpecs = docItem{}, nil, nil
}

// compileSet compiles the parameters. Tools of the same type with the same
// parameters share one set.
func (p *pendingTool) compileSet(services []string) *parameter.Set {
	ordinary, key := p.specs, p.tool.Type
	switch {
	case p.fixedSpecs != nil:
		ordinary = p.fixedSpecs
	case p.tool.HTTP != nil || services != nil:
		key = ""
	default:
		key += p.fieldsDigest("parameters", "templateParameters")
	}
	if set, ok := p.doc.parameterSets[key]; ok {
		return set
	}
	o := parameter.Options{Services: services, Backslash: strings.HasPrefix(p.tool.Type, "mysql-"), UnsupportedEscapes: unsupportedEscapes(p.tool.Type)}
	set, problems := parameter.Compile(o, ordinary, p.templateSpecs)
	for _, problem := range problems {
		p.locate(problem.Field).fail(problem.Message, problem.Hint)
	}
	if problems == nil && key != "" {
		p.doc.parameterSets[key] = set
	}
	return set
}

// unsupportedEscapes returns the escape styles that the database of a tool type
// does not support. SQLite supports all of them.
func unsupportedEscapes(tool string) []string {
	switch database, _, _ := strings.Cut(tool, "-"); database {
	case "postgres":
		return []string{parameter.Backticks, parameter.SquareBrackets}
	case "mysql":
		return []string{parameter.SquareBrackets}
	}
	return nil
}

// checkTemplates checks the texts of the tool that can be templates.
func (p *pendingTool) checkTemplates(set *parameter.Set) {
	p.checkTemplate(set, "statement", p.tool.Statement, len(p.templateSpecs) > 0)
	if request := p.tool.HTTP; request != nil {
		p.checkTemplate(set, "path", request.Path, len(request.PathParams) > 0, request.PathParams...)
		p.checkTemplate(set, "requestBody", request.Body, len(request.BodyParams) > 0, request.BodyParams...)
	}
}

// checkTemplate checks one text. With template parameters it must be a valid
// template; without, it must not look like one. names limits the parameters that
// the template may use.
func (p *pendingTool) checkTemplate(set *parameter.Set, name, text string, isTemplate bool, names ...string) {
	var err error
	hint := ""
	if isTemplate {
		_, err = set.Template(text, names...)
	} else {
		err, hint = parameter.LooksLikeTemplate(text), "declare it under "+templateFields[name]
	}
	if err == nil {
		return
	}
	at, ok := p.child(name)
	if !ok {
		at = p.missing(name)
	}
	at.fail(err.Error(), hint)
}

// templateFields maps a text of a tool to the field that declares the parameters of
// its template.
var templateFields = map[string]string{"statement": "templateParameters", "path": "pathParams", "requestBody": "bodyParams"}

// checkTools checks the sources and services that declared tools name. It runs when
// all documents are read.
func (r *reader) checkTools() {
	c := crossChecker{reader: r, sources: make(map[string]Source, len(r.config.Sources))}
	for _, s := range r.config.Sources {
		if _, ok := c.sources[s.Name]; !ok {
			c.sources[s.Name] = s
		}
	}
	for key := range r.names {
		if key.kind == "authService" {
			c.services = append(c.services, key.name)
		}
	}
	c.mcpEnabled = slices.ContainsFunc(r.config.AuthServices, func(s AuthService) bool { return s.MCPEnabled })
	for _, p := range r.tools {
		c.check(p)
		r.config.Tools[p.index] = p.tool
	}
	for _, i := range r.reused {
		if !c.stillValid(&r.config.Tools[i]) {
			r.invalidate()
			return
		}
	}
}

// crossChecker checks tools against the sources and auth services that they name.
type crossChecker struct {
	*reader
	sources    map[string]Source // by name
	services   []string
	mcpEnabled bool // an auth service authenticates MCP callers
}

// check checks one tool that was read, and compiles its parameters if they needed
// the auth services.
func (c *crossChecker) check(p *pendingTool) {
	before, source := len(c.errs), c.sources[p.tool.Source]
	if source.Type != "" && !slices.Contains(p.sources, source.Type) {
		p.sourceAt.fail("source "+quote(p.tool.Source)+" is of type "+source.Type, "a tool of type "+p.tool.Type+" needs a source of type "+strings.Join(p.sources, " or "))
	} else if source.ReadOnly && p.tool.mayChange() {
		p.methodAt.fail(p.tool.HTTP.Method+" may change data, and source "+quote(p.tool.Source)+" is readOnly", "use GET, HEAD or OPTIONS, or a source that is not readOnly")
	}
	if len(p.tool.ScopesRequired) > 0 && !c.mcpEnabled {
		p.scopesAt.fail("applies to MCP callers, and no auth service authenticates them", "declare one with mcpEnabled: true")
	}
	wrong := len(c.errs) > before
	if p.doc != nil { // not compiled yet: it waits for the auth services
		p.errCount = len(c.errs)
		p.compile(c.services)
	}
	if wrong { // without Parameters the caller leaves the tool out of its source, and reports no second error
		p.tool.Parameters, p.tool.cacheable = nil, false
	}
}

// mayChange reports whether a tool sends requests that may change data.
func (t *DeclaredTool) mayChange() bool {
	return t.HTTP != nil && !slices.Contains([]string{"", "GET", "HEAD", "OPTIONS"}, t.HTTP.Method)
}

// stillValid reports whether a reused tool is valid: its source and services exist
// and have the properties it needs.
func (c *crossChecker) stillValid(t *DeclaredTool) bool {
	i := slices.IndexFunc(c.toolTypes, func(known toolType) bool { return known.name == t.Type })
	source := c.sources[t.Source]
	if i < 0 || !slices.Contains(c.toolTypes[i].sources, source.Type) || source.ReadOnly && t.mayChange() || len(t.ScopesRequired) > 0 && !c.mcpEnabled {
		return false
	}
	missing := func(service string) bool { return !slices.Contains(c.services, service) }
	if slices.ContainsFunc(t.AuthRequired, missing) {
		return false
	}
	for _, services := range t.Parameters.Services() {
		if slices.ContainsFunc(services, missing) {
			return false
		}
	}
	return true
}
