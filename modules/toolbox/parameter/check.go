package parameter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
)

var types = []string{TypeString, TypeInteger, TypeFloat, TypeBoolean, TypeArray, TypeMap}

// isKnown reports whether the type is valid. Without one nothing else can be checked.
func (f *typeSpec) isKnown() bool {
	return slices.Contains(types, f.kind) && (f.kind != TypeArray || f.items != nil)
}

// compileType checks the configuration of the values of a parameter or an element.
func (c *compiler) compileType(at string, spec *Spec, template bool, depth int) *typeSpec {
	f := &typeSpec{kind: spec.Type, name: spec.Name, description: spec.Description, inStatement: template}
	c.checkCommon(at, spec)
	if !slices.Contains(types, spec.Type) {
		c.problem(at+".type", "one of "+strings.Join(types, ", "), "%s", typeProblem(spec.Type))
		return f
	}
	c.checkApplies(at, spec)
	c.checkMembers(at, spec, f, depth)
	c.checkEscape(at, spec, f)
	if f.isKnown() {
		c.checkLimits(at, spec, f)
		c.checkLists(at, spec, f)
	}
	return f
}

func typeProblem(name string) string {
	if name == "" {
		return "the type is missing"
	}
	return fmt.Sprintf("unknown type %q", textutil.Truncate(name, maxQuote))
}

// checkCommon checks the fields that every type has.
func (c *compiler) checkCommon(at string, spec *Spec) {
	if text := nameProblem(spec.Name); text != "" {
		c.problem(at+".name", "", "%s", text)
	}
	if spec.Description == "" {
		c.problem(at+".description", "describe the value for the model", "the description is missing")
	}
	if spec.EmbeddedBy != "" {
		c.problem(at+".embeddedBy", "", "embedding model %q: embeddings are not supported", textutil.Truncate(spec.EmbeddedBy, maxQuote))
	}
}

// checkApplies rejects fields that belong to other types.
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

// checkEscape checks how a string is quoted.
func (c *compiler) checkEscape(at string, spec *Spec, f *typeSpec) {
	if f.kind != TypeString {
		return
	}
	var ok bool
	if f.quote, ok = quoteOf(spec.Escape, c.Backslash); !ok {
		hint := "one of " + strings.Join(EscapeStyles(), ", ")
		c.problem(at+".escape", hint, "unknown escape %q", textutil.Truncate(spec.Escape, maxQuote))
	}
	if f.inStatement && slices.Contains(c.UnsupportedEscapes, spec.Escape) {
		c.problem(at+".escape", c.quoteHint(), "%s do not quote in this database", spec.Escape)
	}
}

// quoteHint returns how to quote in a database that lacks some styles.
func (c *compiler) quoteHint() string {
	if slices.Contains(c.UnsupportedEscapes, EscapeBackticks) {
		return "use " + EscapeDoubleQuotes + " for names, " + EscapeSingleQuotes + " for strings"
	}
	return "use " + EscapeBackticks + " for names, " + EscapeSingleQuotes + " for strings"
}

// checkMembers checks the elements of an array and the values of a map.
func (c *compiler) checkMembers(at string, spec *Spec, f *typeSpec, depth int) {
	scalars := types[:4]
	switch {
	case f.kind == TypeMap && spec.ValueType != "":
		if !slices.Contains(scalars, spec.ValueType) {
			c.problem(at+".valueType", "one of "+strings.Join(scalars, ", ")+"; leave it out to accept any value", "a map cannot have values of type %q", textutil.Truncate(spec.ValueType, maxQuote))
			return
		}
		f.items = &typeSpec{kind: spec.ValueType, inStatement: f.inStatement}
	case f.kind == TypeArray && spec.Items == nil:
		c.problem(at+".items", "describe the elements: items: {name: …, type: …, description: …}", "an array without items")
	case f.kind == TypeArray && depth == maxDepth:
		c.problem(at+".items", "", "arrays are nested more than %d deep", maxDepth)
	case f.kind == TypeArray:
		f.items = c.compileItems(at+".items", spec.Items, f.inStatement, depth)
	}
}

// compileItems checks the elements of an array. Their required has no meaning. Their
// default is not used, but it has to be valid.
func (c *compiler) compileItems(at string, spec *Spec, template bool, depth int) *typeSpec {
	for _, field := range []struct {
		name string
		set  bool
	}{{"authServices", len(spec.Auth) > 0}, {"valueFromParam", spec.From != ""}, {"secure", spec.Secure}} {
		if field.set {
			c.problem(at+"."+field.name, "", "belongs to a parameter, not to its items")
		}
	}
	f := c.compileType(at, spec, template, depth+1)
	c.checkDefault(at, spec, &parameter{spec: f})
	return f
}

// checkLimits checks minValue and maxValue.
func (c *compiler) checkLimits(at string, spec *Spec, f *typeSpec) {
	if f.kind != TypeInteger && f.kind != TypeFloat {
		return
	}
	f.low = c.parseLimit(at+".minValue", spec.Min, f)
	f.high = c.parseLimit(at+".maxValue", spec.Max, f)
	if f.low != "" && f.high != "" && compareNumbers(f.low, f.high) > 0 {
		c.problem(at+".minValue", "", "the minimum %s is above the maximum %s", f.low, f.high)
	}
}

// parseLimit returns a limit as a JSON number, "" if there is none.
func (c *compiler) parseLimit(field string, l *Literal, f *typeSpec) string {
	if l == nil || l.Kind == KindNull {
		return ""
	}
	r, err := f.parseLiteral(*l, singleValue)
	if err != nil {
		c.problem(field, "", "%v", err)
	}
	return r.Raw
}

// checkLists checks allowedValues and excludedValues.
func (c *compiler) checkLists(at string, spec *Spec, f *typeSpec) {
	for i, entry := range spec.Allowed {
		c.addEntry(fmt.Sprintf("%s.allowedValues[%d]", at, i), entry, f, &f.allowed, c.parseAllowed)
	}
	for i, entry := range spec.Excluded {
		c.addEntry(fmt.Sprintf("%s.excludedValues[%d]", at, i), entry, f, &f.excluded, c.parseExcluded)
	}
}

// addEntry adds a value to a list. A string may be an expression, which expression
// compiles; it reports whether the string is a value instead.
func (c *compiler) addEntry(field string, l Literal, f *typeSpec, list *valueList, expression func(field, text string) (*expression, bool)) {
	r, err := f.parseLiteral(l, listEntry)
	if err != nil {
		c.problem(field, "entries must have the parameter's type", "%v", err)
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

// parseAllowed returns the expression that an entry of allowedValues is. It reports whether
// the entry is a value instead.
func (c *compiler) parseAllowed(field, text string) (*expression, bool) {
	e, literal, err := parseAllowed(text, c.AnchorAllowed)
	if err == nil && isAmbiguous(text) && !slices.Contains(c.set.anchored, c.name) {
		c.set.anchored = append(c.set.anchored, c.name)
	}
	if err != nil {
		c.problem(field, allowHint(text), "%v", err)
	}
	return e, literal
}

// allowHint returns how to write what an invalid entry was probably meant to be.
func allowHint(text string) string {
	inner, is := trimSlashes(text)
	if is || isAnchored(text) {
		return "fix the expression, or write /" + textutil.Truncate(regexp.QuoteMeta(inner), maxQuote) + "/ for the text " + textutil.Truncate(inner, maxQuote)
	}
	return "write /" + textutil.Truncate(text, maxQuote) + "/ for an expression that matches the whole value, /" + textutil.Truncate(regexp.QuoteMeta(text), maxQuote) + "/ for the text itself"
}

// parseExcluded returns the expression that an entry of excludedValues is.
func (c *compiler) parseExcluded(field, text string) (*expression, bool) {
	e, err := parseExcluded(text)
	if err != nil {
		c.problem(field, "write "+textutil.Truncate(regexp.QuoteMeta(text), maxQuote)+" for the text itself", "%v", err)
	}
	return e, false
}
