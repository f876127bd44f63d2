package workspace

import (
	"strings"
	"testing"
)

// Matching time is bounded also for patterns that make backtracking slow.
func TestGlob_MatchesInBoundedTime(t *testing.T) {
	g, err := ParseGlob(strings.Repeat("**/*a*a*a*a*b/", 30) + "c")
	if err != nil {
		t.Fatal(err)
	}
	if g.matches(strings.Repeat(strings.Repeat("a", 200)+"/", 99) + "c") {
		t.Error("got a match")
	}
	if !g.matches(strings.Repeat("x/aaaab/", 30) + "c") {
		t.Error("got no match")
	}
}
