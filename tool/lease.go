package tool

// Leaser is a Tool whose backend may be replaced or removed while it is registered. The gate
// takes a lease before it records a call, so a recorded call always has a live backend.
type Leaser interface {
	// AcquireLease keeps the backend alive until Release. It reports false if the backend has
	// been closed: the tool was replaced or removed. It is safe for concurrent use.
	AcquireLease() (Lease, bool)
}

// Lease is a Tool with a live backend. Release must be called once, after its calls.
type Lease interface {
	Tool
	Release()
}
