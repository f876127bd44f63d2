package fair_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/internal/fair"
)

func TestRateTable_LimitsEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := fair.NewRateTable[string](2)
		take := func(key string, want time.Duration) {
			t.Helper()
			if got := table.Take(key).Round(time.Millisecond); got != want {
				t.Errorf("%s waits for %v, want %v", key, got, want)
			}
		}
		for range 1000 {
			take("ann", 0) // without a rate
		}
		table.SetRate(10*time.Second, 2)
		take("ann", 0)
		take("ann", 0)
		take("ann", 10*time.Second)
		take("bob", 0)
		time.Sleep(4 * time.Second)
		take("ann", 6*time.Second)
		for range 3 {
			if got := table.WaitTime("bob"); got != 0 {
				t.Errorf("bob waits for %v", got)
			}
		}
		take("bob", 0)
		table.SetRate(10*time.Second, 2) // the same rate forgets nothing
		time.Sleep(6 * time.Second)
		take("ann", 0)
		take("ann", 10*time.Second)
		table.SetRate(5*time.Second, 1)
		take("ann", 0)
		take("ann", 5*time.Second)
		table.SetRate(0, 0)
		take("ann", 0)
	})
}

func TestRateTable_ForgetsOldestKey(t *testing.T) {
	table := fair.NewRateTable[string](2)
	table.SetRate(time.Hour, 1)
	for _, key := range []string{"ann", "bob", "ann", "eve"} { // eve displaces bob
		table.Take(key)
	}
	for _, c := range []struct {
		key   string
		waits bool
	}{{"ann", true}, {"eve", true}, {"bob", false}} {
		if got := table.WaitTime(c.key) > 0; got != c.waits {
			t.Errorf("%s waits: %v, want %v", c.key, got, c.waits)
		}
	}
	for n := range 100 {
		table.Take(fmt.Sprint(n))
	}
}
