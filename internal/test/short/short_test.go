package short_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/test/short"
)

func TestSample_IsRepeatedByItsSeed(t *testing.T) {
	t.Setenv("ROLECALL_TEST_SEED", "7")
	got, again := short.Numbers(t, 5, 1, 100), short.Numbers(t, 5, 1, 100)
	if want := short.N(5, 100); len(got) != want || !slices.IsSorted(got) || !slices.Equal(got, again) {
		t.Errorf("got %v and %v, want %d sorted numbers twice", got, again, want)
	}
}

func TestSample_KeepsAShortList(t *testing.T) {
	if got := short.Sample(t, 3, []string{"a", "b", "c"}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v", got)
	}
}
