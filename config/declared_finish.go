package config

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/parameter"
)

// claims says whether a parameter's value comes from a token, so that the auth
// services have to be known.
func (p *pending) claims() bool {
	has := func(spec parameter.Spec) bool { return len(spec.Auth) > 0 }
	return slices.ContainsFunc(p.ordinary, has) || slices.ContainsFunc(p.template, has)
}

// compile checks the parameters, and the texts that values are put into.
func (p *pending) compile(services []string) {
	errs := &p.doc.errs
	if len(*errs) == p.faults {
		p.tool.Parameters = p.set(services)
	}
	if p.tool.Parameters != nil {
		p.templates(p.tool.Parameters)
	}
	if len(*errs) > p.faults {
		p.tool.Parameters = nil
	}
	p.tool.own = p.tool.Parameters != nil && !p.entry
	p.item, p.ordinary, p.template = item{}, nil, nil
}

// set gives the parameters; tools of a type whose parameters are written alike
// share them.
func (p *pending) set(services []string) *parameter.Set {
	ordinary, key := p.ordinary, p.tool.Type
	switch {
	case p.fixed != nil:
		ordinary = p.fixed
	case p.tool.HTTP != nil || services != nil:
		key = ""
	default:
		key += p.printOf("parameters", "templateParameters")
	}
	if set, ok := p.doc.sets[key]; ok {
		return set
	}
	o := parameter.Options{Services: services, Backslash: strings.HasPrefix(p.tool.Type, "mysql-")}
	set, problems := parameter.Compile(o, ordinary, p.template)
	for _, problem := range problems {
		p.locate(problem.Field).fail(problem.Message, problem.Hint)
	}
	if problems == nil && key != "" {
		p.doc.sets[key] = set
	}
	return set
}

// templates checks the texts that values are put into.
func (p *pending) templates(set *parameter.Set) {
	p.checkTemplate(set, "statement", p.tool.Statement, len(p.template) > 0)
	if request := p.tool.HTTP; request != nil {
		p.checkTemplate(set, "path", request.Path, len(request.PathParams) > 0, request.PathParams...)
		p.checkTemplate(set, "requestBody", request.Body, len(request.BodyParams) > 0, request.BodyParams...)
	}
}

// checkTemplate checks one text: a template, if there are parameters for one.
func (p *pending) checkTemplate(set *parameter.Set, name, text string, is bool, names ...string) {
	var err error
	hint := ""
	if is {
		_, err = set.Template(text, names...)
	} else {
		err, hint = parameter.Stray(text), "declare it under "+templateFields[name]
	}
	if err == nil {
		return
	}
	at, ok := p.child(name)
	if !ok {
		at = p.at(name)
	}
	at.fail(err.Error(), hint)
}

// templateFields are where the parameters of a text's template are declared.
var templateFields = map[string]string{"statement": "templateParameters", "path": "pathParams", "requestBody": "bodyParams"}

// finish checks what declared tools name, when all of that is read.
func (r *reader) finish() {
	f := finisher{reader: r, sources: make(map[string]string, len(r.config.Sources))}
	for _, s := range r.config.Sources {
		f.sources[s.Name] = s.Type
	}
	for key := range r.names {
		if key.kind == "authService" {
			f.services = append(f.services, key.name)
		}
	}
	f.mcp = slices.ContainsFunc(r.config.AuthServices, func(s AuthService) bool { return s.MCPEnabled })
	for _, p := range r.tools {
		f.finish(p)
		r.config.Tools[p.place] = p.tool
	}
	for _, i := range r.kept {
		if !f.stands(&r.config.Tools[i]) {
			r.spoil()
			return
		}
	}
}

// finisher knows what declared tools may name.
type finisher struct {
	*reader
	sources  map[string]string // types by name
	services []string
	mcp      bool // a service vouches for the callers of MCP
}

func (f *finisher) finish(p *pending) {
	if of := f.sources[p.tool.Source]; of != "" && !slices.Contains(p.sources, of) {
		p.sourceAt.fail("source "+quote(p.tool.Source)+" is of type "+of, "a tool of type "+p.tool.Type+" asks one of type "+strings.Join(p.sources, " or "))
	}
	if len(p.tool.ScopesRequired) > 0 && !f.mcp {
		p.scopesAt.fail("is checked of callers of MCP, for whom no auth service vouches", "declare one with mcpEnabled: true")
	}
	if p.doc != nil { // it had to wait for the auth services
		p.faults = len(f.errs)
		p.compile(f.services)
	}
}

// stands says whether a tool that was kept is still right: what it names is
// there, and as it needs it.
func (f *finisher) stands(t *DeclaredTool) bool {
	i := slices.IndexFunc(f.toolTypes, func(known toolType) bool { return known.name == t.Type })
	if i < 0 || !slices.Contains(f.toolTypes[i].sources, f.sources[t.Source]) || len(t.ScopesRequired) > 0 && !f.mcp {
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
