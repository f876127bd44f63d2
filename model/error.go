package model

import (
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// Error is a failure of a model that says whether to ask again helps. Its
// codes are rate_limited, context_limit_exceeded and llm_call_failed.
type Error struct {
	Retryable  bool          // the same request may succeed later
	RetryAfter time.Duration // how long the provider asks to wait; 0 when it does not say
	Err        *errcode.Error
}

// Transient is a Trouble that may pass.
func Transient(code errcode.Code, cause error, format string, args ...any) *Error {
	return &Error{Retryable: true, Err: errcode.Wrap(code, cause, format, args...)}
}

// Permanent is a Trouble that the same request will always have.
func Permanent(code errcode.Code, cause error, format string, args ...any) *Error {
	return &Error{Err: errcode.Wrap(code, cause, format, args...)}
}

// Error implements error.
func (t *Error) Error() string { return t.Err.Error() }

// Unwrap gives the coded error.
func (t *Error) Unwrap() error { return t.Err }
