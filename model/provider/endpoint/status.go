package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// maxErrorBody is how much of a provider's error is read, maxQuote how much of
// it is passed on.
const (
	maxErrorBody = 64 << 10
	maxQuote     = 300
)

// statusError words an answer that is none; nil for one that may be.
func (e *Endpoint) statusError(ctx context.Context, answer *http.Response, body io.Reader) error {
	if answer.StatusCode/100 == 2 {
		return e.unexpectedStatus(answer.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if ctx.Err() != nil {
		return e.truncated(ctx, err)
	}
	return e.ErrorFrom(answer.StatusCode, retryAfter(answer.Header, text), text)
}

// unexpectedStatus refuses what a provider cannot have meant as an answer, such as the
// page of another server. Some send answers without a type, or as plain text.
func (e *Endpoint) unexpectedStatus(contentType string) error {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch kind {
	case "", "text/plain", "text/event-stream", "application/octet-stream":
		return nil
	}
	if strings.HasSuffix(kind, "json") {
		return nil
	}
	return model.Permanent(errcode.LLMCallFailed, nil, "model %q answers %s at %s: is its baseURL right?", e.config.Name, e.short(kind), e.place)
}

// ErrorFrom gives the trouble of a status and the JSON a provider sent with
// it; also of an error that comes in the middle of a stream. after is how long
// the provider asks to wait.
func (e *Endpoint) ErrorFrom(status int, after time.Duration, text []byte) *model.Error {
	text = text[:min(len(text), maxErrorBody)]
	quoted := e.quote(text)
	switch {
	case status/100 == 3:
		return model.Permanent(errcode.LLMCallFailed, nil, "model %q is not at its baseURL: the server points elsewhere (status %d)", e.config.Name, status)
	case tooLong(status, text):
		return model.Permanent(errcode.ContextExceeded, nil, "model %q takes no conversation of this length: %s", e.config.Name, quoted)
	case e.config.Key == "" && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return model.Permanent(errcode.LLMCallFailed, nil, "model %q wants a key and was sent none: apiKey: ${NAME} (status %d: %s)", e.config.Name, status, quoted)
	case status == http.StatusUnauthorized || status == http.StatusForbidden || bytes.Contains(text, []byte("API_KEY_INVALID")):
		return model.Permanent(errcode.LLMCallFailed, nil, "model %q does not accept its key (status %d): %s; look at apiKey of this model", e.config.Name, status, quoted)
	case status == http.StatusNotFound:
		return model.Permanent(errcode.LLMCallFailed, nil, "model %q: there is no %q at %s (status %d): %s; look at model and baseURL of this model", e.config.Name, e.config.Model, e.place, status, quoted)
	case isQuotaExhausted(text):
		return model.Permanent(errcode.LLMCallFailed, nil, "model %q: the account has nothing left to spend: %s", e.config.Name, quoted)
	case status == http.StatusTooManyRequests:
		t := model.Transient(errcode.RateLimited, nil, "model %q is asked too often: %s", e.config.Name, quoted)
		t.RetryAfter = after
		return t
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict:
		t := e.transient("is in trouble (status %d): %s", status, quoted)
		t.RetryAfter = after
		return t
	}
	return model.Permanent(errcode.LLMCallFailed, nil, "model %q refused the request (status %d): %s", e.config.Name, status, quoted)
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
	return cmp.Or(e.short(said), "it says nothing")
}

// short gives a text from outside as a few words without the key.
func (e *Endpoint) short(text string) string {
	text = e.secret.Redact(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "))
	if len(text) > maxQuote {
		text = strings.ToValidUTF8(text[:maxQuote], "") + " …"
	}
	return text
}

// tooLong says whether a provider refuses a conversation for its length: by a
// code that means nothing else, or by a refusal that talks of it.
func tooLong(status int, text []byte) bool {
	said := strings.ToLower(string(text))
	if contains(said, "context_length_exceeded", "exceed_context_size") {
		return true
	}
	switch status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return contains(said, "maximum context length", "maximum prompt length", "context length", "context window", "context size",
			"prompt is too long", "input is too long", "exceed context limit", "exceeds the maximum number of tokens", "request_too_large")
	}
	return false
}

func contains(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// isQuotaExhausted says whether an account is empty, which waiting does not mend.
func isQuotaExhausted(text []byte) bool {
	return contains(string(text), "insufficient_quota", "credit balance is too low")
}

// retryAfter reads how long a provider asks to wait: the headers Retry-After-Ms and
// Retry-After, in seconds or as a date, or Gemini's retryDelay in the body.
func retryAfter(h http.Header, text []byte) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return atMost(ms / 1000)
	}
	if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil && s >= 0 {
		return atMost(s)
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return atMost(max(0, time.Until(at).Seconds()))
	}
	for _, delay := range gjson.GetBytes(text, "error.details.#.retryDelay").Array() {
		if d, err := time.ParseDuration(delay.Str); err == nil && d >= 0 {
			return atMost(d.Seconds())
		}
	}
	return 0
}

// atMost gives seconds as a time, a day at most: some providers send nonsense.
func atMost(seconds float64) time.Duration {
	const day = 24 * time.Hour
	return time.Duration(min(seconds, day.Seconds()) * float64(time.Second))
}
