//go:build !race

package property_test

// defaultSequences is the default of the flag -closure.
const defaultSequences = 10_000
