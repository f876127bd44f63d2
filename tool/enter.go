package tool

// Enterer is a Tool whose machinery may be replaced or taken away while it is
// registered. The gate enters it before a call is put on record, so that what
// is recorded as started finds it there.
type Enterer interface {
	// Enter keeps the machinery until Leave; false says that it has ended: the
	// tool of this name is another one now, or none. Safe for concurrent use.
	Enter() (Entered, bool)
}

// Entered is a Tool that was entered. Leave follows its calls, once.
type Entered interface {
	Tool
	Leave()
}
