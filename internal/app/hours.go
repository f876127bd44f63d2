package app

import (
	"context"
	"slices"
	"time"
	_ "time/tzdata" // time zones for machines without a database of them

	"github.com/rolecall/rolecall/internal/clock"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/hours"
	"github.com/rolecall/rolecall/toolgroups"
)

const (
	// maxHoursWait is the longest time between two looks at the clock. Timers stand still
	// while a machine sleeps, and clocks are set.
	maxHoursWait = 10 * time.Second
	// retryHours is the time after which a failed change is tried again.
	retryHours = time.Second
)

// hourKeeper opens and closes toolsets by their hours. One goroutine does so until stop is
// called.
type hourKeeper struct {
	wall    clock.Wall
	changed chan struct{} // has an entry after the toolsets were changed
	stop    func()        // ends the goroutine and waits for it
}

// groupHours are the hours of a registered toolset.
type groupHours struct {
	hours    hours.Hours
	schedule *hours.Schedule
	wall     clock.Wall
}

// Zone implements toolgroups.Hours.
func (h *groupHours) Zone() string { return h.hours.Zone }

// Spans implements toolgroups.Hours.
func (h *groupHours) Spans() []string { return h.hours.Open }

// NextChange implements toolgroups.Hours.
func (h *groupHours) NextChange() time.Time { return h.schedule.NextChange(h.wall.Now()) }

// addHours adds the hours of the toolsets of a configuration. Hours that do not compile are
// never open; loading has reported them.
func (t toolsets) addHours(cfg *config.Config) {
	for _, s := range cfg.Toolsets {
		set, ok := t[toolgroups.GroupID(s.Name)]
		if !ok || s.Hours == nil {
			continue
		}
		schedule, err := s.Hours.Compile()
		if err != nil {
			schedule = new(hours.Schedule)
		}
		set.hours, set.schedule = *s.Hours, schedule
		t[set.ID] = set
	}
}

// atTime returns t as it is registered at this time: open or closed.
func (t toolset) atTime(wall clock.Wall) toolset {
	if t.schedule != nil {
		t.Hours, t.Open = &groupHours{t.hours, t.schedule, wall}, t.schedule.IsOpen(wall.Now())
	}
	return t
}

// sameHours reports whether both toolsets have the same hours, or none.
func (t toolset) sameHours(other toolset) bool {
	return t.hours.Zone == other.hours.Zone && slices.Equal(t.hours.Open, other.hours.Open)
}

// startHours starts the goroutine of the keeper.
func (a *App) startHours() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.keepHours(ctx)
	}()
	a.hours.stop = func() {
		cancel()
		<-done
	}
}

// keepHours opens and closes toolsets until ctx ends.
func (a *App) keepHours(ctx context.Context) {
	for {
		var alarm <-chan time.Time
		if wait, ok := a.switchToolsets(); ok {
			alarm = a.hours.wall.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.hours.changed:
		case <-alarm:
		}
	}
}

// notify makes the keeper look at the toolsets and the clock.
func (k *hourKeeper) notify() {
	select {
	case k.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// switchToolsets opens and closes the toolsets whose state differs from their hours, in one
// change. It returns how long to wait before the next look. It reports false if no toolset
// has hours.
func (a *App) switchToolsets() (wait time.Duration, ok bool) {
	a.toolsetsMu.Lock()
	defer a.toolsetsMu.Unlock()
	now, wait := a.hours.wall.Now(), maxHoursWait
	var due []toolset
	for _, t := range a.toolsets {
		if t.schedule == nil {
			continue
		}
		ok = true
		if open := t.schedule.IsOpen(now); open != t.Open {
			t.Open = open
			due = append(due, t)
		}
		if next := t.schedule.NextChange(now); !next.IsZero() {
			wait = min(wait, max(next.Sub(now), 0))
		}
	}
	if len(due) > 0 && !a.commitSwitch(due) {
		wait = retryHours
	}
	return wait, ok
}

// commitSwitch opens and closes toolsets as due says. It reports whether that succeeded.
func (a *App) commitSwitch(due []toolset) bool {
	err := a.groups.Update(func(tx *toolgroups.Tx) error {
		for _, t := range due {
			if err := tx.SwitchGroup(a.owner, t.ID, t.Open); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		a.options.Warn.Warn("toolsets not opened or closed by their hours; trying again", "error", err)
		return false
	}
	for _, t := range due {
		a.toolsets[t.ID] = t
		a.options.Log.Info("toolset switched by its hours", "toolset", t.ID, "open", t.Open)
	}
	return true
}
