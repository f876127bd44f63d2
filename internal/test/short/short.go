// Package short makes tests cheaper under go test -short, which make test runs:
// long lists are sampled and tests of real servers, browsers and disks are left
// to make check. Only tests import it.
//
//	for _, text := range short.Sample(t, 40, corpus.NaughtyStrings()) { … }
//
// A sample is chosen by a seed that the test logs. ROLECALL_TEST_SEED repeats it.
package short

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Sample returns list, or with -short n members of it, in the order of list.
func Sample[T any](t testing.TB, n int, list []T) []T {
	t.Helper()
	if !testing.Short() || len(list) <= n {
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

// Numbers returns first to last, or with -short n numbers of them.
func Numbers(t testing.TB, n, first, last int) []int {
	t.Helper()
	var list []int
	for i := first; i <= last; i++ {
		list = append(list, i)
	}
	return Sample(t, n, list)
}

// N returns full, or with -short few.
func N(few, full int) int {
	if testing.Short() {
		return few
	}
	return full
}

// SkipReal skips the test with -short, because it starts what.
func SkipReal(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: this test starts " + what + "; make check runs it")
	}
}

func seed(t testing.TB) uint64 {
	t.Helper()
	number := uint64(time.Now().UnixNano())
	if text := os.Getenv("ROLECALL_TEST_SEED"); text != "" {
		var err error
		if number, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("read ROLECALL_TEST_SEED: %v", err)
		}
	}
	t.Logf("a sample: ROLECALL_TEST_SEED=%d repeats it", number)
	return number
}
