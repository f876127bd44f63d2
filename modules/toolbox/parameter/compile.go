package parameter

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/textutil"
)

const (
	maxName  = 256 // bytes of a name
	maxDepth = 32  // nested arrays
)

// CompileSet checks the parameters of one tool. These are the ordinary parameters,
// which are bound in their order, and the parameters of its template. It returns the
// Set, or nil and every problem it finds.
func CompileSet(o Options, ordinary, template []Spec) (*Set, []Problem) {
	c := compiler{Options: o, set: &Set{indexes: map[string]int{}}}
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

// compiler builds a Set and collects the problems.
type compiler struct {
	Options
	set      *Set
	name     string // of the parameter that is checked
	problems []Problem
}

func (c *compiler) problem(field, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{field, fmt.Sprintf(format, args...), hint})
}

// fieldPath returns the field of the spec at index i. Template parameters begin at
// index first.
func (c *compiler) fieldPath(spec Spec, i, first int) string {
	switch {
	case spec.At != "":
		return spec.At
	case i >= first:
		return fmt.Sprintf("templateParameters[%d]", i-first)
	}
	return fmt.Sprintf("parameters[%d]", i)
}

// add checks one parameter by itself and adds it to the set.
func (c *compiler) add(at string, spec Spec, template bool) {
	p := &parameter{name: spec.Name, auth: spec.Auth, secure: spec.Secure, template: template, isCopy: spec.From != ""}
	c.name = spec.Name
	p.spec = c.compileType(at, &spec, template, 0)
	p.required = spec.Required == nil || *spec.Required
	p.secret = spec.Secure || len(spec.Auth) > 0
	c.checkUnique(at, p)
	c.checkSource(at, &spec)
	c.checkDefault(at, &spec, p)
	if template && p.spec.kind == TypeArray && p.spec.items != nil && p.spec.items.kind != TypeString {
		c.problem(at+".items.type", "", "elements of a template array must be of type string, not %q", p.spec.items.kind)
	}
	c.set.list = append(c.set.list, p)
}

// checkUnique rejects a name that another parameter has, of either list.
func (c *compiler) checkUnique(at string, p *parameter) {
	if _, twice := c.set.indexes[p.name]; twice && p.name != "" {
		c.problem(at+".name", "names are unique across parameters and templateParameters", "duplicate parameter %q", textutil.Truncate(p.name, maxQuote))
		return
	}
	c.set.indexes[p.name] = len(c.set.list)
}

// checkSource checks the fields that select the source of the value.
func (c *compiler) checkSource(at string, spec *Spec) {
	if spec.Secure && spec.Default != nil && spec.Default.Kind != KindNull {
		c.problem(at+".default", "", "a secure parameter cannot have a default")
	}
	if spec.Secure && spec.Required != nil && !*spec.Required {
		c.problem(at+".required", "", "a secure parameter is always required")
	}
	if sources := countTrue(spec.Secure, len(spec.Auth) > 0, spec.From != ""); sources > 1 {
		c.problem(at, "keep one of them", "secure, authServices and valueFromParam exclude each other")
	}
	for i, claim := range spec.Auth {
		field := fmt.Sprintf("%s.authServices[%d]", at, i)
		if !slices.Contains(c.Services, claim.Service) {
			c.problem(field+".name", "declare it, or name a declared one", "unknown auth service %q", claim.Service)
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

// checkDefault checks the default as ParseArguments would check an argument.
func (c *compiler) checkDefault(at string, spec *Spec, p *parameter) {
	if spec.Default == nil || spec.Default.Kind == KindNull || !p.spec.isKnown() {
		return
	}
	raw, err := p.spec.parseLiteral(*spec.Default, singleValue)
	if err == nil {
		p.defaultValue, err = p.spec.read(raw, shownInErrors)
	}
	if err != nil {
		c.problem(at+".default", "a default must be a value that a call may pass", "%v", err)
		return
	}
	p.hasDefault, p.defaultJSON = true, raw
}

// resolveCopy checks and resolves valueFromParam.
func (c *compiler) resolveCopy(field string, spec Spec, p *parameter) {
	if spec.From == "" {
		return
	}
	i, ok := c.set.indexes[spec.From]
	if !ok {
		c.problem(field, "", "unknown parameter %q", textutil.Truncate(spec.From, maxQuote))
		return
	}
	from := c.set.list[i]
	switch {
	case spec.From == spec.Name:
		c.problem(field, "", "parameter %q cannot copy its own value", textutil.Truncate(spec.Name, maxQuote))
	case from.isCopy:
		c.problem(field, "name the parameter that "+textutil.Truncate(spec.From, maxQuote)+" copies", "parameter %q is itself a copy", textutil.Truncate(spec.From, maxQuote))
	case p.spec.isKnown() && from.spec.isKnown() && !p.spec.assignableFrom(from.spec):
		c.problem(field, "a copy must have the type of the original", "parameter %q is of another type", textutil.Truncate(spec.From, maxQuote))
	}
	p.from, p.secret = from, p.secret || from.secret
}

// assignableFrom reports whether every value of another typeSpec has f's type.
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

// checkSize checks that package tool accepts the schemas.
func (c *compiler) checkSize() {
	c.set.schema = c.set.Schema()
	if n := max(len(c.set.schema), len(c.set.ClientSchema())); n > MaxSchema {
		c.problem("parameters", "shorten descriptions or lists of values", "the schema has %d bytes, more than %d", n, MaxSchema)
	}
}

// nameProblem returns what is wrong with the name of a parameter, "" if nothing is.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "the name is missing"
	case len(name) > maxName:
		return fmt.Sprintf("the name has %d bytes, more than %d", len(name), maxName)
	case !utf8.ValidString(name):
		return "the name is not valid UTF-8"
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Sprintf("the name contains the control character %U", r)
		}
	}
	return ""
}
