//go:build !race

package script_test

// cases is the number of random scripts. The race detector makes the engine 30 times slower.
const cases = 50
