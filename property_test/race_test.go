//go:build race

package property_test

// defaultSequences is what a run under the race detector plays, where each
// takes about ten times as long; all of them are played without.
const defaultSequences = 300
