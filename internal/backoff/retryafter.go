package backoff

import (
	"net/http"
	"strconv"
	"time"
)

// MaxRetryAfter is the longest time that ParseRetryAfter returns, since some servers send nonsense.
const MaxRetryAfter = 24 * time.Hour

// ParseRetryAfter returns how long a header Retry-After asks to wait. It has seconds, of which some
// servers send fractions, or a date. ParseRetryAfter reports false for anything else.
func ParseRetryAfter(header string) (wait time.Duration, ok bool) {
	if s, err := strconv.ParseFloat(header, 64); err == nil {
		return time.Duration(min(s, MaxRetryAfter.Seconds()) * float64(time.Second)), s >= 0
	}
	at, err := http.ParseTime(header)
	return max(0, min(time.Until(at), MaxRetryAfter)), err == nil
}
