package cron_test

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // as the program has them

	"github.com/rolecall/rolecall/internal/cron"
)

func parse(t *testing.T, text, zone string) *cron.Schedule {
	t.Helper()
	s, err := cron.ParseSchedule(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// fires lists the times of a schedule in a range.
func fires(t *testing.T, s *cron.Schedule, from, to string) (list []string) {
	t.Helper()
	end := moment(t, to)
	for at := s.NextAfter(moment(t, from)); !at.IsZero() && at.Before(end); at = s.NextAfter(at) {
		list = append(list, at.Format("02T15:04"))
	}
	return list
}

func TestParseSchedule_Rejects(t *testing.T) {
	for _, text := range []string{"", "* * * *", "* * * * * *", "@daily", "TZ=UTC * * * *", "TZ=0 * * * * *", "60 * * * *", "* * 0 * *", "0 0 30 2 *", "a b c d e", "*/0 * * * *", "5-1 * * * *", "0 0 \x00 * *"} {
		if _, err := cron.ParseSchedule(text, ""); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	for _, zone := range []string{"Nowhere/City", "Local", "../etc/passwd", "+02:00"} {
		if _, err := cron.ParseSchedule("* * * * *", zone); err == nil {
			t.Errorf("zone %q was accepted", zone)
		}
	}
}

// In Berlin 02:30 does not exist on 29 March 2026 and exists twice on 25 October 2026.
func TestSchedule_LocalTimeFiresOnceADay(t *testing.T) {
	tests := []struct {
		text, from, to string
		want           []string
	}{
		{"30 2 * * *", "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z", []string{"28T01:30", "29T01:00", "30T00:30"}},
		{"0 3 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:00:00Z", []string{"29T01:00"}},
		{"30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", []string{"25T00:30", "26T01:30"}},
		{"*/30 * * * *", "2026-03-29T00:00:00Z", "2026-03-29T02:01:00Z", []string{"29T00:30", "29T01:00", "29T01:30", "29T02:00"}},
		{"*/30 * * * *", "2026-10-24T23:59:00Z", "2026-10-25T02:31:00Z", []string{"25T00:00", "25T00:30", "25T02:00", "25T02:30"}},
	}
	for _, test := range tests {
		if got := fires(t, parse(t, test.text, "Europe/Berlin"), test.from, test.to); !slices.Equal(got, test.want) {
			t.Errorf("%s from %s: %v, want %v", test.text, test.from, got, test.want)
		}
	}
}

// In Lord Howe the clock changes by half an hour, in Apia a whole day did not exist.
func TestSchedule_UnusualZones(t *testing.T) {
	if got := fires(t, parse(t, "15 2 * * *", "Australia/Lord_Howe"), "2026-10-02T20:00:00Z", "2026-10-04T20:00:00Z"); !slices.Equal(got, []string{"03T15:30", "04T15:15"}) {
		t.Errorf("Lord Howe: %v", got)
	}
	got := fires(t, parse(t, "0 12 * * *", "Pacific/Apia"), "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z")
	if !slices.Equal(got, []string{"29T22:00", "30T10:00", "30T22:00", "31T22:00"}) {
		t.Errorf("Apia: %v", got)
	}
}

func TestSchedule_LatestDue(t *testing.T) {
	every := parse(t, "* * * * *", "")
	since := moment(t, "2026-05-01T10:00:00Z")
	tests := []struct {
		after  time.Duration
		at     time.Duration
		missed int
		ok     bool
	}{
		{59 * time.Second, 0, 0, false},
		{time.Minute, time.Minute, 0, true},
		{1001*time.Minute + time.Second, 1001 * time.Minute, 1000, true},
		{365 * 24 * time.Hour, 365 * 24 * time.Hour, cron.MaxMissed, true},
		{-time.Hour, 0, 0, false},
	}
	for _, test := range tests {
		at, missed, ok := every.LatestDue(since, since.Add(test.after))
		if ok != test.ok || missed != test.missed || ok && !at.Equal(since.Add(test.at)) {
			t.Errorf("after %v: %v %d %v", test.after, at, missed, ok)
		}
	}
	burst := parse(t, "* 9 * * *", "")
	if at, missed, _ := burst.LatestDue(since, since.Add(2*365*24*time.Hour)); missed != cron.MaxMissed || !at.Equal(moment(t, "2028-04-30T09:59:00Z")) {
		t.Errorf("after two years: %v %d", at, missed)
	}
}
