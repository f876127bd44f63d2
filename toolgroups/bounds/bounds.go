// Package bounds decides whether the arguments of a call are within what a role may pass to a
// tool.
//
// A [Rule] has a condition for each path of the arguments, such as
//
//	{"/to": {"any": [{"equal": "a@example.com"}, {"glob": "*@example.org"}]}, "/amount": {"max": 1000}}
//
// A path is a JSON pointer. The step "*" means every element of an array. A condition has one
// or more operators, which must all hold:
//
//	equal    a string, a number or a boolean
//	any      a list of conditions, of which one must hold
//	glob     a text with "*" for any characters but control and format characters, white space, ',', ';', '/' and '@'
//	matches  a regular expression (RE2) for the whole text
//	max, min a number
//	url      {"scheme", "host", "path"} of an http or https URL
//	under    a directory that has the path
//	input    the name of a value in the input of the task: the value itself, or an element of it
//
// Texts are compared byte by byte, and numbers exactly. A value that is missing, null or of
// another type is rejected. With "missing": "allow" a value may be missing or null.
//
//	rule, err := bounds.ParseRule([]byte(`{"/amount": {"max": 1000}}`))
//	check := rule.ForSchema(schema) // once for each tool
//	if v := check.CheckArguments(args, nil); v != nil {
//		return v // /amount: 2000 exceeds the bound {"max":1000}
//	}
//
// The package rejects everything that is not certainly allowed. Examples are the zero Rule, a
// record that cannot be read, and a value that takes too many steps to check. The package knows
// no roles.
package bounds

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/internal/textutil"
)

// Rule bounds the arguments of one tool. The zero Rule rejects all arguments. A Rule does not
// change and is safe for concurrent use.
type Rule struct {
	text  string // in its canonical form; of a rule that cannot be read, as it was stored
	paths []pathRule
	tree  pathTree // of paths
}

// pathRule is the condition of one path.
type pathRule struct {
	pointer      string
	steps        []string // the unescaped parts of pointer
	allowMissing bool
	condition
}

// condition is a list of operators that must all hold.
type condition struct {
	operators []operator
	text      string // in its canonical form
}

// Readable reports whether ParseRule could read the text of r. Otherwise r rejects all arguments.
func (r Rule) Readable() bool { return len(r.paths) > 0 }

// AllowsMissing reports whether the value of one of the paths may be missing or null.
func (r Rule) AllowsMissing() bool {
	return slices.ContainsFunc(r.paths, func(p pathRule) bool { return p.allowMissing })
}

// Equal reports whether two rules have the same text in canonical form.
func (r Rule) Equal(other Rule) bool { return r.text == other.text }

// String returns the rule as JSON, with sorted keys.
func (r Rule) String() string { return r.text }

// Paths returns the paths of r, sorted.
func (r Rule) Paths() []string {
	var list []string
	for _, p := range r.paths {
		list = append(list, p.pointer)
	}
	return list
}

// MarshalJSON implements json.Marshaler. A rule that cannot be read keeps its text.
func (r Rule) MarshalJSON() ([]byte, error) {
	if r.text == "" {
		return []byte("{}"), nil
	}
	return []byte(r.text), nil
}

// UnmarshalJSON implements json.Unmarshaler for stored rules. It never fails: a rule that
// cannot be read rejects all arguments. ParseRule returns the error.
func (r *Rule) UnmarshalJSON(data []byte) error {
	parsed, err := ParseRule(data)
	if err != nil {
		parsed = Rule{text: string(data)}
	}
	*r = parsed
	return nil
}

// Bind has the rules of a role by the names of tools: its field "bind". A nil Bind bounds nothing. A
// Bind must not be changed once it is in use.
type Bind map[string]Rule

// unreadable is the key of the rule for all tools, in a Bind that cannot be read. No tool has
// this name.
const unreadable = "*"

// RuleFor returns the rule for a tool. It reports false if the tool is not bounded.
func (b Bind) RuleFor(tool string) (Rule, bool) {
	if len(b) == 0 {
		return Rule{}, false
	}
	if r, ok := b[unreadable]; ok {
		return Rule{text: r.text}, true
	}
	r, ok := b[tool]
	return r, ok
}

// Equal reports whether two Binds have equal rules for the same tools.
func (b Bind) Equal(other Bind) bool { return maps.EqualFunc(b, other, Rule.Equal) }

// ToolNames returns the names of the tools that b bounds, sorted.
func (b Bind) ToolNames() []string {
	names := slices.Sorted(maps.Keys(b))
	return slices.DeleteFunc(names, func(name string) bool { return name == unreadable })
}

// UnmarshalJSON implements json.Unmarshaler for stored Binds. It never fails. A rule that
// cannot be read rejects all arguments of its tool. A Bind that is not an object rejects
// all arguments of every tool. ParseBind returns the error.
func (b *Bind) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*b = nil
		return nil
	}
	var rules map[string]Rule
	if err := json.Unmarshal(data, &rules); err != nil || data[0] != '{' || isNotStrictObject(data) {
		rules = map[string]Rule{unreadable: {text: string(data)}}
	}
	*b = rules
	return nil
}

// Violation says which bound rejects the arguments of a call. It is an error.
type Violation struct {
	Path     string // a JSON pointer, with "*" for every element; "" if the rule cannot be read
	Operator string // the first operator that does not hold; or missing, type, case (of a key) or size (work)
	Bound    string // the condition of the path, as JSON
	Problem  string // a sentence fragment without the value of the argument
}

// Error returns the path, the problem and the bound.
func (v *Violation) Error() string {
	if v.Path == "" {
		return v.Problem
	}
	return v.Path + ": " + v.Problem + "; the bound is " + v.Bound
}

// maxShown is how much of a bound a Violation shows, in bytes.
const maxShown = 300

func shorten(text string) string { return textutil.Truncate(text, maxShown) }
