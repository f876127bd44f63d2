package hours

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Span is a part of some days of the week.
type Span struct {
	firstDay, lastDay int // 0 is Sunday; the last may be before the first: sat-mon
	from, to          int // minutes of the day; to is in the next day unless it is after from
}

// SpanHint says how a span is written.
const SpanHint = `for example "mon-fri 08:00-18:00", "sat 09:00-12:00" or "fri 22:00-06:00", which ends on Saturday`

// days are the names of the days of the week.
var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseSpan reads a span. This is a day or a range of days, a space, and the times at
// which the span begins and ends on each day. An end before the begin is on the next day.
// 24:00 is the end of a day.
func ParseSpan(text string) (Span, error) {
	dayText, timeText, ok := strings.Cut(text, " ")
	begin, end, isRange := strings.Cut(timeText, "-")
	if !ok || !isRange {
		return Span{}, fmt.Errorf("%q is not a span of days and times", text)
	}
	s, err := parseDays(dayText)
	if err != nil {
		return Span{}, err
	}
	if s.from, err = parseTime(begin); err != nil {
		return Span{}, err
	}
	if s.to, err = parseTime(end); err != nil {
		return Span{}, err
	}
	switch {
	case s.from == minutesPerDay:
		return Span{}, fmt.Errorf("%q begins at 24:00, which is only an end", text)
	case s.from == s.to:
		return Span{}, fmt.Errorf("%q ends when it begins; a whole day is 00:00-24:00", text)
	}
	return s, nil
}

// parseDays reads the days of a span.
func parseDays(text string) (s Span, err error) {
	first, last, isRange := strings.Cut(text, "-")
	if s.firstDay, err = parseDay(first); err != nil {
		return s, err
	}
	s.lastDay = s.firstDay
	if !isRange {
		return s, nil
	}
	if s.lastDay, err = parseDay(last); err == nil && s.lastDay == s.firstDay {
		err = fmt.Errorf("%q begins and ends with the same day; one day is %s, each day is mon-sun", text, first)
	}
	return s, err
}

func parseDay(text string) (int, error) {
	day := slices.Index(days, text)
	if day < 0 {
		return 0, fmt.Errorf("%q is not a day; days are mon, tue, wed, thu, fri, sat and sun", text)
	}
	return day, nil
}

// parseTime reads a time such as 08:00 and returns the minute of the day.
func parseTime(text string) (int, error) {
	hour, okHour := twoDigits(text, 0)
	minute, okMinute := twoDigits(text, 3)
	at := hour*60 + minute
	if len(text) != 5 || text[2] != ':' || !okHour || !okMinute || minute > 59 || at > minutesPerDay {
		return 0, fmt.Errorf("%q is not a time from 00:00 to 24:00", text)
	}
	return at, nil
}

// twoDigits returns the number that two digits of a text form.
func twoDigits(text string, at int) (int, bool) {
	if len(text) < at+2 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[at:at+2], 10, 8)
	return int(n), err == nil
}

// mark sets the minutes of s in a week.
func (s Span) mark(week []bool) {
	length := s.to - s.from
	if length < 0 {
		length += minutesPerDay
	}
	for day := s.firstDay; ; day = (day + 1) % len(days) {
		for n := range length {
			week[(day*minutesPerDay+s.from+n)%minutesPerWeek] = true
		}
		if day == s.lastDay {
			return
		}
	}
}
