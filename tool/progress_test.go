package tool_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/tool"
)

func TestMonotonic_NeverDecreases(t *testing.T) {
	var got []float64
	report := tool.MonotonicProgress(func(p tool.Progress) { got = append(got, p.Done) })
	for _, done := range []float64{math.Inf(-1), math.NaN(), -2, 0, 0, 1, 0.5, math.NaN(), math.Inf(1), 1.5, 1.5, 2} {
		report(tool.Progress{Done: done})
	}
	if want := []float64{-2, 0, 1, 1.5, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
