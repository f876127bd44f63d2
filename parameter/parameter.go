// Package parameter owns the parameters of declared tools: what may be
// configured of them, which values a call may give, and what becomes of a
// value in a statement.
//
// Compile checks the parameters of one tool at load. The Set it gives says
// what a model sees of them (Schema), what a client does (ClientSchema,
// Manifest), and reads the arguments of a call (Given) into Values, which are
// bound to a statement (Bind) or put into its text (Template).
//
// The package reads no file, knows no database and verifies no token: literals
// come with their source text, claims from who verified them.
package parameter

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
	SingleQuotes   = "single-quotes"
	DoubleQuotes   = "double-quotes"
	Backticks      = "backticks"
	SquareBrackets = "square-brackets"
)

// Spec is one parameter as it is configured, nothing of it checked.
type Spec struct {
	At          string // the field it stands in, as in "queryParams[0]"; "" for its place in the list
	Name        string
	Type        string
	Description string
	Required    *bool    // nil is true; a Default makes it false
	Default     *Literal // nil, or null, for none

	// Which values are taken. Empty lists say nothing.
	//
	// Entries are values of the type. For strings, one of Allowed is an
	// expression of RE2 that matches the whole value if it is written /so/ or
	// ^so$, else the value itself; one of Excluded is an expression that
	// refuses a value in which it matches anywhere.
	Allowed, Excluded []Literal
	Min, Max          *Literal // of integer and float; both are taken themselves

	Escape    string // of string: how the value is quoted after the checks; "" leaves it
	Items     *Spec  // of array: what its elements are
	ValueType string // of map: one type for all values; "" takes any value

	// Where the value comes from, if not from the call's arguments: at most
	// one of the three.
	From   string  // the parameter whose value it copies
	Auth   []Claim // the first verified service with the claim gives it
	Secure bool    // the call's secure arguments, which no model sees or writes

	EmbeddedBy string // refused: there are no embedding models
}

// Claim names one claim of the tokens of one service.
type Claim struct{ Service, Field string }

// Options are what Compile has to know of where the parameters stand.
type Options struct {
	Services []string // those that Claims may name

	// Backslash says that the database reads a backslash in a quoted text as
	// an escape, as MySQL does, so that Escape doubles it in single and double
	// quotes.
	Backslash bool

	// UnsupportedEscapes are the styles of Escape that the database does not know: they
	// would quote nothing in its statements, and are refused for those of the
	// template.
	UnsupportedEscapes []string
}

// Problem is one thing that is wrong with parameters as configured.
type Problem struct {
	Field   string // as in "parameters[2].items.default"
	Message string
	Hint    string // what to do, if that is not plain
}

// Error implements error.
func (p Problem) Error() string {
	text := p.Field + ": " + p.Message
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	return text
}
