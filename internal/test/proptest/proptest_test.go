package proptest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/proptest"
)

var flags = proptest.NewFlags(50)

func TestChoices_AreConsumedInOrder(t *testing.T) {
	list := proptest.Choices{7, 3, 2, 1}
	got := []any{list.Pick(5), list.OneIn(4), list.OneIn(4), proptest.PickFrom(&list, "a", "b"), list.IsEmpty()}
	if !slices.Equal(got, []any{2, true, false, "b", true}) {
		t.Errorf("got %v", got)
	}
	if got := []any{list.Pick(5), list.OneIn(4), proptest.PickFrom(&list, "a", "b")}; !slices.Equal(got, []any{0, false, "a"}) {
		t.Errorf("an empty list: got %v", got)
	}
}

func TestCheckProperty_FollowsCaseSize(t *testing.T) {
	for name, c := range map[string]struct {
		scale              proptest.CaseSize
		times, least, most int
	}{
		"a quarter": {proptest.CaseSize{MaxChoices: 40}, flags.Cases, 10, 39},
		"least":     {proptest.CaseSize{MaxChoices: 40, MinChoices: 20, CaseFactor: 2}, 2 * flags.Cases, 20, 39},
		"exactly":   {proptest.CaseSize{MaxChoices: 40, ExactCases: 3}, 3, 40, 40},
	} {
		times := 0
		flags.CheckProperty(t, c.scale, func(list *proptest.Choices) error {
			if times++; len(*list) < c.least || len(*list) > c.most {
				t.Errorf("%s: %d choices", name, len(*list))
			}
			return nil
		})
		if times != c.times {
			t.Errorf("%s: %d cases, want %d", name, times, c.times)
		}
	}
}

// A failing case is shrunk, and the output contains the command that repeats it.
func TestCheckProperty_ShrinksAndPrintsSeed(t *testing.T) {
	if os.Getenv("PROPTEST_FAILS") != "" {
		flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 40}, func(list *proptest.Choices) error {
			if slices.Max(append(*list, 0)) >= 100 {
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

// A property that says what its case did fails with these words, of the shrunk case.
func TestCheckProperty_PrintsSteps(t *testing.T) {
	if os.Getenv("PROPTEST_FAILS") != "" {
		flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 40}, func(list *proptest.Choices) error {
			if largest := slices.Max(append(*list, 0)); largest >= 100 {
				return &proptest.CaseError{Steps: []string{"open the door", fmt.Sprint("carry in ", largest)}, Err: errors.New("the floor broke")}
			}
			return nil
		})
		return
	}
	again := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-seed", "42")
	again.Env = append(os.Environ(), "PROPTEST_FAILS=1")
	out, err := again.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the floor broke") || !strings.Contains(string(out), "the case: \n") ||
		!strings.Contains(string(out), "  open the door\n") || !strings.Contains(string(out), "  carry in 100\n") {
		t.Errorf("got %v:\n%s", err, out)
	}
}
