package backoff_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/backoff"
)

func TestParseRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "2": 2 * time.Second, "0.5": 500 * time.Millisecond, "1e300": backoff.MaxRetryAfter, "Inf": backoff.MaxRetryAfter,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0, "Fri, 31 Dec 9999 23:59:59 GMT": backoff.MaxRetryAfter,
		"": -1, "-1": -1, "NaN": -1, "soon": -1, "2006-01-02": -1, "1,2": -1,
	} {
		if got, ok := backoff.ParseRetryAfter(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, ok, want)
		}
	}
	inAnHour := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	if got, ok := backoff.ParseRetryAfter(inAnHour); !ok || got > time.Hour || got < 59*time.Minute {
		t.Errorf("a date in an hour: got %v, %v", got, ok)
	}
}
