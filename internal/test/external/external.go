// Package external leaves tests that start programs of the machine, such as a database or a
// browser, to make check. Only tests import it. Unlike those that import package short, such
// tests run once in make check: they do the same with the race detector and without.
package external

import "testing"

// Skip skips the test with -short. The argument says what the test starts.
func Skip(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: this test starts " + what + "; make check runs it")
	}
}
