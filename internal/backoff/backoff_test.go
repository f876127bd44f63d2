package backoff_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/backoff"
)

func Example() {
	var delays backoff.Backoff
	fmt.Println(delays.Next(), delays.Next(), delays.Next())
	delays.Reset() // an attempt succeeded
	fmt.Println(delays.Next())
	// Output:
	// 1s 2s 4s
	// 1s
}

func TestBackoff_DoublesFromOneSecondToOneMinute(t *testing.T) {
	var delays backoff.Backoff
	var got []int
	for range 100 {
		got = append(got, int(delays.Next()/time.Second))
	}
	want := append([]int{1, 2, 4, 8, 16, 32}, slices.Repeat([]int{60}, 94)...)
	if !slices.Equal(got, want) {
		t.Errorf("got %v seconds, want %v", got, want)
	}
}

func TestBackoff_UsesInitialAndMax(t *testing.T) {
	for _, c := range []struct {
		name    string
		delays  backoff.Backoff
		want    []time.Duration
		forever time.Duration // each delay after the first 100
	}{
		{"initial and max", backoff.Backoff{Initial: 3, Max: 10}, []time.Duration{3, 6, 10, 10}, 10},
		{"max is a power of two times initial", backoff.Backoff{Initial: 3, Max: 12}, []time.Duration{3, 6, 12, 12}, 12},
		{"initial above max", backoff.Backoff{Initial: 20, Max: 10}, []time.Duration{10, 10}, 10},
		{"max is the longest duration", backoff.Backoff{Initial: 1, Max: math.MaxInt64}, []time.Duration{1, 2, 4, 8}, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, want := range c.want {
				if got := c.delays.Next(); got != want {
					t.Errorf("delay %d: got %d, want %d", i+1, got, want)
				}
			}
			for range 100 {
				c.delays.Next()
			}
			if got := c.delays.Next(); got != c.forever {
				t.Errorf("after 100 delays: got %d, want %d", got, c.forever)
			}
		})
	}
}

func TestBackoff_JitterIsBetweenHalfAndAll(t *testing.T) {
	var firsts []time.Duration
	for range 50 {
		delays := backoff.Backoff{Max: 5 * time.Second, Jitter: true}
		for i, longest := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
			got := delays.Next()
			if got < longest/2 || got > longest {
				t.Errorf("delay %d: got %v, want %v to %v", i+1, got, longest/2, longest)
			}
			if i == 0 {
				firsts = append(firsts, got)
			}
		}
	}
	if slices.Min(firsts) == slices.Max(firsts) {
		t.Errorf("all first delays are %v: there is no jitter", firsts[0])
	}
}
