// Package parameter checks the parameters of declared tools: their configuration,
// the arguments of each call, and how a value enters a statement or a request.
//
//	set, problems := parameter.CompileSet(parameter.Options{}, ordinary, template)
//	statement, err := set.StatementTemplate("SELECT * FROM {{.table}} WHERE airline = $1")
//	values, err := set.ParseArguments(arguments, claims, nil)
//	text, err := statement.RenderText(values)
//	rows, err := db.Query(text, values.BindValues()...)
//
// CompileSet checks the parameters of one tool when a configuration is loaded. Its
// Set describes them to models (Schema) and to clients (ClientSchema, Manifest),
// and parses the arguments of a call into Values. These are bound to placeholders
// (BindValues), or escaped and printed into a text (Template).
//
// The package does not read files, connect to databases or verify tokens. Literals
// come with their source text, and claims from the caller that verified them.
package parameter

import "slices"

// maxQuote is how many bytes of external text an error message quotes.
const maxQuote = 80

// The types of parameters.
const (
	TypeString  = "string"
	TypeInteger = "integer" // int64
	TypeFloat   = "float"   // float64, finite
	TypeBoolean = "boolean"
	TypeArray   = "array"
	TypeMap     = "map"
)

// The styles of Spec.Escape.
const (
	EscapeSingleQuotes   = "single-quotes"
	EscapeDoubleQuotes   = "double-quotes"
	EscapeBackticks      = "backticks"
	EscapeSquareBrackets = "square-brackets"
)

// EscapeStyles returns all styles of Spec.Escape.
func EscapeStyles() []string {
	return []string{EscapeSingleQuotes, EscapeDoubleQuotes, EscapeBackticks, EscapeSquareBrackets}
}

// Spec is the configuration of one parameter. CompileSet checks it.
type Spec struct {
	At          string // the field of the document, as in "queryParams[0]"; "" is its index in the list
	Name        string
	Type        string
	Description string
	Required    *bool    // nil is true; a Default makes it false
	Default     *Literal // nil, or null, for none

	// Allowed and Excluded restrict the values. An empty list does not.
	//
	// Entries are values of the type. For a string, an entry of Allowed may be
	// written /re/ or ^re$. It is then an RE2 expression that has to match the
	// whole value. Any other entry is the value itself. An entry of Excluded is an
	// expression that excludes each value it matches anywhere.
	Allowed, Excluded []Literal
	Min, Max          *Literal // of integer and float; inclusive

	Escape    string // of string: how the value is quoted after the checks; "" leaves it unquoted
	Items     *Spec  // of array: its elements
	ValueType string // of map: the type of all values; "" accepts any value

	// The source of the value, if it is not the call's arguments: at most one of
	// the three.
	From   string  // copies the value of the parameter of this name
	Auth   []Claim // takes the claim from the first verified service that has it
	Secure bool    // takes it from the call's secure arguments, which models neither see nor write

	EmbeddedBy string // rejected: embedding models are not supported
}

// IsAmbiguous reports whether an entry of Allowed, here or in the elements, could be a literal or
// an expression, so that Options.AnchorAllowed decides about it.
func (s *Spec) IsAmbiguous() bool {
	if s == nil {
		return false
	}
	could := func(l Literal) bool { return s.Type == TypeString && isAmbiguous(l.Text) }
	return slices.ContainsFunc(s.Allowed, could) || s.Items.IsAmbiguous()
}

// Claim names a claim in the tokens of an auth service.
type Claim struct{ Service, Field string }

// Options describe where the parameters of CompileSet are used.
type Options struct {
	Services []string // the auth services that Claims may name

	// Backslash is set if the database treats a backslash within quotes as an
	// escape, as MySQL does. Escape then doubles it in single and double quotes.
	Backslash bool

	// AnchorAllowed is set for files of Toolbox, where every entry of Allowed is an expression. An
	// entry of a string's Allowed that could be a literal or an expression is then an expression
	// that has to match the whole value. Without it CompileSet rejects such an entry. Either way
	// no value is allowed that Toolbox does not allow.
	AnchorAllowed bool

	// UnsupportedEscapes are the styles of Escape that do not quote in the database.
	// CompileSet rejects them for template parameters.
	UnsupportedEscapes []string
}

// Problem is one error in the configuration of parameters.
type Problem struct {
	Field   string // as in "parameters[2].items.default"
	Message string
	Hint    string // how to fix it; "" if that is obvious
}

// Error implements error.
func (p Problem) Error() string {
	text := p.Field + ": " + p.Message
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	return text
}
