// Package property_test tests properties of the whole module: import layers,
// tool groups, permissions and calls. It contains no other code, and no package
// imports it.
//
// Each property runs random cases against a naive model made of maps and slices
// (naiveRegistry, oracle, invariants). A failure prints the seed. The same
// cases run again with
//
//	go test ./property_test -run TestProperty3 -seed 42 -cases 1000
package property_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/proptest"
)

// cases is how many cases each property has by default, without the race detector.
const cases = 100

var flags = proptest.NewFlags(cases)

// waitTimeout is the time limit for operations that are expected to complete.
const waitTimeout = 15 * time.Second

// someOf returns up to limit random elements of a list, with repetitions.
func someOf[T any](t *proptest.Choices, limit int, list []T) []T {
	some := make([]T, t.Pick(limit+1))
	for i := range some {
		some[i] = proptest.PickFrom(t, list...)
	}
	return some
}

// randomChoices returns the n-th sequence of choices for a seed, for cases that
// are not minimized.
func randomChoices(seed int64, n, choices int) proptest.Choices {
	t := make(proptest.Choices, choices)
	r := rand.NewChaCha8([32]byte(fmt.Appendf(nil, "%32d", seed*1_000_003+int64(n))[:32]))
	r.Read(t)
	return t
}

// situations counts how often the cases of a property reached a situation.
type situations map[string]int

// check logs the counts. It fails the test if one of want was never reached, since the
// property then proves nothing about it. Fewer cases than usual may miss one.
func (s situations) check(t *testing.T, want ...string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		t.Logf("%6d  %s", s[name], name)
	}
	for _, name := range want {
		if s[name] == 0 && flags.Cases >= cases {
			t.Errorf("no case reached the situation %q", name)
		}
	}
}
