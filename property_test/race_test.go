//go:build race

package property_test

// defaultSequences is the default of the flag -closure. With the race detector
// each sequence takes about ten times as long.
const defaultSequences = 300
