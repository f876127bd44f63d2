package parameter

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	maxName  = 256 // bytes of a name
	maxDepth = 32  // arrays in one another
)

// Compile checks the parameters of one tool: the ordinary ones, which are
// bound in their order, and those of its template. It gives the Set, or all
// problems there are.
func Compile(o Options, ordinary, template []Spec) (*Set, []Problem) {
	c := compiler{Options: o, set: &Set{places: map[string]int{}}}
	specs := slices.Concat(ordinary, template)
	for i, spec := range specs {
		c.add(c.fieldPath(spec, i, len(ordinary)), spec, i >= len(ordinary))
	}
	for i, spec := range specs {
		c.resolveCopy(c.fieldPath(spec, i, len(ordinary))+".valueFromParam", spec, c.set.list[i])
	}
	if c.problems == nil {
		c.checkSize()
	}
	if c.problems != nil {
		return nil, c.problems
	}
	return c.set, nil
}

// compiler collects problems.
type compiler struct {
	Options
	set      *Set
	problems []Problem
}

func (c *compiler) problem(field, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{field, fmt.Sprintf(format, args...), hint})
}

// fieldPath gives the field of the spec at i, where the template's begin at first.
func (c *compiler) fieldPath(spec Spec, i, first int) string {
	switch {
	case spec.At != "":
		return spec.At
	case i >= first:
		return fmt.Sprintf("templateParameters[%d]", i-first)
	}
	return fmt.Sprintf("parameters[%d]", i)
}

// add checks one parameter, without what it has to do with others.
func (c *compiler) add(at string, spec Spec, template bool) {
	p := &parameter{name: spec.Name, auth: spec.Auth, secure: spec.Secure, template: template, copy: spec.From != ""}
	p.form = c.form(at, &spec, template, 0)
	p.required = spec.Required == nil || *spec.Required
	p.secret = spec.Secure || len(spec.Auth) > 0
	c.unique(at, p)
	c.checkSource(at, &spec)
	c.checkDefault(at, &spec, p)
	if template && p.form.kind == TypeArray && p.form.items != nil && p.form.items.kind != TypeString {
		c.problem(at+".items.type", "", "elements of a template array are of type string, not %q", p.form.items.kind)
	}
	c.set.list = append(c.set.list, p)
}

func (c *compiler) unique(at string, p *parameter) {
	if _, twice := c.set.places[p.name]; twice && p.name != "" {
		c.problem(at+".name", "names are unique over parameters and templateParameters", "there is another parameter %q", brief(p.name))
		return
	}
	c.set.places[p.name] = len(c.set.list)
}

// checkSource checks where the value comes from.
func (c *compiler) checkSource(at string, spec *Spec) {
	if spec.Secure && spec.Default != nil && spec.Default.Kind != Null {
		c.problem(at+".default", "", "a secure parameter has no default")
	}
	if spec.Secure && spec.Required != nil && !*spec.Required {
		c.problem(at+".required", "", "a secure parameter is always required")
	}
	if sources := countTrue(spec.Secure, len(spec.Auth) > 0, spec.From != ""); sources > 1 {
		c.problem(at, "keep one of them", "the value comes from one place: secure, authServices or valueFromParam")
	}
	for i, claim := range spec.Auth {
		field := fmt.Sprintf("%s.authServices[%d]", at, i)
		if !slices.Contains(c.Services, claim.Service) {
			c.problem(field+".name", "declare it, or name one that is", "there is no auth service %q", claim.Service)
		}
		if claim.Field == "" {
			c.problem(field+".field", "", "the name of a claim is missing")
		}
	}
}

func countTrue(list ...bool) (n int) {
	for _, yes := range list {
		if yes {
			n++
		}
	}
	return n
}

// checkDefault checks the default as a call would check the value.
func (c *compiler) checkDefault(at string, spec *Spec, p *parameter) {
	if spec.Default == nil || spec.Default.Kind == Null || !p.form.known() {
		return
	}
	raw, err := p.form.literal(*spec.Default, false)
	if err == nil {
		p.value, err = p.form.read(raw, false)
	}
	if err != nil {
		c.problem(at+".default", "a default is a value that a call may give", "%v", err)
		return
	}
	p.hasDefault, p.raw = true, raw
}

// resolveCopy checks and resolves valueFromParam.
func (c *compiler) resolveCopy(field string, spec Spec, p *parameter) {
	if spec.From == "" {
		return
	}
	i, ok := c.set.places[spec.From]
	if !ok {
		c.problem(field, "", "there is no parameter %q", brief(spec.From))
		return
	}
	from := c.set.list[i]
	switch {
	case spec.From == spec.Name:
		c.problem(field, "", "parameter %q cannot copy its own value", brief(spec.Name))
	case from.copy:
		c.problem(field, "name the parameter that "+brief(spec.From)+" copies", "parameter %q is a copy itself", brief(spec.From))
	case p.form.known() && from.form.known() && !p.form.assignableFrom(from.form):
		c.problem(field, "a copy has the type of the original", "values of %q are of another type", brief(spec.From))
	}
	p.from, p.secret = from, p.secret || from.secret
}

// assignableFrom says whether every value of another form has f's type.
func (f *typeSpec) assignableFrom(other *typeSpec) bool {
	switch {
	case f.kind == TypeFloat && other.kind == TypeInteger:
		return true
	case f.kind != other.kind:
		return false
	case f.items == nil:
		return true
	}
	return other.items != nil && f.items.assignableFrom(other.items)
}

// checkSize checks that the schemas can be used.
func (c *compiler) checkSize() {
	c.set.schema = c.set.Schema()
	if n := max(len(c.set.schema), len(c.set.ClientSchema())); n > MaxSchema {
		c.problem("parameters", "shorten descriptions, or lists of values", "their schema has %d bytes, more than %d", n, MaxSchema)
	}
}

// nameProblem says what is wrong with the name of a parameter.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "the name is missing"
	case len(name) > maxName:
		return fmt.Sprintf("the name has %d bytes, more than %d", len(name), maxName)
	case !utf8.ValidString(name):
		return "the name is no valid UTF-8"
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Sprintf("the name has the control character %U", r)
		}
	}
	return ""
}
