package parameter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var types = []string{TypeString, TypeInteger, TypeFloat, TypeBoolean, TypeArray, TypeMap}

// known says whether the type is one; nothing else can be checked of others.
func (f *typeSpec) known() bool {
	return slices.Contains(types, f.kind) && (f.kind != TypeArray || f.items != nil)
}

// form checks what values a parameter, or an element, may have.
func (c *compiler) form(at string, spec *Spec, template bool, depth int) *typeSpec {
	f := &typeSpec{kind: spec.Type, name: spec.Name, description: spec.Description, statement: template}
	c.named(at, spec)
	if !slices.Contains(types, spec.Type) {
		c.problem(at+".type", "one of "+strings.Join(types, ", "), "%s", typeProblem(spec.Type))
		return f
	}
	c.checkApplies(at, spec)
	c.members(at, spec, f, depth)
	c.escape(at, spec, f)
	if f.known() {
		c.limits(at, spec, f)
		c.choices(at, spec, f)
	}
	return f
}

func typeProblem(name string) string {
	if name == "" {
		return "the type is missing"
	}
	return fmt.Sprintf("there is no type %q", brief(name))
}

func (c *compiler) named(at string, spec *Spec) {
	if text := nameProblem(spec.Name); text != "" {
		c.problem(at+".name", "", "%s", text)
	}
	if spec.Description == "" {
		c.problem(at+".description", "say what the value is; models read it", "the description is missing")
	}
	if spec.EmbeddedBy != "" {
		c.problem(at+".embeddedBy", "", "there is no embedding model %q: embedding is not supported", brief(spec.EmbeddedBy))
	}
}

// checkApplies refuses fields of other types.
func (c *compiler) checkApplies(at string, spec *Spec) {
	for _, field := range []struct {
		name string
		set  bool
		of   []string
	}{
		{"minValue", spec.Min != nil, []string{TypeInteger, TypeFloat}},
		{"maxValue", spec.Max != nil, []string{TypeInteger, TypeFloat}},
		{"escape", spec.Escape != "", []string{TypeString}},
		{"items", spec.Items != nil, []string{TypeArray}},
		{"valueType", spec.ValueType != "", []string{TypeMap}},
	} {
		if field.set && !slices.Contains(field.of, spec.Type) {
			c.problem(at+"."+field.name, "", "belongs to type %s, not %s", strings.Join(field.of, " and "), spec.Type)
		}
	}
}

func (c *compiler) escape(at string, spec *Spec, f *typeSpec) {
	if f.kind != TypeString {
		return
	}
	var ok bool
	if f.quote, ok = quoteOf(spec.Escape, c.Backslash); !ok {
		hint := "one of " + strings.Join([]string{SingleQuotes, DoubleQuotes, Backticks, SquareBrackets}, ", ")
		c.problem(at+".escape", hint, "there is no way to escape called %q", brief(spec.Escape))
	}
	if f.statement && slices.Contains(c.UnsupportedEscapes, spec.Escape) {
		c.problem(at+".escape", c.quoteHint(), "%s quote nothing in this database", spec.Escape)
	}
}

// quoteHint says how names are quoted where not every style is known.
func (c *compiler) quoteHint() string {
	if slices.Contains(c.UnsupportedEscapes, Backticks) {
		return DoubleQuotes + " quote a name, " + SingleQuotes + " a text"
	}
	return Backticks + " quote a name, " + SingleQuotes + " a text"
}

// members checks what is inside of arrays and maps.
func (c *compiler) members(at string, spec *Spec, f *typeSpec, depth int) {
	scalars := types[:4]
	switch {
	case f.kind == TypeMap && spec.ValueType != "":
		if !slices.Contains(scalars, spec.ValueType) {
			c.problem(at+".valueType", "one of "+strings.Join(scalars, ", ")+"; or leave it out to take any value", "there are no maps of %q", brief(spec.ValueType))
			return
		}
		f.items = &typeSpec{kind: spec.ValueType, statement: f.statement}
	case f.kind == TypeArray && spec.Items == nil:
		c.problem(at+".items", "say what the elements are: items: {name: …, type: …, description: …}", "an array without items")
	case f.kind == TypeArray && depth == maxDepth:
		c.problem(at+".items", "", "more than %d arrays in one another", maxDepth)
	case f.kind == TypeArray:
		f.items = c.items(at+".items", spec.Items, f.statement, depth)
	}
}

// items checks the elements of an array. Whether they are required has no
// meaning; a default is not used, but should be one.
func (c *compiler) items(at string, spec *Spec, template bool, depth int) *typeSpec {
	for _, field := range []struct {
		name string
		set  bool
	}{{"authServices", len(spec.Auth) > 0}, {"valueFromParam", spec.From != ""}, {"secure", spec.Secure}} {
		if field.set {
			c.problem(at+"."+field.name, "", "belongs to a parameter, not to its items")
		}
	}
	f := c.form(at, spec, template, depth+1)
	c.checkDefault(at, spec, &parameter{form: f})
	return f
}

func (c *compiler) limits(at string, spec *Spec, f *typeSpec) {
	if f.kind != TypeInteger && f.kind != TypeFloat {
		return
	}
	f.low = c.limit(at+".minValue", spec.Min, f)
	f.high = c.limit(at+".maxValue", spec.Max, f)
	if f.low != "" && f.high != "" && compareNumbers(f.low, f.high) > 0 {
		c.problem(at+".minValue", "", "no value is from %s to %s", f.low, f.high)
	}
}

func (c *compiler) limit(field string, l *Literal, f *typeSpec) string {
	if l == nil || l.Kind == Null {
		return ""
	}
	r, err := f.literal(*l, false)
	if err != nil {
		c.problem(field, "", "%v", err)
	}
	return r.Raw
}

// choices checks allowedValues and excludedValues.
func (c *compiler) choices(at string, spec *Spec, f *typeSpec) {
	for i, entry := range spec.Allowed {
		c.entry(fmt.Sprintf("%s.allowedValues[%d]", at, i), entry, f, &f.allowed, c.allow)
	}
	for i, entry := range spec.Excluded {
		c.entry(fmt.Sprintf("%s.excludedValues[%d]", at, i), entry, f, &f.excluded, c.exclude)
	}
}

// entry adds a value to a list; expression makes one of a text, if it is one.
func (c *compiler) entry(field string, l Literal, f *typeSpec, list *valueList, expression func(field, text string) (*expression, bool)) {
	r, err := f.literal(l, true)
	if err != nil {
		c.problem(field, "entries are values of the parameter's type", "%v", err)
		return
	}
	if f.kind != TypeString {
		list.add(r)
		return
	}
	switch e, ok := expression(field, r.Str); {
	case e != nil:
		list.expressions = append(list.expressions, e)
	case ok:
		list.add(r)
	}
}

// allow gives the expression that an entry is; it is ok also if it is none.
func (c *compiler) allow(field, text string) (*expression, bool) {
	e, literal, err := allowedText(text)
	if err != nil {
		c.problem(field, allowHint(text), "%v", err)
	}
	return e, literal
}

// allowHint says how to write what an entry that is no expression may mean.
func allowHint(text string) string {
	inner, is := slashed(text)
	if is || anchored(text) {
		return "mend the expression, or write /" + brief(regexp.QuoteMeta(inner)) + "/ for the text " + brief(inner)
	}
	return "write /" + brief(text) + "/ for an expression that matches the whole value, /" + brief(regexp.QuoteMeta(text)) + "/ for the text itself"
}

// exclude gives the expression that an entry is.
func (c *compiler) exclude(field, text string) (*expression, bool) {
	e, err := excludedText(text)
	if err != nil {
		c.problem(field, "write "+brief(regexp.QuoteMeta(text))+" for the text itself", "%v", err)
	}
	return e, false
}
