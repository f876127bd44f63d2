//go:build !race

package e2e_test

// race reports whether the race detector is on, which needs additional memory.
const race = false
