package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/backoff"
)

// connectionLost is what a command prints when the process that it follows ends.
const connectionLost = "the connection is lost; connecting again"

// redialer connects again to a process that may have ended, for at most reconnectTime.
type redialer struct {
	purpose string // what the process works on, for the error
	again   string // what the user does later, for the error

	lost   time.Time       // when the connection was lost; zero while it stands
	delays backoff.Backoff // between attempts to connect again
}

// redial waits and connects to the process that serves now. It returns nil without an error if
// that failed and may succeed later. The caller sets lost to zero when the connection works.
func (r *redialer) redial(ctx context.Context, c *common) (*client.Client, error) {
	if r.lost.IsZero() {
		r.lost, r.delays = time.Now(), backoff.Backoff{Initial: 100 * time.Millisecond, Max: 2 * time.Second}
	}
	if time.Since(r.lost) > reconnectTime {
		return nil, fmt.Errorf("no process has worked on %s for %v; start \"rolecall serve\" and %s", r.purpose, reconnectTime, r.again)
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(r.delays.Next()):
	}
	api, err := dialServing(ctx, c)
	if isConnectionError(err) {
		return nil, nil // the next attempt comes later
	}
	return api, err
}
