package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// expansion is the cached result of substituting the variables of a scalar.
type expansion struct {
	text string
	ok   bool
}

// substituted returns the text of a scalar with variables substituted. It reports
// the errors of a scalar once, even if many aliases refer to it.
func (v value) substituted() (string, bool) {
	if !v.hasVariable() {
		return v.node.Value, true
	}
	e, known := v.doc.expansions[v.node]
	if !known {
		text, problems := substitute(v.node.Value, v.doc.env)
		for _, p := range problems {
			v.locateText(p.text).fail(p.message, p.hint)
		}
		e = expansion{text, len(problems) == 0}
		v.doc.expansions[v.node] = e
	}
	return e.text, e.ok
}

// hasVariable reports whether v is a scalar with a variable in it.
func (v value) hasVariable() bool {
	return v.node.Kind == yaml.ScalarNode && strings.Contains(v.node.Value, "${")
}

// locateText returns v with the position of part in its text, so that an error in a
// long prompt has the right line. It returns v itself if part is not found, as
// when it is written with escapes.
func (v value) locateText(part string) value {
	if pos, ok := v.doc.src.findFrom(Pos{v.pos.File, v.node.Line, v.node.Column}, part); ok {
		v.pos = pos
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
		if out.Len()+len(value) > maxFile {
			p, after = problem{"", fmt.Sprintf("exceeds %d MiB with its variables substituted", maxFile>>20), ""}, ""
		}
		if p.message != "" && len(problems) < maxErrors && !slices.Contains(problems, p) {
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
		return "", problem{text, quote(name) + " is not a valid variable name", "write $${ for the text ${"}
	case strings.Contains(fallback, "${"):
		return "", problem{text, "the default of " + name + " contains a variable; variables do not nest", ""}
	}
	if value, ok := env(name); ok {
		return value, problem{}
	}
	if !hasDefault {
		return "", problem{text, "variable " + clip(name) + " is not set", "set it, or write ${" + clip(name) + ":default}"}
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
