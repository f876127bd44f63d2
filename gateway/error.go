package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
)

// respondError logs internal errors and rejected tokens with their cause, and answers with
// an error that does not show it.
func (a *api) respondError(w http.ResponseWriter, r *http.Request, err error) {
	switch status := wire.StatusOf(err); {
	case r.Context().Err() != nil:
	case status >= http.StatusInternalServerError:
		a.failures.Request(slog.LevelError, "request failed", auth.SenderOf(r), r, err)
	case errors.Is(err, wire.ErrInvalidToken):
		a.failures.Request(slog.LevelWarn, "token rejected", auth.SenderOf(r), r, err)
	case status == http.StatusUnauthorized:
		a.failures.Request(slog.LevelDebug, "unauthenticated request", auth.SenderOf(r), r, err)
	}
	wire.WriteError(w, err)
}

// recoverPanic must be deferred. It logs a panic of a handler and answers with
// an internal error.
func (a *api) recoverPanic(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { // deliberately aborts a response
		panic(p)
	}
	a.failures.Request(slog.LevelError, "request panicked", auth.SenderOf(r), r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	wire.WriteError(w, errors.New("panic"))
}

// statusAnswer is the result of an endpoint with a status other than 200, or an ETag.
type statusAnswer struct {
	code int
	body any
	etag string // the header ETag; "" is none
}

// jsonEndpoint returns an endpoint that answers with the result of fn as JSON.
func jsonEndpoint(fn func(*http.Request) (any, error)) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, err := fn(r)
		if err != nil {
			return err
		}
		if s, ok := v.(statusAnswer); ok {
			if s.etag != "" {
				w.Header().Set("ETag", s.etag)
			}
			return wire.WriteJSON(w, s.code, s.body)
		}
		return wire.WriteJSON(w, http.StatusOK, v)
	}
}
