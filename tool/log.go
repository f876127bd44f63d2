package tool

import (
	"context"
	"log/slog"
)

// LogMessage is what a tool says about a call while it runs, for the people at the client.
type LogMessage struct {
	Level slog.Level
	Text  string
}

// logKey is the context key of the function that receives log messages.
type logKey struct{}

// WithLog returns a context in which Log calls fn. fn must not block and must be safe for
// concurrent use.
func WithLog(ctx context.Context, fn func(LogMessage)) context.Context {
	return context.WithValue(ctx, logKey{}, fn)
}

// Log sends a log message of the call that ctx belongs to. It does nothing unless the client
// of the call has asked for log messages. Nothing is recorded: what matters for the
// organization belongs into the result.
func Log(ctx context.Context, level slog.Level, text string) {
	if fn, ok := ctx.Value(logKey{}).(func(LogMessage)); ok {
		fn(LogMessage{level, text})
	}
}
