package tool

// Leaser is a Tool whose machinery may be replaced or taken away while it is
// registered. The gate enters it before a call is put on record, so that what
// is recorded as started finds it there.
type Leaser interface {
	// Lease keeps the machinery until Leave; false says that it has ended: the
	// tool of this name is another one now, or none. Safe for concurrent use.
	Lease() (Lease, bool)
}

// Lease is a Tool that was entered. Leave follows its calls, once.
type Lease interface {
	Tool
	Release()
}
