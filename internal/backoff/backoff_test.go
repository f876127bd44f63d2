package backoff_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/backoff"
)

func Example() {
	var pause backoff.Backoff
	fmt.Println(pause.Next(), pause.Next(), pause.Next())
	pause = 0 // it worked
	fmt.Println(pause.Next())
	// Output:
	// 1s 2s 4s
	// 1s
}

func TestPausesGrowFromASecondToAMinute(t *testing.T) {
	var pause backoff.Backoff
	var got []int
	for range 100 {
		got = append(got, int(pause.Next()/time.Second))
	}
	want := append([]int{1, 2, 4, 8, 16, 32}, slices.Repeat([]int{60}, 94)...)
	if !slices.Equal(got, want) {
		t.Errorf("got %v seconds, want %v", got, want)
	}
}
