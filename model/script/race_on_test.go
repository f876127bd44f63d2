//go:build race

package script_test

// cases is the number of random scripts. The race detector makes the engine 30 times slower.
const cases = 4

// raceEnabled reports whether the race detector is compiled in. It needs several times the memory.
const raceEnabled = true
