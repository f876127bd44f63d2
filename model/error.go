package model

import (
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// Error is a failure of a model. Its codes are rate_limited,
// context_limit_exceeded, llm_call_failed and invalid_config.
type Error struct {
	Retryable  bool          // the same request may succeed later
	RetryAfter time.Duration // how long the provider asks to wait; 0 if it does not

	// NeedsOperator reports that only the operator can fix the cause: a key, an account,
	// an address or the name of the model. The task of the agent is paused.
	NeedsOperator bool
	KeyInvalid    bool // the provider does not accept the API key
	Err           *errcode.Error
}

// TransientError returns a retryable Error.
func TransientError(code errcode.Code, cause error, format string, args ...any) *Error {
	return &Error{Retryable: true, Err: errcode.Wrap(code, cause, format, args...)}
}

// PermanentError returns an Error that retrying cannot fix.
func PermanentError(code errcode.Code, cause error, format string, args ...any) *Error {
	return &Error{Err: errcode.Wrap(code, cause, format, args...)}
}

// OperatorError returns a permanent Error that only the operator can fix.
func OperatorError(code errcode.Code, cause error, format string, args ...any) *Error {
	return &Error{NeedsOperator: true, Err: errcode.Wrap(code, cause, format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the coded error.
func (e *Error) Unwrap() error { return e.Err }
