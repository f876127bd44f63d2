package yamldoc

import (
	"fmt"
	"slices"
	"strings"
)

// expansion is the cached result of substituting the variables of a scalar.
type expansion struct {
	text string
	ok   bool
}

// substituted returns the text of a scalar with variables substituted. It reports
// the errors of a scalar once, even if many aliases refer to it.
func (v Value) substituted() (string, bool) {
	if !v.HasVariable() {
		return v.Node.Value, true
	}
	e, known := v.doc.expansions[v.Node]
	if !known {
		text, problems := substitute(v.Node.Value, v.doc.reader.env)
		for _, p := range problems {
			v.locateText(p.text).AddError(p.message, p.hint)
		}
		e = expansion{text, len(problems) == 0}
		v.doc.expansions[v.Node] = e
	}
	return e.text, e.ok
}

// HasVariable reports whether v is a scalar with a variable in it.
func (v Value) HasVariable() bool {
	return v.IsScalar() && strings.Contains(v.Node.Value, "${")
}

// locateText returns v with the position of part in its text, so that an error in a
// long prompt has the right line. It returns v itself if part is not found, as
// when it is written with escapes.
func (v Value) locateText(part string) Value {
	if pos, ok := v.doc.src.findFrom(Pos{v.Pos.File, v.Node.Line, v.Node.Column}, part); ok {
		v.Pos = pos
	}
	return v
}

// problem is an error in a variable; text is the part of the scalar it is in.
type problem struct{ text, message, hint string }

// substitute replaces ${NAME} and ${NAME:default} in text. It uses the value of the
// variable, even if it is empty, or else the default, which ends at the first }.
// Values are not expanded again. $${ is an escaped ${; any other $ is a dollar.
//
// Substitution works on parsed scalars, not on the text of the file: the value of a
// variable can never add a field or a document.
func substitute(text string, env Env) (string, []problem) {
	var out strings.Builder
	var problems []problem
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			return out.String(), problems
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			out.WriteString(escaped + "${")
			text = rest
			continue
		}
		out.WriteString(before)
		inner, after, closed := strings.Cut(rest, "}")
		value, p := variable(inner, closed, env)
		if out.Len()+len(value) > MaxFileSize {
			p, after = problem{"", fmt.Sprintf("exceeds %d MiB with its variables substituted", MaxFileSize>>20), ""}, ""
		}
		if p.message != "" && len(problems) < MaxErrors && !slices.Contains(problems, p) {
			problems = append(problems, p)
		}
		out.WriteString(value)
		text = after
	}
}

// variable returns the value of the variable between ${ and }, or a problem.
func variable(inner string, closed bool, env Env) (string, problem) {
	name, fallback, hasDefault := strings.Cut(inner, ":")
	line, _, _ := strings.Cut(inner, "\n")
	text := "${" + line
	switch {
	case !closed:
		return "", problem{text, "${ has no closing }", "write $${ for the text ${"}
	case !isVariable(name):
		return "", problem{text, QuoteText(name) + " is not a valid variable name", "write $${ for the text ${"}
	case strings.Contains(fallback, "${"):
		return "", problem{text, "the default of " + name + " contains a variable; variables do not nest", ""}
	}
	if value, ok := env(name); ok {
		return value, problem{}
	}
	if !hasDefault {
		return "", problem{text, "variable " + ClipText(name) + " is not set", "set it, or write ${" + ClipText(name) + ":default}"}
	}
	return fallback, problem{}
}

// isVariable reports whether name is a valid name of a variable: ASCII letters,
// digits and underscores.
func isVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return name != ""
}
