package client

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall/gateway/wire"
)

type (
	PauseRequest = wire.PauseRequest // names a task, a role or the organization
	PauseChange  = wire.PauseChange  // what was paused or resumed
	ActivePauses = wire.ActivePauses // the pauses of the organization and of roles
)

// Pause stops a task, a role or the organization until it is resumed. No call of it starts after
// Pause returns.
func (c *Client) Pause(ctx context.Context, q PauseRequest) (PauseChange, error) {
	return doJSON[PauseChange](ctx, c, request{method: http.MethodPost, path: apiPath("pause"), body: q})
}

// ListPauses returns the pauses of the organization and of roles.
func (c *Client) ListPauses(ctx context.Context) (ActivePauses, error) {
	return doJSON[ActivePauses](ctx, c, request{method: http.MethodGet, path: apiPath("pause")})
}

// Resume ends a pause. Work goes on where it stopped. The error has the code Conflict if a task
// or the organization is not paused.
func (c *Client) Resume(ctx context.Context, q PauseRequest) (PauseChange, error) {
	return doJSON[PauseChange](ctx, c, request{method: http.MethodPost, path: apiPath("resume"), body: q})
}
