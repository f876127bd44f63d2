package config

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/parameter"
)

// usesClaims says whether a parameter's value comes from a token, so that the auth
// services have to be known.
func (p *pendingTool) usesClaims() bool {
	has := func(spec parameter.Spec) bool { return len(spec.Auth) > 0 }
	return slices.ContainsFunc(p.specs, has) || slices.ContainsFunc(p.templateSpecs, has)
}

// compile checks the parameters, and the texts that values are put into.
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

// compileSet gives the parameters; tools of a type whose parameters are written alike
// share them.
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

// unsupportedEscapes gives the styles of escape that the database of a type of tool
// does not know. SQLite knows all.
func unsupportedEscapes(tool string) []string {
	switch database, _, _ := strings.Cut(tool, "-"); database {
	case "postgres":
		return []string{parameter.Backticks, parameter.SquareBrackets}
	case "mysql":
		return []string{parameter.SquareBrackets}
	}
	return nil
}

// checkTemplates checks the texts that values are put into.
func (p *pendingTool) checkTemplates(set *parameter.Set) {
	p.checkTemplate(set, "statement", p.tool.Statement, len(p.templateSpecs) > 0)
	if request := p.tool.HTTP; request != nil {
		p.checkTemplate(set, "path", request.Path, len(request.PathParams) > 0, request.PathParams...)
		p.checkTemplate(set, "requestBody", request.Body, len(request.BodyParams) > 0, request.BodyParams...)
	}
}

// checkTemplate checks one text: a template, if there are parameters for one.
func (p *pendingTool) checkTemplate(set *parameter.Set, name, text string, is bool, names ...string) {
	var err error
	hint := ""
	if is {
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

// templateFields are where the parameters of a text's template are declared.
var templateFields = map[string]string{"statement": "templateParameters", "path": "pathParams", "requestBody": "bodyParams"}

// checkTools checks what declared tools name, when all of that is read.
func (r *reader) checkTools() {
	f := crossChecker{reader: r, sources: make(map[string]Source, len(r.config.Sources))}
	for _, s := range r.config.Sources {
		if _, twice := f.sources[s.Name]; !twice {
			f.sources[s.Name] = s
		}
	}
	for key := range r.names {
		if key.kind == "authService" {
			f.services = append(f.services, key.name)
		}
	}
	f.mcpEnabled = slices.ContainsFunc(r.config.AuthServices, func(s AuthService) bool { return s.MCPEnabled })
	for _, p := range r.tools {
		f.check(p)
		r.config.Tools[p.index] = p.tool
	}
	for _, i := range r.reused {
		if !f.stillValid(&r.config.Tools[i]) {
			r.invalidate()
			return
		}
	}
}

// crossChecker knows what declared tools may name.
type crossChecker struct {
	*reader
	sources    map[string]Source // by name
	services   []string
	mcpEnabled bool // a service vouches for the callers of MCP
}

func (f *crossChecker) check(p *pendingTool) {
	before, of := len(f.errs), f.sources[p.tool.Source]
	if of.Type != "" && !slices.Contains(p.sources, of.Type) {
		p.sourceAt.fail("source "+quote(p.tool.Source)+" is of type "+of.Type, "a tool of type "+p.tool.Type+" asks one of type "+strings.Join(p.sources, " or "))
	} else if of.ReadOnly && p.tool.mayChange() {
		p.methodAt.fail(p.tool.HTTP.Method+" asks for a change, and source "+quote(p.tool.Source)+" is readOnly", "use GET, HEAD or OPTIONS, or a source that is not readOnly")
	}
	if len(p.tool.ScopesRequired) > 0 && !f.mcpEnabled {
		p.scopesAt.fail("is checked of callers of MCP, for whom no auth service vouches", "declare one with mcpEnabled: true")
	}
	wrong := len(f.errs) > before
	if p.doc != nil { // it had to wait for the auth services
		p.errCount = len(f.errs)
		p.compile(f.services)
	}
	if wrong { // as with one whose own document is: its source has no fault by it
		p.tool.Parameters, p.tool.cacheable = nil, false
	}
}

// mayChange says whether a tool sends requests that ask a service for a change.
func (t *DeclaredTool) mayChange() bool {
	return t.HTTP != nil && !slices.Contains([]string{"", "GET", "HEAD", "OPTIONS"}, t.HTTP.Method)
}

// stillValid says whether a tool that was kept is still right: what it names is
// there, and as it needs it.
func (f *crossChecker) stillValid(t *DeclaredTool) bool {
	i := slices.IndexFunc(f.toolTypes, func(known toolType) bool { return known.name == t.Type })
	of := f.sources[t.Source]
	if i < 0 || !slices.Contains(f.toolTypes[i].sources, of.Type) || of.ReadOnly && t.mayChange() || len(t.ScopesRequired) > 0 && !f.mcpEnabled {
		return false
	}
	missing := func(service string) bool { return !slices.Contains(f.services, service) }
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
