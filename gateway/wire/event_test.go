package wire_test

import (
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"0s": now, "90m": now.Add(-90 * time.Minute), "1h30m": now.Add(-90 * time.Minute),
		"2026-01-31T08:00:00Z": now, "2026-01-31T08:59:00+01:00": now.Add(-time.Minute), "1970-01-01T00:00:00Z": time.Unix(0, 0),
	} {
		if got, err := wire.ParseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1s", "1", "yesterday", "2026-01-31", "2026-01-31T08:00:00", "2026-01-31T08:00:01Z", "9999999999h", "1d", "\x1b[31m"} {
		if got, err := wire.ParseSince(text, now); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%q: %v, %v, want an error", text, got, err)
		}
	}
}

// A time that is accepted is not in the future.
func FuzzParseSince(f *testing.F) {
	for _, seed := range []string{"1h", "-1h", "0", "2026-01-31T08:00:00Z", "2562047h47m16.854775807s", "9999-12-31T23:59:59.999999999-23:59"} {
		f.Add(seed)
	}
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := wire.ParseSince(text, now)
		if err == nil && got.After(now) {
			t.Errorf("%q is %v", text, got)
		}
		if err != nil && errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%q: %v", text, err)
		}
	})
}
