package proptest_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/proptest"
)

var flags = proptest.NewFlags(50)

func TestATapeIsReadToItsEnd(t *testing.T) {
	tape := proptest.Choices{7, 3, 2, 1}
	got := []any{tape.Pick(5), tape.Chance(4), tape.Chance(4), proptest.OneOf(&tape, "a", "b"), tape.Done()}
	if !slices.Equal(got, []any{2, true, false, "b", true}) {
		t.Errorf("got %v", got)
	}
	if got := []any{tape.Pick(5), tape.Chance(4), proptest.OneOf(&tape, "a", "b")}; !slices.Equal(got, []any{0, false, "a"}) {
		t.Errorf("an empty tape: got %v", got)
	}
}

func TestCasesAreAsManyAndAsLongAsTheScaleSays(t *testing.T) {
	for name, c := range map[string]struct {
		scale              proptest.Size
		times, least, most int
	}{
		"a quarter": {proptest.Size{Choices: 40}, flags.Cases, 10, 39},
		"least":     {proptest.Size{Choices: 40, Least: 20, Times: 2}, 2 * flags.Cases, 20, 39},
		"exactly":   {proptest.Size{Choices: 40, Exactly: 3}, 3, 40, 40},
	} {
		times := 0
		flags.Check(t, c.scale, func(tape *proptest.Choices) error {
			if times++; len(*tape) < c.least || len(*tape) > c.most {
				t.Errorf("%s: %d choices", name, len(*tape))
			}
			return nil
		})
		if times != c.times {
			t.Errorf("%s: %d cases, want %d", name, times, c.times)
		}
	}
}

// A case that fails is made small, and is printed with what plays it again.
func TestAFailureSaysHowToSeeItAgain(t *testing.T) {
	if os.Getenv("PROPTEST_FAILS") != "" {
		flags.Check(t, proptest.Size{Choices: 40}, func(tape *proptest.Choices) error {
			if slices.Max(append(*tape, 0)) >= 100 {
				return errors.New("a choice of a hundred")
			}
			return nil
		})
		return
	}
	again := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-seed", "42")
	again.Env = append(os.Environ(), "PROPTEST_FAILS=1")
	out, err := again.CombinedOutput()
	for _, want := range []string{"a choice of a hundred", "the case: [100]", "-run '^" + t.Name() + "$' -seed 42"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("want %q, got %v:\n%s", want, err, out)
		}
	}
}
