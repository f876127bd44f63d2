package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/internal/clock"
)

func TestForward_NeverGoesBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := clock.NewForward(func() time.Time { return now })
	start := now
	for _, tt := range []struct{ set, want time.Duration }{
		{0, 0}, {time.Hour, time.Hour}, {-72 * time.Hour, time.Hour}, {2 * time.Hour, 2 * time.Hour}, {0, 2 * time.Hour},
	} {
		now = start.Add(tt.set)
		if got := c.Now().Sub(start); got != tt.want {
			t.Errorf("at %v: got %v, want %v", tt.set, got, tt.want)
		}
	}
}

// With monotonic readings, time goes on after the clock was set back.
func TestForward_AdvancesAfterStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewForward(time.Now)
		start := c.Now()
		time.Sleep(time.Hour)
		if got := c.Now().Sub(start); got != time.Hour {
			t.Errorf("got %v, want an hour", got)
		}
	})
}
