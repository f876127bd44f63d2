package docset

// Kind is a kind of document, in one spelling. A kind without Read is not available in
// this version.
type Kind struct {
	Name     string
	Read     func(Item)
	Current  string // the kind that this is another spelling of; "" for the current spelling
	Hint     string // why a kind without Read is not available; "" lists those that are
	Nameless bool   // a document of the kind may have no name
}
