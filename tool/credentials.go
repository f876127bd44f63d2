package tool

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
)

// Credentials are what a caller showed beside the arguments of a call. They are
// for the gate, which takes them out of the context before a tool runs, and
// they print as nothing. The zero Credentials vouch for nobody: agents have no
// others.
type Credentials struct {
	Tokens map[string]string // by auth service, as they came
	Secure json.RawMessage   // secure arguments, a JSON object; empty is none
}

type credentialsKey struct{}

// WithCredentials gives a context with what the caller of one request showed.
// A door does that, for the calls of this request alone.
func WithCredentials(ctx context.Context, c Credentials) context.Context {
	c.Tokens, c.Secure = maps.Clone(c.Tokens), slices.Clone(c.Secure)
	return context.WithValue(ctx, credentialsKey{}, c)
}

// WithoutCredentials gives a context in which nobody showed anything.
func WithoutCredentials(ctx context.Context) context.Context {
	if ctx.Value(credentialsKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, credentialsKey{}, Credentials{})
}

// CredentialsOf gives what the caller showed. Callers must not change it.
func CredentialsOf(ctx context.Context) Credentials {
	c, _ := ctx.Value(credentialsKey{}).(Credentials)
	return c
}

const redacted = "[redacted]"

// String implements fmt.Stringer.
func (c Credentials) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (c Credentials) GoString() string { return redacted }

// LogValue implements slog.LogValuer.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON implements json.Marshaler.
func (c Credentials) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }
