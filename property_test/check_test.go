// Package property_test holds the properties of the whole: what stays true of
// floors, groups, rights and calls whatever happens. Nobody imports it.
//
// Each property plays random cases against a model that is a few maps and
// slices (registry, oracle). A case is a tape of random choices: what happens
// in it depends on the tape alone, so gopter makes a failing case small by
// cutting the tape. A failure prints the seed; the same cases come again with
//
//	go test ./property_test -run TestProperty3 -seed 42 -cases 1000
package property_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

var (
	seedFlag  = flag.Int64("seed", 0, "seed of all properties; 0 takes the clock")
	casesFlag = flag.Int("cases", 100, "cases of each property")
)

// tape is a list of random choices still to be made.
type tape []uint8

// pick chooses one of n, at most 256; an empty tape chooses the first.
func (t *tape) pick(n int) int {
	if len(*t) == 0 {
		return 0
	}
	choice := int((*t)[0]) % n
	*t = (*t)[1:]
	return choice
}

// chance is true once in n.
func (t *tape) chance(n int) bool { return t.pick(n) == n-1 }

func (t *tape) done() bool { return len(*t) == 0 }

// oneOf chooses an element of a list that is not empty.
func oneOf[T any](t *tape, list []T) T { return list[t.pick(len(list))] }

// someOf chooses up to most elements of a list, with repetitions.
func someOf[T any](t *tape, most int, list []T) []T {
	some := make([]T, t.pick(most+1))
	for i := range some {
		some[i] = oneOf(t, list)
	}
	return some
}

// scale says how many choices a case has and how often it is played.
type scale struct {
	choices int   // in the longest case
	times   int   // as many cases as -cases asks for, times this; 0 is 1
	exactly int   // so many cases, each with all choices, whatever -cases says
	part    int64 // of a property that is split: its cases are others
}

// patience is how long a failing case is made smaller.
const patience = 15 * time.Second

// check plays cases of a property, which gives what is wrong or nil.
func check(t *testing.T, s scale, property func(t *tape) error) {
	t.Helper()
	seed := theSeed()
	p := gopter.DefaultTestParametersWithSeed(seed + s.part)
	p.MinSuccessfulTests = *casesFlag * max(1, s.times)
	p.MinSize, p.MaxSize = s.choices/4, s.choices
	if s.exactly > 0 {
		p.MinSuccessfulTests, p.MinSize = s.exactly, s.choices
	}
	var failed time.Time
	result := prop.ForAll(func(choices []uint8) string {
		if !failed.IsZero() && time.Since(failed) > patience {
			return "" // no smaller one is looked for
		}
		tape := tape(choices)
		err := property(&tape)
		if err == nil {
			return ""
		}
		if failed.IsZero() {
			failed = time.Now()
		}
		return err.Error()
	}, gen.SliceOf(gen.UInt8())).Check(p)
	if !result.Passed() {
		t.Errorf("%s after %d cases: %v %v\nthe case: %s\nagain: go test ./property_test -run '^%s$' -seed %d",
			result.Status, result.Succeeded, result.Labels, result.Error, smallest(result), t.Name(), seed)
	}
}

// theSeed is the one asked for, or a new one.
func theSeed() int64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return time.Now().UnixNano()
}

// randomTape is the n-th tape of a seed, for cases that are not made smaller.
func randomTape(seed int64, n, choices int) tape {
	t := make(tape, choices)
	r := rand.NewChaCha8([32]byte(fmt.Appendf(nil, "%32d", seed*1_000_003+int64(n))[:32]))
	r.Read(t)
	return t
}

func smallest(r *gopter.TestResult) string {
	if len(r.Args) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (%d shrinks)", r.Args[0].ArgFormatted, r.Args[0].Shrinks)
}
