package wire

import (
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
)

// NDJSON is the media type of a stream of events as JSON lines.
const NDJSON = "application/x-ndjson"

// EventPage is a page of events, newest first. A page may have fewer events than the limit,
// even no events, and still a cursor. A request searches a bounded part of the log. Last is
// the sequence number of the last event of the log: a stream after it has what the pages do
// not.
type EventPage[T any] struct {
	Page[T]
	Last uint64 `json:"last"`
}

// Events is a page of events as clients decode it.
type Events = EventPage[journal.Event]

// ParseSince is ParseTime for the log, in which nothing is later than now. Errors:
// InvalidArguments, also for a time after now.
func ParseSince(text string, now time.Time) (time.Time, error) {
	at, err := ParseTime(text, now)
	if err == nil && at.After(now) {
		err = sinceError(text, "is in the future")
	}
	return at, err
}

// ParseTime parses the query parameter since: a time of RFC 3339, or how long ago it was.
// Errors: InvalidArguments.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		if ago < 0 {
			return time.Time{}, sinceError(text, "is negative")
		}
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, sinceError(text, "is neither a duration such as 90m nor a time such as 2026-01-31T08:00:00Z")
	}
	return at, nil
}

func sinceError(text, problem string) error {
	return errcode.New(errcode.InvalidArguments, "query parameter \"since\" is %.100q, which %s", text, problem).With("field", "since")
}
