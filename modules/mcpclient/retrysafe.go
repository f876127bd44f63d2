package mcpclient

import (
	"context"
	"errors"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sentKey is where the context of a request holds whether a byte of it has
// left.
type sentKey struct{}

func withSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

// setSent notes that a byte of the request of ctx may have left, or that none
// has.
func setSent(ctx context.Context, value bool) {
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(value)
	}
}

// mayHaveActed says whether the server may have acted on a request that failed.
func mayHaveActed(sent *atomic.Bool, err error) bool {
	if e, ok := errors.AsType[*refusal](err); ok {
		return !e.unsent()
	}
	return sent.Load()
}

// over says whether an error means that the connection is of no use.
func over(err error) bool {
	e, ok := errors.AsType[*refusal](err)
	return ok && e.session || errors.Is(err, sdk.ErrConnectionClosed)
}
