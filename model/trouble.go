package model

import (
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// Trouble is a failure of a model that says whether to ask again helps. Its
// codes are rate_limited, context_limit_exceeded and llm_call_failed.
type Trouble struct {
	Again bool          // the same request may succeed later
	After time.Duration // how long the provider asks to wait; 0 when it does not say
	Err   *errcode.Error
}

// Passing is a Trouble that may pass.
func Passing(code errcode.Code, cause error, format string, args ...any) *Trouble {
	return &Trouble{Again: true, Err: errcode.Wrap(code, cause, format, args...)}
}

// Lasting is a Trouble that the same request will always have.
func Lasting(code errcode.Code, cause error, format string, args ...any) *Trouble {
	return &Trouble{Err: errcode.Wrap(code, cause, format, args...)}
}

// Error implements error.
func (t *Trouble) Error() string { return t.Err.Error() }

// Unwrap gives the coded error.
func (t *Trouble) Unwrap() error { return t.Err }
