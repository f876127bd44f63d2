package mcpclient

import (
	"context"
	"errors"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
)

// sentKey is the context key of a request's *sentState.
type sentKey struct{}

// sentState is what is known about a request.
type sentState struct {
	sent       atomic.Bool // a byte of it may have been sent
	challenged atomic.Bool // the server has asked for authorization
}

// withSent returns a context for a request and its flag.
func withSent(ctx context.Context) (context.Context, *atomic.Bool) {
	state := new(sentState)
	return context.WithValue(ctx, sentKey{}, state), &state.sent
}

// firstChallenge reports whether the server has not asked for authorization of ctx's request
// before. It reports true for a request without a flag.
func firstChallenge(ctx context.Context) bool {
	state, ok := ctx.Value(sentKey{}).(*sentState)
	return !ok || state.challenged.CompareAndSwap(false, true)
}

// Values of setSent.
const (
	maySent = true
	notSent = false
)

// setSent records whether a byte of ctx's request may have been sent.
func setSent(ctx context.Context, value bool) {
	if state, ok := ctx.Value(sentKey{}).(*sentState); ok {
		state.sent.Store(value)
	}
}

// mayHaveActed reports whether the server may have acted on a request that failed. It has not if
// the request was not authorized.
func mayHaveActed(sent *atomic.Bool, err error) bool {
	if _, unauthorized := errors.AsType[*errcode.Error](err); unauthorized {
		return false
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		return !e.notProcessed()
	}
	return sent.Load()
}

// isConnectionLost reports whether err means that the connection is unusable.
func isConnectionLost(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.sessionLost || errors.Is(err, sdk.ErrConnectionClosed)
}
