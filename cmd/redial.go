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
	work   string // what the process works on, for the error: "the task"
	remedy string // what to do once a process serves again, for the error: "follow the task again"

	lostAt time.Time       // when the connection was lost; zero while it stands
	delays backoff.Backoff // between attempts to connect again
}

// redial waits and makes one attempt to connect to the process that serves now. If that fails and
// may succeed later, it returns a nil client and a nil error, and the caller calls it again. The
// caller sets lostAt to zero when the connection works.
func (r *redialer) redial(ctx context.Context, c *common) (*client.Client, error) {
	if r.lostAt.IsZero() {
		r.lostAt, r.delays = time.Now(), backoff.Backoff{Initial: 100 * time.Millisecond, Max: 2 * time.Second}
	}
	if time.Since(r.lostAt) > reconnectTime {
		return nil, fmt.Errorf("no process has worked on %s for %v; start \"rolecall serve\" and %s", r.work, reconnectTime, r.remedy)
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
