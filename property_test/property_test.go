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
	"math/rand/v2"
	"time"

	"github.com/rolecall/rolecall/internal/test/proptest"
)

var flags = proptest.NewFlags(100)

// waitTimeout is the time limit for operations that are expected to complete.
const waitTimeout = 15 * time.Second

// someOf returns up to limit random elements of a list, with repetitions.
func someOf[T any](t *proptest.Choices, limit int, list []T) []T {
	some := make([]T, t.Pick(limit+1))
	for i := range some {
		some[i] = proptest.OneOf(t, list...)
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
