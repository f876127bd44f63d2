// Package property_test holds the properties of the whole: what stays true of
// floors, groups, rights and calls whatever happens. Nobody imports it.
//
// Each property plays random cases against a model that is a few maps and
// slices (registry, oracle). A failure prints the seed; the same cases come
// again with
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

// patience is how long what was asked for may take.
const patience = 15 * time.Second

// someOf chooses up to most elements of a list, with repetitions.
func someOf[T any](t *proptest.Choices, most int, list []T) []T {
	some := make([]T, t.Pick(most+1))
	for i := range some {
		some[i] = proptest.OneOf(t, list...)
	}
	return some
}

// randomTape is the n-th tape of a seed, for cases that are not made smaller.
func randomTape(seed int64, n, choices int) proptest.Choices {
	t := make(proptest.Choices, choices)
	r := rand.NewChaCha8([32]byte(fmt.Appendf(nil, "%32d", seed*1_000_003+int64(n))[:32]))
	r.Read(t)
	return t
}
