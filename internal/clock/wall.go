package clock

import "time"

// Wall is the clock on the wall and its alarm. System is the wall clock of this machine. Tests have
// others.
type Wall struct {
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time // as time.After
}

// System returns the clock of this machine.
func System() Wall { return Wall{Now: time.Now, After: time.After} }
