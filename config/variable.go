package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// expansion is the outcome, with false for one that was refused.
type expansion struct {
	text string
	ok   bool
}

// substituted gives the scalar's text with variables substituted. What is wrong
// with a scalar is reported once, however many aliases lead to it.
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

func (v value) hasVariable() bool {
	return v.node.Kind == yaml.ScalarNode && strings.Contains(v.node.Value, "${")
}

// locateText points v at a part of its text, so that the error names the line of a
// long prompt. A part written with escapes is not found: then v stays.
func (v value) locateText(part string) value {
	if pos, ok := v.doc.src.findFrom(Pos{v.pos.File, v.node.Line, v.node.Column}, part); ok {
		v.pos = pos
	}
	return v
}

// problem is something wrong with a variable in a text.
type problem struct{ text, message, hint string }

// substitute replaces ${NAME} and ${NAME:default} in text by the variable's
// value, also an empty one, or the default, which ends at the first }. A value
// is not looked into again. $${ stands for ${; every other $ for itself.
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
			p, after = problem{"", fmt.Sprintf("grows past %d MiB by its variables", maxFile>>20), ""}, ""
		}
		if p.message != "" && len(problems) < maxErrors && !slices.Contains(problems, p) {
			problems = append(problems, p)
		}
		out.WriteString(value)
		text = after
	}
}

// variable gives the value of what stands between ${ and }.
func variable(inner string, closed bool, env Env) (string, problem) {
	name, fallback, hasDefault := strings.Cut(inner, ":")
	line, _, _ := strings.Cut(inner, "\n")
	text := "${" + line
	switch {
	case !closed:
		return "", problem{text, "${ has no }", "write $${ for the text ${"}
	case !isVariable(name):
		return "", problem{text, quote(name) + " is no name of a variable", "write $${ for the text ${"}
	case strings.Contains(fallback, "${"):
		return "", problem{text, "the default of " + name + " holds a variable; they do not nest", ""}
	}
	if value, ok := env(name); ok {
		return value, problem{}
	}
	if !hasDefault {
		return "", problem{text, "variable " + clip(name) + " is not set", "set it, or write ${" + clip(name) + ":default}"}
	}
	return fallback, problem{}
}

func isVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return name != ""
}
