// Package cron computes when a schedule of five fields fires in a time zone.
//
//	s, err := cron.ParseSchedule("30 2 * * 1-5", "Europe/Berlin")
//	at, missed, ok := s.LatestDue(lastFired, now)
//
// A local time fires once a day. One that the change to summer time leaves out fires when the
// clock has changed. One that exists twice fires the first time. The package starts nothing.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/rolecall/rolecall/internal/textutil"
)

// maxText is the longest text of a schedule or a zone, in bytes.
const maxText = 200

// MaxMissed is the most times that LatestDue counts as missed.
const MaxMissed = 10_000

// parser reads minute, hour, day of the month, month and day of the week.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Schedule is when something fires. It is immutable and safe for concurrent use.
type Schedule struct {
	rule cron.Schedule // of local times, which are written as times in UTC
	zone *time.Location
}

// ParseSchedule parses five fields of cron, and the name of a zone of the IANA database. ""
// is UTC. The error says what is wrong. A schedule that never fires is an error.
func ParseSchedule(text, zone string) (*Schedule, error) {
	if len(text) > maxText || len(strings.Fields(text)) != 5 {
		return nil, errors.New("a schedule has five fields: minute, hour, day of the month, month, day of the week")
	}
	rule, err := parser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the schedule %.60q does not parse: %s", text, textutil.Sanitize(err.Error()))
	}
	at, err := LoadZone(zone)
	if err != nil {
		return nil, err
	}
	if rule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("the schedule %.60q never fires", text)
	}
	return &Schedule{rule, at}, nil
}

// LoadZone returns the zone with a name of the IANA database. "" is UTC. The zone of the
// machine has no name, because a schedule must not depend on it.
func LoadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" || len(name) > maxText {
		return nil, fmt.Errorf("there is no time zone %.60q; write a name such as Europe/Berlin", name)
	}
	return zone, nil
}

// NextAfter returns the first time after t at which the schedule fires, in UTC. It is zero if there
// is no such time within five years.
func (s *Schedule) NextAfter(t time.Time) time.Time {
	for local := localOf(t, s.zone); ; {
		if local = s.rule.Next(local); local.IsZero() {
			return time.Time{}
		}
		if at := instantOf(local, s.zone); at.After(t) {
			return at
		}
	}
}

// LatestDue returns the latest time after since, and not after now, at which the schedule
// fires. missed is the number of times between, at most MaxMissed. It reports false if there
// is no such time.
func (s *Schedule) LatestDue(since, now time.Time) (at time.Time, missed int, ok bool) {
	at = s.NextAfter(since)
	if at.IsZero() || at.After(now) {
		return time.Time{}, 0, false
	}
	for missed < MaxMissed {
		next := s.NextAfter(at)
		if next.IsZero() || next.After(now) {
			return at, missed, true
		}
		at = next
		missed++
	}
	return s.lastBefore(at, now), missed, true
}

// lastBefore returns the latest time at which the schedule fires, after since or at it, and
// not after now. It looks at longer and longer times before now.
func (s *Schedule) lastBefore(since, now time.Time) time.Time {
	for d := time.Hour; ; d *= 2 {
		from := now.Add(-d)
		if !from.After(since) {
			from = since
		}
		last := s.NextAfter(from)
		if last.IsZero() || last.After(now) {
			if from.Equal(since) {
				return since
			}
			continue
		}
		for next := s.NextAfter(last); !next.IsZero() && !next.After(now); next = s.NextAfter(last) {
			last = next
		}
		return last
	}
}

// localOf returns the local time of t, written as a time in UTC.
func localOf(t time.Time, zone *time.Location) time.Time {
	l := t.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// instantOf returns when it is a local time. If a local time occurs twice, it returns the first
// time. If it does not occur, it returns the change of the clock.
func instantOf(local time.Time, zone *time.Location) time.Time {
	var first time.Time
	before := offsetAt(local.Add(-24*time.Hour), zone)
	for _, offset := range []time.Duration{before, offsetAt(local.Add(24*time.Hour), zone)} {
		at := local.Add(-offset)
		if localOf(at, zone).Equal(local) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		first, _ = local.Add(-before).In(zone).ZoneBounds()
	}
	return first.UTC()
}

// offsetAt returns the offset of a zone from UTC.
func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
