// Package hours has weekly opening hours in a time zone.
//
//	s, err := hours.Hours{Zone: "Europe/Berlin", Open: []string{"mon-fri 08:00-18:00"}}.Compile()
//	open := s.IsOpen(time.Now())
//	next := s.NextChange(time.Now())
//
// Hours are what a clock on the wall of the zone shows. Minutes that the clock skips in
// spring do not happen. Minutes that it repeats in autumn count both times.
package hours

import (
	"errors"
	"fmt"
	"iter"
	"time"
)

// Hours are opening hours as people write them. The zero Hours do not compile.
type Hours struct {
	Zone string   // of the IANA database, see LoadZone
	Open []string // spans, see ParseSpan; they may overlap
}

// Compile returns the Schedule of h, or an error that names the zone or the span that is
// wrong.
func (h Hours) Compile() (*Schedule, error) {
	zone, err := LoadZone(h.Zone)
	if err != nil {
		return nil, err
	}
	if len(h.Open) == 0 {
		return nil, errors.New("hours without a span never open")
	}
	s := &Schedule{zone: zone, open: make([]bool, minutesPerWeek)}
	for _, text := range h.Open {
		span, err := ParseSpan(text)
		if err != nil {
			return nil, err
		}
		span.mark(s.open)
	}
	s.findEdges()
	return s, nil
}

// LoadZone returns the time zone with a name of the IANA database, such as Europe/Berlin
// or UTC. Local, the zone of the machine, is not one of them.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is not a time zone", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a known time zone", name)
	}
	return zone, nil
}

const (
	minutesPerDay  = 24 * 60
	minutesPerWeek = 7 * minutesPerDay
)

// Schedule is compiled Hours. The zero Schedule is never open. A Schedule is immutable and
// safe for concurrent use.
type Schedule struct {
	zone  *time.Location
	open  []bool          // by minute of the week, which begins on Sunday
	edges []time.Duration // since the begin of the week: minutes that differ from the one before
}

// findEdges sets edges.
func (s *Schedule) findEdges() {
	for minute, open := range s.open {
		if open != s.open[(minute+minutesPerWeek-1)%minutesPerWeek] {
			s.edges = append(s.edges, time.Duration(minute)*time.Minute)
		}
	}
}

// IsOpen reports whether s is open at a time.
func (s *Schedule) IsOpen(at time.Time) bool {
	if s.zone == nil {
		return false
	}
	return s.open[int(sinceWeekBegan(at.In(s.zone))/time.Minute)]
}

// horizon is how far NextChange looks. Any span comes each week, except once when the clock
// skips it.
const horizon = 15 * 24 * time.Hour

// NextChange returns the first time after a time at which s opens or closes, in the zone of
// s. It returns the zero Time if s stays as it is.
func (s *Schedule) NextChange(after time.Time) time.Time {
	if len(s.edges) == 0 {
		return time.Time{}
	}
	at := after.Round(0).In(s.zone) // the clock on the wall, which may be set
	open, last := s.IsOpen(at), at.Add(horizon)
	for at.Before(last) {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.After(last) {
			end = last
		}
		for next := range s.candidates(at, end) {
			if s.IsOpen(next) != open {
				return next
			}
		}
		at = end.In(s.zone)
	}
	return time.Time{}
}

// candidates returns the times after at, up to end, at which s may change, in order. The
// offset of the zone must be the same from at until end.
func (s *Schedule) candidates(at, end time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for week := at.Add(-sinceWeekBegan(at)); week.Before(end); week = week.Add(minutesPerWeek * time.Minute) {
			for _, edge := range s.edges {
				next := week.Add(edge)
				if next.After(at) && next.Before(end) && !yield(next) {
					return
				}
			}
		}
		yield(end.In(s.zone))
	}
}

// sinceWeekBegan returns what the clock of a time's zone shows, as a duration since the
// begin of Sunday.
func sinceWeekBegan(at time.Time) time.Duration {
	hour, minute, second := at.Clock()
	days := time.Duration(at.Weekday()) * 24 * time.Hour
	return days + time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second + time.Duration(at.Nanosecond())
}
