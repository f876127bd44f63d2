//go:build race

package jsworker_test

// raceEnabled reports whether the race detector is compiled in. It makes the engine 30 times slower.
const raceEnabled = true
