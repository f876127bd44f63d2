package mcpclient

import (
	"context"
	"errors"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sentKey is the context key of a request's *atomic.Bool, which is set when a byte of the
// request may have been sent.
type sentKey struct{}

// withSent returns a context for a request and its flag.
func withSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

// setSent records whether a byte of ctx's request may have been sent.
func setSent(ctx context.Context, value bool) {
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(value)
	}
}

// mayHaveActed reports whether the server may have acted on a request that failed.
func mayHaveActed(sent *atomic.Bool, err error) bool {
	if e, ok := errors.AsType[*statusError](err); ok {
		return !e.notProcessed()
	}
	return sent.Load()
}

// connectionLost reports whether err means that the connection is unusable.
func connectionLost(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.sessionLost || errors.Is(err, sdk.ErrConnectionClosed)
}
