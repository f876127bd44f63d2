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
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
)

// maxErrorBody is how many bytes of an error response are read, maxQuote how many of
// them are quoted.
const (
	maxErrorBody = 64 << 10
	maxQuote     = 300
)

// statusError returns the error of a response if its status or content type does not fit an answer.
// Else it returns nil.
func (e *Endpoint) statusError(ctx context.Context, answer *http.Response, body io.Reader) error {
	if answer.StatusCode/100 == 2 {
		return e.checkContentType(answer.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if ctx.Err() != nil {
		return e.truncatedError(ctx, err)
	}
	return e.ErrorFrom(answer.StatusCode, retryAfter(answer.Header, text), text)
}

// checkContentType rejects a response that cannot be an answer, such as the page of
// another server. Some providers send answers without a type or as plain text.
func (e *Endpoint) checkContentType(contentType string) error {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch kind {
	case "", "text/plain", "text/event-stream", "application/octet-stream", "application/vnd.amazon.eventstream":
		return nil
	}
	if strings.HasSuffix(kind, "json") {
		return nil
	}
	return model.PermanentError(errcode.LLMCallFailed, nil, "model %q answers %s at %s: is its baseURL right?", e.config.Name, e.excerpt(kind), e.address)
}

// ErrorFrom returns the model.Error for an HTTP status and the JSON that came with it.
// It is also used for an error in the middle of a stream. retryAfter is how long
// the provider asks to wait.
func (e *Endpoint) ErrorFrom(status int, retryAfter time.Duration, text []byte) *model.Error {
	text = text[:min(len(text), maxErrorBody)]
	quoted := e.quote(text)
	switch {
	case status/100 == 3:
		return model.PermanentError(errcode.LLMCallFailed, nil, "model %q: its baseURL redirects to another address (status %d); set baseURL to that address", e.config.Name, status)
	case isContextExceeded(status, text):
		return model.PermanentError(errcode.ContextExceeded, nil, "model %q: the conversation exceeds its context length: %s", e.config.Name, quoted)
	case e.config.Key == "" && e.config.Sign == nil && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return model.OperatorError(errcode.LLMCallFailed, nil, "model %q needs an API key; set apiKey: ${NAME} (status %d: %s)", e.config.Name, status, quoted)
	case status == http.StatusUnauthorized || status == http.StatusForbidden || bytes.Contains(text, []byte("API_KEY_INVALID")):
		t := model.OperatorError(errcode.LLMCallFailed, nil, "model %q does not accept its key (status %d): %s; check apiKey of this model", e.config.Name, status, quoted)
		t.KeyInvalid = true
		return t
	case status == http.StatusNotFound:
		return model.OperatorError(errcode.LLMCallFailed, nil, "model %q: there is no %q at %s (status %d): %s; check model and baseURL of this model", e.config.Name, e.config.Model, e.address, status, quoted)
	case status == http.StatusPaymentRequired || isQuotaExhausted(text):
		return model.OperatorError(errcode.LLMCallFailed, nil, "model %q: the account has no credit left: %s", e.config.Name, quoted)
	case status == http.StatusTooManyRequests:
		t := model.TransientError(errcode.RateLimited, nil, "model %q is rate-limited: %s", e.config.Name, quoted)
		t.RetryAfter = retryAfter
		return t
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict:
		t := e.transientError("failed (status %d): %s", status, quoted)
		t.RetryAfter = retryAfter
		return t
	}
	return model.PermanentError(errcode.LLMCallFailed, nil, "model %q rejected the request (status %d): %s", e.config.Name, status, quoted)
}

// quote returns the message of a provider's error, shortened and without the key.
func (e *Endpoint) quote(text []byte) string {
	message := string(text)
	if gjson.ValidBytes(text) {
		for _, path := range [...]string{"error.message", "0.error.message", "message", "error", "detail"} {
			if m := gjson.GetBytes(text, path); m.Type == gjson.String && m.Str != "" {
				message = m.Str
				break
			}
		}
	}
	return cmp.Or(e.excerpt(message), "no error text")
}

// excerpt returns text from outside on one line, shortened and without the key.
func (e *Endpoint) excerpt(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	return textutil.Truncate(e.secret.RedactText(text), maxQuote)
}

// isContextExceeded reports whether a provider rejects a conversation for its length:
// by a code with only this meaning, or in the text of a rejection.
func isContextExceeded(status int, text []byte) bool {
	message := strings.ToLower(string(text))
	if containsAny(message, "context_length_exceeded", "exceed_context_size") {
		return true
	}
	switch status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return containsAny(message, "maximum context length", "maximum prompt length", "context length", "context window", "context size",
			"prompt is too long", "input is too long", "input tokens exceed", "exceed context limit", "exceeds the maximum number of tokens", "request_too_large")
	}
	return false
}

func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// isQuotaExhausted reports whether the account has no credit, so that retrying does
// not help.
func isQuotaExhausted(text []byte) bool {
	return containsAny(string(text), "insufficient_quota", "credit balance is too low")
}

// retryAfter returns how long a provider asks to wait, or 0. It reads Retry-After-Ms, Retry-After
// in seconds or as a date, or Gemini's retryDelay in the body.
func retryAfter(h http.Header, text []byte) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return clampDelay(ms / 1000)
	}
	if wait, ok := backoff.ParseRetryAfter(h.Get("Retry-After")); ok {
		return wait
	}
	for _, delay := range gjson.GetBytes(text, "error.details.#.retryDelay").Array() {
		if d, err := time.ParseDuration(delay.Str); err == nil && d >= 0 {
			return clampDelay(d.Seconds())
		}
	}
	return 0
}

// clampDelay returns seconds as a duration of at most backoff.MaxRetryAfter.
func clampDelay(seconds float64) time.Duration {
	return time.Duration(min(seconds, backoff.MaxRetryAfter.Seconds()) * float64(time.Second))
}
