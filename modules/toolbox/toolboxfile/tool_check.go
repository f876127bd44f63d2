package toolboxfile

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// usesClaims reports whether the value of a parameter comes from a token. Compiling
// such a parameter needs the names of all auth services.
func (p *pendingTool) usesClaims() bool {
	has := func(spec parameter.Spec) bool { return len(spec.Auth) > 0 }
	return slices.ContainsFunc(p.specs, has) || slices.ContainsFunc(p.templateSpecs, has)
}

// isAmbiguous reports whether the profile of the source decides what the parameters accept.
func (p *pendingTool) isAmbiguous() bool {
	is := func(spec parameter.Spec) bool { return spec.IsAmbiguous() }
	return slices.ContainsFunc(p.specs, is) || slices.ContainsFunc(p.templateSpecs, is)
}

// compile compiles the parameters and checks the templates that use them.
func (p *pendingTool) compile(services []string) {
	if p.ErrorCount() == p.errCount {
		p.tool.Parameters = p.compileSet(services)
	}
	if p.tool.Parameters != nil {
		p.checkTemplates(p.tool.Parameters)
	}
	if p.r.docs.ErrorCount() > p.errCount {
		p.tool.Parameters = nil
	}
	p.tool.cacheable = p.tool.Parameters != nil && len(p.tool.Parameters.AnchoredNames()) == 0 && !p.IsEntry && !callsTrustGraph(p.tool.Type)
	p.item, p.specs, p.templateSpecs, p.paramsCompiled = item{}, nil, nil, true
}

// compileSet compiles the parameters. Tools of the same type with the same
// parameters share one set.
func (p *pendingTool) compileSet(services []string) *parameter.Set {
	ordinary, key := p.specs, p.tool.Type
	switch {
	case p.fixedSpecs != nil:
		ordinary = p.fixedSpecs
	case p.tool.HTTP != nil || services != nil || p.isAmbiguous():
		key = ""
	default:
		key += p.fieldsDigest("parameters", "templateParameters")
	}
	if set, ok := p.r.parameterSets[key]; ok {
		return set
	}
	o := parameter.Options{Services: services, AnchorAllowed: p.anchor, Backslash: backslashEscapes(p.tool.Type), UnsupportedEscapes: unsupportedEscapes(p.tool.Type)}
	set, problems := parameter.CompileSet(o, ordinary, p.templateSpecs)
	for _, problem := range problems {
		p.LocatePath(problem.Field).AddError(problem.Message, problem.Hint)
	}
	if problems == nil && key != "" {
		p.r.parameterSets[key] = set
	}
	return set
}

// databaseOf returns the database of a tool type: what is before its first hyphen.
func databaseOf(toolType string) string {
	database, _, _ := strings.Cut(toolType, "-")
	return database
}

// backslashEscapes reports whether a backslash escapes the next character in the quotes of the
// database of a tool type.
func backslashEscapes(toolType string) bool { return databaseOf(toolType) == "mysql" }

// unsupportedEscapes returns the escape styles that the database of a tool type does not
// support. Of a database that is not listed here they are all of them.
func unsupportedEscapes(toolType string) []string {
	switch databaseOf(toolType) {
	case "sqlite":
		return nil
	case "postgres":
		return []string{parameter.EscapeBackticks, parameter.EscapeSquareBrackets}
	case "mysql":
		return []string{parameter.EscapeSquareBrackets}
	}
	return parameter.EscapeStyles()
}

// checkTemplates checks the texts of the tool that can be templates.
func (p *pendingTool) checkTemplates(set *parameter.Set) {
	p.checkTemplate(set, "statement", p.tool.Statement, len(p.templateSpecs) > 0, set.TemplateNames()...)
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
		_, err = set.ParseTemplate(templateFormats[name], text, names...)
	} else {
		err, hint = parameter.CheckPlainText(text), "declare it under "+templateFields[name]
	}
	if err == nil {
		return
	}
	at, ok := p.FindField(name)
	if !ok {
		at = p.MissingField(name)
	}
	at.AddError(err.Error(), hint)
}

// templateFields maps a text of a tool to the field that declares the parameters of
// its template.
var templateFields = map[string]string{"statement": "templateParameters", "path": "pathParams", "requestBody": "bodyParams"}

// templateFormats maps a text of a tool to the format that its template is checked for. That of a
// requestBody depends on headers, so it is checked again when the tool is made.
var templateFormats = map[string]parameter.Format{
	"statement": parameter.FormatStatement, "path": parameter.FormatPath, "requestBody": parameter.FormatPlain,
}

// CheckTools checks the sources and services that declared tools name. It is called when
// all documents are read. It returns false if a reused tool is no longer valid, without
// reporting why. The documents must then be read again without reuse.
func (r *Reader) CheckTools() bool {
	c := crossChecker{Reader: r, sources: make(map[string]Source, len(r.to.Sources))}
	for _, s := range r.to.Sources {
		if _, ok := c.sources[s.Name]; !ok {
			c.sources[s.Name] = s
		}
	}
	c.services = r.set.ListNames("authService")
	c.mcpEnabled = slices.ContainsFunc(r.to.AuthServices, func(s AuthService) bool { return s.MCPEnabled })
	for _, p := range r.pending {
		c.check(p)
		r.to.Tools[p.index] = p.tool
	}
	r.checkForeignTools()
	r.checkMCPTools()
	r.checkServiceTools()
	for _, i := range r.reused {
		if !c.stillValid(&r.to.Tools[i]) {
			return false
		}
	}
	for i := range r.to.Tools {
		c.setLabels(&r.to.Tools[i])
	}
	return !r.stale
}

// setLabels sets the labels of a tool: its own labels, and the labels of its source or server.
func (c *crossChecker) setLabels(t *DeclaredTool) {
	l := t.own
	switch {
	case t.MCP != nil:
		l = l.or(c.servers[t.MCP.Server])
	case t.Service != nil:
		l = l.or(c.serviceLabels(t.Service.Service))
	case t.Annotations.decidesEffect():
		effect := l.Effect
		l = l.or(c.sources[t.Source].Labels)
		l.Effect = effect
	default:
		l = l.or(c.sources[t.Source].Labels)
	}
	t.Groups, t.InStates, t.Effect, t.NextState, t.Flags = l.Groups, l.States, l.Effect, "", l.Flags
	if l.State != nil {
		t.NextState = *l.State
	}
}

// serviceLabels returns the labels of a tool service.
func (r *Reader) serviceLabels(name string) Labels {
	for _, s := range r.to.ToolServices {
		if s.Name == name {
			return s.Labels
		}
	}
	return Labels{}
}

// decidesEffect reports whether the hints say what the effect class of a tool is.
func (a Annotations) decidesEffect() bool { return a.ReadOnly != nil || a.Idempotent != nil }

// onlySource returns the name of the only source of a type, "" if there are none or several.
func (c *crossChecker) onlySource(kind string) (name string) {
	for _, s := range c.to.Sources {
		switch {
		case s.Type != kind || s.Name == name:
		case name != "":
			return ""
		default:
			name = s.Name
		}
	}
	return name
}

// crossChecker checks tools against the sources and auth services that they name.
type crossChecker struct {
	*Reader
	sources    map[string]Source // by name
	services   []string
	mcpEnabled bool // an auth service authenticates MCP callers
}

// check checks one tool that was read, and compiles its parameters if they needed
// the auth services.
func (c *crossChecker) check(p *pendingTool) {
	before := c.docs.ErrorCount()
	if p.tool.Source == "" && callsTrustGraph(p.tool.Type) {
		if p.tool.Source = c.onlySource(SourceHTTP); p.tool.Source == "" {
			p.sourceAt.AddError("is missing", "without it there has to be exactly one source of type http: the address of TrustGraph's gateway")
		}
	}
	source := c.sources[p.tool.Source]
	if source.Type != "" && !slices.Contains(p.sources, source.Type) {
		p.sourceAt.AddError("source "+yamldoc.QuoteText(p.tool.Source)+" is of type "+source.Type, "a tool of type "+p.tool.Type+" needs a source of type "+strings.Join(p.sources, " or "))
	} else if source.ReadOnly && p.tool.mayChange() {
		p.methodAt.AddError(p.tool.HTTP.Method+" may change data, and source "+yamldoc.QuoteText(p.tool.Source)+" is readOnly", "use GET, HEAD or OPTIONS, or a source that is not readOnly")
	}
	if len(p.tool.ScopesRequired) > 0 && !c.mcpEnabled {
		p.scopesAt.AddError("applies to MCP callers, and no auth service authenticates them", "declare one with mcpEnabled: true")
	}
	wrong := c.docs.ErrorCount() > before
	if !p.paramsCompiled { // it waits for the auth services or the profile of its source
		p.errCount, p.anchor = c.docs.ErrorCount(), source.Profile == ProfileCompat
		p.compile(c.services)
	}
	if wrong { // without Parameters the caller leaves the tool out of its source, and reports no second error
		p.tool.Parameters, p.tool.cacheable = nil, false
	}
}

// mayChange reports whether a tool sends requests that may change data.
func (t *DeclaredTool) mayChange() bool {
	return t.HTTP != nil && !t.HTTP.OnlyReads && !slices.Contains([]string{"", "GET", "HEAD", "OPTIONS"}, t.HTTP.Method)
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
	for _, services := range t.Parameters.ClaimServices() {
		if slices.ContainsFunc(services, missing) {
			return false
		}
	}
	return true
}
