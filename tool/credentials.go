package tool

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
)

// Credentials are the tokens and secure arguments that a caller sent with a call. Only the gate
// reads them. It removes them from the context before the tool runs. They are never printed,
// logged or marshalled. Calls of agents have the zero Credentials.
type Credentials struct {
	Tokens map[string]string // by auth service; not verified
	Secure json.RawMessage   // secure arguments, a JSON object; empty if there are none
}

// credentialsKey is the context key of Credentials.
type credentialsKey struct{}

// WithCredentials returns a context for the calls of one request, with a copy of its
// credentials. Servers use it.
func WithCredentials(ctx context.Context, c Credentials) context.Context {
	c.Tokens, c.Secure = maps.Clone(c.Tokens), slices.Clone(c.Secure)
	return context.WithValue(ctx, credentialsKey{}, c)
}

// WithoutCredentials returns a context without credentials.
func WithoutCredentials(ctx context.Context) context.Context {
	if ctx.Value(credentialsKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, credentialsKey{}, Credentials{})
}

// CredentialsOf returns the credentials in a context. They must not be changed.
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
