package short_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/test/short"
)

func TestSampleRange_RepeatsWithSeed(t *testing.T) {
	t.Setenv("ROLECALL_TEST_SEED", "7")
	got, again := short.SampleRange(t, 5, 1, 100), short.SampleRange(t, 5, 1, 100)
	if want := short.Count(5, 100); len(got) != want || !slices.IsSorted(got) || !slices.Equal(got, again) {
		t.Errorf("got %v and %v, want %d sorted numbers twice", got, again, want)
	}
}

func TestSampleList_KeepsShortList(t *testing.T) {
	if got := short.SampleList(t, 3, []string{"a", "b", "c"}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v", got)
	}
}
