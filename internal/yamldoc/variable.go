package yamldoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/textutil"
)

// expansion is the cached result of substituting the variables of a scalar.
type expansion struct {
	text     string
	ok       bool
	fromFile bool // the text has the content of a file, which no error may show
}

// FileAllowed reads a field in which ${file:PATH} stands for the content of a file: a
// secret, or what connects to a server. All other fields reject it, because errors show
// their values.
func FileAllowed(read func(Value)) func(Value) {
	return func(v Value) {
		v.fileAllowed = true
		read(v)
	}
}

// substituted returns the text of a scalar with variables substituted. It reports
// the errors of a scalar once, even if many aliases refer to it.
func (v Value) substituted() (string, bool) {
	if !v.HasVariable() {
		return v.Node.Value, true
	}
	e, known := v.doc.expansions[v.Node]
	if !known {
		s := substitution{env: v.doc.reader.env, read: v.readFile}
		text, problems := s.expand(v.Node.Value)
		for _, p := range problems {
			v.locateText(p.text).AddError(p.message, p.hint)
		}
		e = expansion{text, len(problems) == 0, s.fromFile}
		v.doc.expansions[v.Node] = e
	}
	if e.ok && e.fromFile && !v.fileAllowed { // an alias of a secret
		p := fileRejected
		v.doc.reader.report(v.Pos, v.doc.src, v.Path, p.message, p.hint)
		return "", false
	}
	return e.text, e.ok
}

// fileRejected is the problem of a file in a field that accepts none.
var fileRejected = problem{message: "must not have the content of a file", hint: "${file:PATH} is for secrets and addresses, such as apiKey, password, headers, env and settings"}

// readFile returns the text of a file. A relative path is relative to the document.
func (v Value) readFile(path string) (string, problem) {
	path = v.FilePath(path)
	if !v.fileAllowed || v.doc.reader.ReadSecret == nil {
		return "", fileRejected
	}
	text, err := v.doc.reader.ReadSecret(path)
	if err != nil {
		return "", problem{message: "file " + quotePath(path) + ": " + err.Error(), hint: "a file is named relative to its document"}
	}
	return text, problem{}
}

// quotePath returns a path for a message.
func quotePath(path string) string { return strconv.Quote(textutil.TruncateWidth(path, maxPath)) }

// maxPath is the largest width of a path in a message.
const maxPath = 300

// HasVariable reports whether v is a scalar with a variable in it.
func (v Value) HasVariable() bool {
	return v.IsScalar() && strings.Contains(v.Node.Value, "${")
}

// HasVariable reports whether a text in a node has a variable, ${NAME}.
func HasVariable(n *yaml.Node) bool {
	return strings.Contains(n.Value, "${") || slices.ContainsFunc(n.Content, HasVariable)
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

// substitution replaces the variables of one scalar.
type substitution struct {
	env      Env
	read     func(path string) (string, problem)
	fromFile bool // set when the text has the content of a file
}

// expand replaces ${NAME}, ${NAME:default} and ${file:PATH} in text. It uses the value of
// the variable, even if it is empty, or else the default, which ends at the first }.
// Values are not expanded again. $${ is an escaped ${; any other $ is a dollar.
//
// Substitution works on parsed scalars, not on the text of the document: the value of a
// variable can never add a field or a document.
func (s *substitution) expand(text string) (string, []problem) {
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
		value, p := s.value(inner, closed)
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

// fileName is the name in ${file:PATH}, which is therefore not the name of a variable.
const fileName = "file"

// value returns the value of what stands between ${ and }, or a problem.
func (s *substitution) value(inner string, closed bool) (string, problem) {
	name, rest, hasColon := strings.Cut(inner, ":")
	line, _, _ := strings.Cut(inner, "\n")
	text := "${" + line
	switch {
	case !closed:
		return "", problem{text, "${ has no closing }", "write $${ for the text ${"}
	case name == fileName:
		value, p := s.file(rest)
		p.text = text
		return value, p
	case !isVariable(name):
		return "", problem{text, QuoteText(name) + " is not a valid variable name", "write $${ for the text ${"}
	case strings.Contains(rest, "${"):
		return "", problem{text, "the default of " + name + " contains a variable; variables do not nest", ""}
	}
	if value, ok := s.env(name); ok {
		return value, problem{}
	}
	if !hasColon {
		return "", problem{text, "variable " + ClipText(name) + " is not set", "set it, or write ${" + ClipText(name) + ":default}"}
	}
	return rest, problem{}
}

// file returns the content of the file at path, or a problem without its text.
func (s *substitution) file(path string) (string, problem) {
	switch {
	case path == "":
		return "", problem{message: "${file:PATH} has no path", hint: "write ${file:/run/secrets/NAME}; file is not the name of a variable"}
	case strings.Contains(path, "${"):
		return "", problem{message: "the path of a file contains a variable; variables do not nest"}
	}
	s.fromFile = true
	return s.read(path)
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
