package hours_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	_ "time/tzdata"

	"github.com/rolecall/rolecall/internal/hours"
	"github.com/rolecall/rolecall/internal/test/short"
)

// oracle is a naive reading of hours: it compares what the clock shows as texts.
type oracle struct {
	zone  *time.Location
	spans []string
}

func newOracle(t *testing.T, h hours.Hours) oracle {
	t.Helper()
	zone, err := time.LoadLocation(h.Zone)
	if err != nil {
		t.Fatal(err)
	}
	return oracle{zone, h.Open}
}

var week = strings.Fields("mon tue wed thu fri sat sun mon tue wed thu fri sat sun")

// hasDay reports whether a day is among the days of a span.
func hasDay(days, day string) bool {
	first, last, isRange := strings.Cut(days, "-")
	if !isRange {
		last = first
	}
	from := slices.Index(week, first)
	to := from + slices.Index(week[from:], last)
	return slices.Contains(week[from:to+1], day)
}

func (o oracle) isOpen(at time.Time) bool {
	at = at.In(o.zone)
	day, clock := strings.ToLower(at.Format("Mon")), at.Format("15:04")
	before := week[slices.Index(week, day)+6]
	return slices.ContainsFunc(o.spans, func(span string) bool {
		days, from, to := span[:len(span)-12], span[len(span)-11:len(span)-6], span[len(span)-5:]
		if to > from {
			return hasDay(days, day) && clock >= from && clock < to
		}
		return hasDay(days, day) && clock >= from || hasDay(days, before) && clock < to
	})
}

// randomHours returns one to four spans whose edges are often at the hours at which clocks
// are changed.
func randomHours(r *rand.Rand, zone string) hours.Hours {
	h := hours.Hours{Zone: zone}
	for range 1 + r.IntN(4) {
		days := week[r.IntN(7)]
		if last := week[r.IntN(7)]; last != days && r.IntN(2) == 0 {
			days += "-" + last
		}
		from, to := randomTime(r, 24), randomTime(r, 25)
		if from != to {
			h.Open = append(h.Open, days+" "+from+"-"+to)
		}
	}
	if h.Open == nil {
		return randomHours(r, zone)
	}
	return h
}

func randomTime(r *rand.Rand, hours int) string {
	hour := r.IntN(hours)
	if r.IntN(2) == 0 {
		hour = r.IntN(4)
	}
	if hour == 24 {
		return "24:00"
	}
	return fmt.Sprintf("%02d:%02d", hour, []int{0, 1, 15, 30, 59}[r.IntN(5)])
}

// At every minute of five weeks a schedule is as open as a naive reading of its hours, and
// NextChange names each change. The weeks are around a change of the clocks.
func TestSchedule_EqualsNaiveReading(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	starts := map[string]string{
		"Europe/Berlin": "2026-03-16", "America/New_York": "2026-10-19", "Australia/Lord_Howe": "2026-03-23",
		"America/Sao_Paulo": "2018-10-22", "Pacific/Apia": "2011-12-12", "Asia/Kathmandu": "2026-01-01", "UTC": "2026-12-20",
		"Africa/Casablanca": "2026-02-02",
	}
	for zone, day := range starts {
		start, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		for range short.Count(2, 8) {
			h := randomHours(r, zone)
			checkMinutes(t, h, start, 5*7*24*60)
		}
	}
}

func checkMinutes(t *testing.T, h hours.Hours, start time.Time, minutes int) {
	t.Helper()
	s, err := h.Compile()
	if err != nil {
		t.Fatal(err)
	}
	naive := newOracle(t, h)
	was, next := naive.isOpen(start), s.NextChange(start)
	for n := range minutes {
		at := start.Add(time.Duration(n) * time.Minute)
		want := naive.isOpen(at)
		if got := s.IsOpen(at); got != want {
			t.Fatalf("%v: open %t at %v, want %t", h, got, at.In(naive.zone), want)
		}
		if changed := want != was; changed != at.Equal(next) {
			t.Fatalf("%v: changed %t at %v, NextChange says %v", h, changed, at.In(naive.zone), next)
		}
		if want != was {
			was, next = want, s.NextChange(at)
		}
	}
}

// The clocks of Berlin skip 02:00 to 03:00 on 29 March 2026 and show 02:00 to 03:00 twice on
// 25 October 2026.
func TestSchedule_ChangeOfClocks(t *testing.T) {
	for name, tt := range map[string]struct {
		span    string
		from    string
		changes string // in UTC
	}{
		"span in the skipped hour":     {"sun 02:15-02:45", "2026-03-28T00:00:00Z", "04-05T00:15 04-05T00:45"},
		"span ends in skipped hour":    {"sun 01:00-02:30", "2026-03-28T00:00:00Z", "03-29T00:00 03-29T01:00"},
		"span begins in skipped hour":  {"sun 02:30-04:00", "2026-03-28T00:00:00Z", "03-29T01:00 03-29T02:00"},
		"span in the repeated hour":    {"sun 02:15-02:45", "2026-10-24T00:00:00Z", "10-25T00:15 10-25T00:45 10-25T01:15 10-25T01:45"},
		"span ends in repeated hour":   {"sun 01:00-02:30", "2026-10-24T00:00:00Z", "10-24T23:00 10-25T00:30 10-25T01:00 10-25T01:30"},
		"span begins in repeated hour": {"sun 02:30-04:00", "2026-10-24T00:00:00Z", "10-25T00:30 10-25T01:00 10-25T01:30 10-25T03:00"},
		"span over midnight":           {"fri 22:00-06:00", "2026-03-26T00:00:00Z", "03-27T21:00 03-28T05:00 04-03T20:00"},
		"span to the end of the day":   {"fri 22:00-24:00", "2026-03-26T00:00:00Z", "03-27T21:00 03-27T23:00"},
		"days over the weekend":        {"sat-mon 00:00-24:00", "2026-03-26T00:00:00Z", "03-27T23:00 03-30T22:00"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := hours.Hours{Zone: "Europe/Berlin", Open: []string{tt.span}}.Compile()
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, tt.from)
			if err != nil {
				t.Fatal(err)
			}
			for want := range strings.FieldsSeq(tt.changes) {
				at = s.NextChange(at)
				if got := at.UTC().Format("01-02T15:04"); got != want {
					t.Errorf("change at %s, want %s", got, want)
				}
			}
		})
	}
}

func TestSchedule_NeverChanges(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 1, time.UTC)
	always, err := hours.Hours{Zone: "Europe/Berlin", Open: []string{"mon-thu 00:00-24:00", "thu-sun 00:00-24:00"}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if next := always.NextChange(now); !always.IsOpen(now) || !next.IsZero() {
		t.Errorf("all week: open %t, next change %v", always.IsOpen(now), next)
	}
	var zero hours.Schedule
	if zero.IsOpen(now) || !zero.NextChange(now).IsZero() {
		t.Error("the zero Schedule is open, or opens")
	}
}

func TestCompile_RejectsBadHours(t *testing.T) {
	for span, want := range map[string]string{
		"":                        "not a span",
		"mon":                     "not a span",
		"mon 08:00":               "not a span",
		"mon  08:00-09:00":        "not a time",
		"Mon 08:00-09:00":         `"Mon" is not a day`,
		"mon-fry 08:00-09:00":     `"fry" is not a day`,
		"mon-mon 08:00-09:00":     "same day",
		"mon-tue-wed 08:00-09:00": "not a day",
		"mon 8:00-09:00":          `"8:00" is not a time`,
		"mon 08:60-09:00":         `"08:60" is not a time`,
		"mon 08:00-24:01":         `"24:01" is not a time`,
		"mon 08.00-09:00":         `"08.00" is not a time`,
		"mon +8:00-09:00":         `"+8:00" is not a time`,
		"mon 08:00-09:00 ":        "not a time",
		"mon 08:00-08:00":         "ends when it begins",
		"mon 24:00-08:00":         "begins at 24:00",
	} {
		_, err := hours.Hours{Zone: "UTC", Open: []string{"tue 01:00-02:00", span}}.Compile()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", span, err, want)
		}
	}
	for _, zone := range []string{"", "Local", "Mars/Olympus", "../UTC", "/etc/localtime"} {
		if _, err := (hours.Hours{Zone: zone, Open: []string{"mon 08:00-09:00"}}).Compile(); err == nil {
			t.Errorf("zone %q was accepted", zone)
		}
	}
	if _, err := (hours.Hours{Zone: "UTC"}).Compile(); err == nil {
		t.Error("hours without a span were accepted")
	}
}

// Every accepted span is read as the naive reading does, at every minute of a week.
func FuzzParseSpan(f *testing.F) {
	for _, text := range []string{"mon-fri 08:00-18:00", "sat 09:00-12:00", "fri 22:00-06:00", "sun-mon 00:00-24:00", "mon 24:00-00:00", "tue 23:59-00:00"} {
		f.Add(text)
	}
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := hours.ParseSpan(text); err != nil {
			return
		}
		h := hours.Hours{Zone: "UTC", Open: []string{text}}
		s, err := h.Compile()
		if err != nil {
			t.Fatal(err)
		}
		naive := newOracle(t, h)
		for n := range 7 * 24 * 60 {
			at := start.Add(time.Duration(n) * time.Minute)
			if s.IsOpen(at) != naive.isOpen(at) {
				t.Fatalf("%q at %v: open %t", text, at, s.IsOpen(at))
			}
		}
	})
}
