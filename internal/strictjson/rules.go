package strictjson

// KeyRules are the constraints on the values at one place of a document. Read calls them in the
// pass that parses the document, with each value after its text has been parsed.
//
// A Fits method reports true only for a value that certainly satisfies the constraints. It may
// report false for a value that takes much time or memory to check. Implementations must be
// safe for concurrent use, and must not change or keep the text they receive.
type KeyRules interface {
	// FitsLiteral reports whether "null", "true" or "false" satisfies the rules.
	FitsLiteral(word string) bool
	// FitsInteger reports whether a number without fraction and exponent satisfies
	// the rules. known is false if value is not the number, because it has more
	// than 18 digits.
	FitsInteger(value int64, known bool) bool
	// FitsNumber reports whether any other number satisfies the rules.
	FitsNumber(literal []byte) bool
	// FitsString reports whether a string satisfies the rules. quoted is the text
	// between the quotes, and escaped reports that it has escapes.
	FitsString(quoted []byte, escaped bool) bool
	// FitsArray reports whether an array of count elements satisfies the rules.
	FitsArray(count int) bool
	// FitsObject reports whether an object of count keys satisfies the rules. seen
	// has the known names among its keys, in the form of Shape.Places; names after
	// the first 64 are not in it.
	FitsObject(count int, seen uint64) bool

	// UniqueElements reports whether no two elements of an array may be equal.
	UniqueElements() bool
	// KnownNamesOnly reports whether an object may have no unknown names.
	KnownNamesOnly() bool
}
