//go:build !race

package property_test

// defaultSequences is what a run without the race detector plays.
const defaultSequences = 10_000
