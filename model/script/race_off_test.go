//go:build !race

package script_test

// cases is how many random brains are tried; the race detector makes the
// engine thirty times slower.
const cases = 50
