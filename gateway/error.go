package gateway

import (
	"encoding/json"
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
		a.failures.LogRequest(slog.LevelError, "request failed", auth.SenderOf(r), r, err)
	case errors.Is(err, wire.ErrInvalidToken):
		a.failures.LogRequest(slog.LevelWarn, "token rejected", auth.SenderOf(r), r, err)
	case status == http.StatusUnauthorized:
		a.failures.LogRequest(slog.LevelDebug, "unauthenticated request", auth.SenderOf(r), r, err)
	}
	if wire.StatusOf(err) == http.StatusUnauthorized {
		err = a.withMetadata(r, err)
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
	a.failures.LogRequest(slog.LevelError, "request panicked", auth.SenderOf(r), r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	wire.WriteError(w, errors.New("panic"))
}

// listEndpoint is a jsonEndpoint for a list of tasks, or of tools with their schemas, which
// takes a processor to read and encode. Its requests count like those over MCP.
func (a *api) listEndpoint(fn func(*http.Request) (any, error)) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		release, err := a.limiter.Acquire(auth.SenderOf(r))
		if err != nil {
			return err
		}
		defer release()
		text, err := a.encodeList(r, fn)
		if err == nil {
			wire.WriteEncoded(w, http.StatusOK, text)
		}
		return err
	}
}

// encodeList returns the result of fn as JSON, in the sender's turn.
func (a *api) encodeList(r *http.Request, fn func(*http.Request) (any, error)) ([]byte, error) {
	release, err := a.limiter.AcquireList(r.Context(), auth.SenderOf(r))
	if err != nil {
		return nil, err
	}
	defer release()
	v, err := fn(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// countedEndpoint is a jsonEndpoint for requests of callers with a body that is not counted
// otherwise. A request counts like those over MCP while its body arrives and its answer is
// read.
func (a *api) countedEndpoint(fn func(*http.Request) (any, error)) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		release, err := a.limiter.Acquire(auth.SenderOf(r))
		if err != nil {
			return err
		}
		defer release()
		return jsonEndpoint(fn)(w, r)
	}
}

// statusAnswer is the result of an endpoint with a status other than 200, or an ETag.
type statusAnswer struct {
	code int
	body any
	etag string // the header ETag; "" is no header
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
