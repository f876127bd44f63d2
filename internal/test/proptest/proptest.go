// Package proptest checks properties with random cases. A case is a list of random
// choices that alone determine what happens in it, so gopter can shrink a failing case
// by shrinking the list.
//
//	var flags = proptest.NewFlags(1000)
//
//	func TestProperty(t *testing.T) {
//		flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 200}, func(choices *proptest.Choices) error { … })
//	}
//
// A failing test prints the seed. -seed repeats the same cases, -cases sets their
// number. Under the race detector it is a fifth: cases run one after the other.
package proptest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"github.com/rolecall/rolecall/internal/test/short"
)

// Flags are the flags of a test package.
type Flags struct {
	Cases int // number of cases of each property
	seed  int64
	again string // how to run the same cases again: the format of a command, for folder, test and seed
}

// again is the command that repeats a failure with the flags of NewFlags.
const again = "go test -C %q -run '^%s$' -seed %d"

// NewFlags adds the flags -seed and -cases; cases, or a fifth of it under the race
// detector, is the default of the latter. A package calls it once, in a package variable.
func NewFlags(cases int) *Flags {
	if short.RaceDetector {
		cases /= 5
	}
	f := &Flags{again: again}
	flag.Int64Var(&f.seed, "seed", 0, "seed of all properties; 0 uses the clock")
	flag.IntVar(&f.Cases, "cases", cases, "number of cases of each property")
	return f
}

// WithoutFlags returns flags for a package that tests of other modules import: it defines no
// flags of the test binary. The environment variable ROLECALL_TEST_SEED is the seed.
func WithoutFlags(cases int) *Flags {
	seed, _ := strconv.ParseInt(os.Getenv("ROLECALL_TEST_SEED"), 10, 64) // 0 is a new seed
	return &Flags{Cases: cases, seed: seed, again: "ROLECALL_TEST_SEED=%[3]d go test -C %[1]q -run '^%[2]s$'"}
}

// Seed returns the seed of the flag, or a new one.
func (f *Flags) Seed() int64 {
	if f.seed != 0 {
		return f.seed
	}
	return time.Now().UnixNano()
}

// CaseSize is the number of cases of a property and of their choices.
type CaseSize struct {
	MaxChoices int   // of the longest case
	MinChoices int   // of the shortest case; 0 is a quarter of MaxChoices
	CaseFactor int   // multiplies Flags.Cases; 0 is 1
	ShortCases int   // if set, the largest number of cases with -short, unless -cases sets it
	ExactCases int   // if set, the number of cases, each with MaxChoices
	SeedOffset int64 // added to the seed, so that the parts of a split property differ
}

// parameters returns gopter's parameters.
func (s CaseSize) parameters(seed int64, cases int) *gopter.TestParameters {
	p := gopter.DefaultTestParametersWithSeed(seed + s.SeedOffset)
	p.MinSuccessfulTests = cases * max(1, s.CaseFactor)
	if s.ShortCases > 0 && testing.Short() && !isFlagSet("cases") {
		p.MinSuccessfulTests = min(p.MinSuccessfulTests, s.ShortCases)
	}
	p.MinSize, p.MaxSize = s.MinChoices, s.MaxChoices
	if s.MinChoices == 0 {
		p.MinSize = s.MaxChoices / 4
	}
	if s.ExactCases > 0 {
		p.MinSuccessfulTests, p.MinSize = s.ExactCases, s.MaxChoices
	}
	p.MaxShrinkCount = 2000
	return p
}

// isFlagSet reports whether the command line sets a flag.
func isFlagSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// CaseError is the error of a property that says what its case did. It is printed with Steps in
// place of the choices.
type CaseError struct {
	Steps []string // in order
	Err   error
}

// Error implements error.
func (e *CaseError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *CaseError) Unwrap() error { return e.Err }

// shrinkTimeout is how long a failing case is shrunk.
const shrinkTimeout = 15 * time.Second

// CheckProperty runs a property with random cases. The property returns an error if it
// does not hold. The test stops at the first failing case, shrunk.
func (f *Flags) CheckProperty(t *testing.T, s CaseSize, property func(*Choices) error) {
	t.Helper()
	seed := f.Seed()
	t.Logf("seed %d", seed)
	var failed time.Time
	var last error // of the shrunk case: gopter goes on with each case that fails
	result := prop.ForAll(func(choices []uint8) string {
		if !failed.IsZero() && time.Since(failed) > shrinkTimeout {
			return "" // stop shrinking
		}
		list := Choices(choices)
		err := property(&list)
		if err == nil {
			return ""
		}
		if failed.IsZero() {
			failed = time.Now()
			t.Logf("the first failure: %v", err)
		}
		last = err
		return err.Error()
	}, gen.SliceOf(gen.UInt8())).Check(s.parameters(seed, f.Cases))
	if !result.Passed() {
		dir, _ := os.Getwd() // on an error the command works in the package's folder
		t.Fatalf("%s after %d cases: %v\nthe case: %s\nagain: %s",
			result.Status, result.Succeeded, cmp.Or(result.Error, last), formatCase(result, last), fmt.Sprintf(f.again, dir, t.Name(), seed))
	}
}

// formatCase formats the shrunk case: the steps of its error, else its choices.
func formatCase(r *gopter.TestResult, err error) string {
	if e, ok := errors.AsType[*CaseError](err); ok && len(e.Steps) > 0 {
		return "\n  " + strings.Join(e.Steps, "\n  ")
	}
	if len(r.Args) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (%d shrinks)", r.Args[0].ArgFormatted, r.Args[0].Shrinks)
}
