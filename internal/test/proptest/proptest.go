// Package proptest owns how tests play random cases of a property. A case is a
// tape of random choices: what happens in it depends on the tape alone, so gopter
// makes a failing case small by cutting the tape.
//
//	var flags = proptest.NewFlags(1000)
//
//	func TestProperty(t *testing.T) {
//		flags.Check(t, proptest.Size{Choices: 200}, func(tape *proptest.Choices) error { … })
//	}
//
// A failure prints the seed; the same cases come again with -seed, more with -cases.
package proptest

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

// Flags are those of a test's package.
type Flags struct {
	Cases int // of each property
	seed  int64
}

// NewFlags adds -seed and -cases, with so many cases unless told, to the flags of
// the program; a package calls it once, for a variable of its own.
func NewFlags(cases int) *Flags {
	f := &Flags{}
	flag.Int64Var(&f.seed, "seed", 0, "seed of all properties; 0 takes the clock")
	flag.IntVar(&f.Cases, "cases", cases, "cases of each property")
	return f
}

// Seed is the one asked for, or a new one.
func (f *Flags) Seed() int64 {
	if f.seed != 0 {
		return f.seed
	}
	return time.Now().UnixNano()
}

// Size says how many choices a case has and how often it is played.
type Size struct {
	Choices int   // in the longest case
	Least   int   // in the shortest; 0 is a quarter of the longest
	Times   int   // as many cases as Flags.Cases, times this; 0 is 1
	Exactly int   // so many cases, each with all choices, whatever Flags.Cases says
	Part    int64 // of a property that is split: its cases are others
}

// parameters are gopter's.
func (s Size) parameters(seed int64, cases int) *gopter.TestParameters {
	p := gopter.DefaultTestParametersWithSeed(seed + s.Part)
	p.MinSuccessfulTests = cases * max(1, s.Times)
	p.MinSize, p.MaxSize = s.Least, s.Choices
	if s.Least == 0 {
		p.MinSize = s.Choices / 4
	}
	if s.Exactly > 0 {
		p.MinSuccessfulTests, p.MinSize = s.Exactly, s.Choices
	}
	p.MaxShrinkCount = 2000
	return p
}

// patience is how long a failing case is made smaller.
const patience = 15 * time.Second

// Check plays cases of a property, which gives what is wrong or nil. The test
// ends with the first case that fails, made smaller.
func (f *Flags) Check(t *testing.T, s Size, property func(*Choices) error) {
	t.Helper()
	seed := f.Seed()
	t.Logf("seed %d", seed)
	var failed time.Time
	result := prop.ForAll(func(choices []uint8) string {
		if !failed.IsZero() && time.Since(failed) > patience {
			return "" // no smaller one is looked for
		}
		tape := Choices(choices)
		err := property(&tape)
		if err == nil {
			return ""
		}
		if failed.IsZero() {
			failed = time.Now()
		}
		return err.Error()
	}, gen.SliceOf(gen.UInt8())).Check(s.parameters(seed, f.Cases))
	if !result.Passed() {
		dir, _ := os.Getwd() // without, the command is run where the package is
		t.Fatalf("%s after %d cases: %v %v\nthe case: %s\nagain: go test -C %q -run '^%s$' -seed %d",
			result.Status, result.Succeeded, result.Labels, result.Error, smallest(result), dir, t.Name(), seed)
	}
}

func smallest(r *gopter.TestResult) string {
	if len(r.Args) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (%d shrinks)", r.Args[0].ArgFormatted, r.Args[0].Shrinks)
}
