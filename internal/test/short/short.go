// Package short makes tests cheaper under go test -short, which make test runs, and under
// the race detector: it samples long lists. Only tests import it.
//
//	for _, text := range short.SampleList(t, 40, corpus.NaughtyStrings()) { … }
//
// The test logs the seed of a sample. ROLECALL_TEST_SEED repeats it. The race detector
// learns nothing from the rest of a list, whose members run the same code. make check
// also runs the tests that use this package without it, with the complete lists: package
// sampled finds them. A test
// that races with many rounds asks testing.Short for their number.
package short

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// sampled reports whether a test uses parts of its lists.
func sampled() bool { return testing.Short() || RaceDetector }

// SampleList returns list, or a sample of n members, in the order of list.
func SampleList[T any](t testing.TB, n int, list []T) []T {
	t.Helper()
	if !sampled() || len(list) <= n {
		return list
	}
	var some []T
	random := rand.New(rand.NewPCG(seed(t), 0))
	for i, member := range list {
		// Each remaining place goes to each remaining member with equal chance.
		if random.IntN(len(list)-i) < n-len(some) {
			some = append(some, member)
		}
	}
	return some
}

// SampleRange returns the numbers from first to last, or a sample of n.
func SampleRange(t testing.TB, n, first, last int) []int {
	t.Helper()
	var list []int
	for i := first; i <= last; i++ {
		list = append(list, i)
	}
	return SampleList(t, n, list)
}

// Count returns full, or few where lists are sampled.
func Count(few, full int) int {
	if sampled() {
		return few
	}
	return full
}

// SkipSequential skips a test that runs one step after another under the race detector,
// which learns nothing from it.
func SkipSequential(t testing.TB) {
	t.Helper()
	if RaceDetector {
		t.Skip("the race detector is compiled in; make check runs this test without it")
	}
}

// seed returns the seed of a sample: from the environment, or the current time.
func seed(t testing.TB) uint64 {
	t.Helper()
	number := uint64(time.Now().UnixNano())
	if text := os.Getenv("ROLECALL_TEST_SEED"); text != "" {
		var err error
		if number, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("read ROLECALL_TEST_SEED: %v", err)
		}
	}
	t.Logf("sample: ROLECALL_TEST_SEED=%d repeats it", number)
	return number
}
