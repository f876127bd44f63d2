package transport

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// maxComplaint is how much of a provider's error is read, maxQuote how much of
// it is passed on.
const (
	maxComplaint = 64 << 10
	maxQuote     = 300
)

// refused words an answer that is none.
func (e *Endpoint) refused(ctx context.Context, answer *http.Response, body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, maxComplaint))
	if ctx.Err() != nil {
		return e.broken(ctx, err)
	}
	return e.Complaint(answer.StatusCode, wait(answer.Header, text), text)
}

// Complaint gives the trouble of a status and the JSON a provider sent with
// it; also of an error that comes in the middle of a stream. after is how long
// the provider asks to wait.
func (e *Endpoint) Complaint(status int, after time.Duration, text []byte) *model.Trouble {
	quoted := e.quote(text)
	switch {
	case tooLong(status, text):
		return model.Lasting(errcode.ContextExceeded, nil, "model %q takes no conversation of this length: %s", e.config.Name, quoted)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return model.Lasting(errcode.LLMCallFailed, nil, "model %q does not accept its key (status %d): %s; look at apiKey of this model", e.config.Name, status, quoted)
	case exhausted(text):
		return model.Lasting(errcode.LLMCallFailed, nil, "model %q: the account has nothing left to spend: %s", e.config.Name, quoted)
	case status == http.StatusTooManyRequests:
		t := model.Passing(errcode.RateLimited, nil, "model %q is asked too often: %s", e.config.Name, quoted)
		t.After = after
		return t
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict:
		t := e.passing("is in trouble (status %d): %s", status, quoted)
		t.After = after
		return t
	}
	return model.Lasting(errcode.LLMCallFailed, nil, "model %q refused the request (status %d): %s", e.config.Name, status, quoted)
}

// quote gives the sentence of a provider's error, short and without the key.
func (e *Endpoint) quote(text []byte) string {
	said := string(text)
	if gjson.ValidBytes(text) {
		for _, path := range [...]string{"error.message", "0.error.message", "message", "error", "detail"} {
			if m := gjson.GetBytes(text, path); m.Type == gjson.String && m.Str != "" {
				said = m.Str
				break
			}
		}
	}
	said = e.clean(strings.Join(strings.Fields(strings.ToValidUTF8(said, "")), " "))
	if len(said) > maxQuote {
		said = strings.ToValidUTF8(said[:maxQuote], "") + " …"
	}
	if said == "" {
		return "it says nothing"
	}
	return said
}

// tooLong says whether a provider refuses a conversation for its length.
func tooLong(status int, text []byte) bool {
	if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge {
		return false
	}
	said := strings.ToLower(string(text))
	for _, words := range [...]string{
		"context_length_exceeded", "maximum context length", "context length", "context window",
		"prompt is too long", "exceed_context_size", "exceeds the available context", "exceeds the maximum number of tokens", "request_too_large",
	} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return status == http.StatusRequestEntityTooLarge
}

// exhausted says whether an account is empty, which waiting does not mend.
func exhausted(text []byte) bool {
	return strings.Contains(string(text), "insufficient_quota") || strings.Contains(string(text), "credit balance is too low")
}

// wait reads how long a provider asks to wait: the headers Retry-After-Ms and
// Retry-After, in seconds or as a date, or Gemini's retryDelay in the body.
func wait(h http.Header, text []byte) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return atMost(ms / 1000)
	}
	if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil && s >= 0 {
		return atMost(s)
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return max(0, time.Until(at))
	}
	for _, delay := range gjson.GetBytes(text, "error.details.#.retryDelay").Array() {
		if d, err := time.ParseDuration(delay.Str); err == nil && d >= 0 {
			return d
		}
	}
	return 0
}

// atMost gives seconds as a time, a day at most: some providers send nonsense.
func atMost(seconds float64) time.Duration {
	const day = 24 * time.Hour
	return time.Duration(min(seconds, day.Seconds()) * float64(time.Second))
}
