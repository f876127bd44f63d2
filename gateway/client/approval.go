package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/rolecall/rolecall/gateway/wire"
)

// Calls that wait for people.
type (
	Approval          = wire.Approval          // a call that waits until people approve it
	ApprovalDecision  = wire.ApprovalDecision  // what a person decides
	ApprovalDecisions = wire.ApprovalDecisions // decisions about several calls
	NamedDecision     = wire.NamedDecision     // one of them
	ApprovalOutcome   = wire.ApprovalOutcome   // what has become of a decision
	ApprovalOutcomes  = wire.ApprovalOutcomes  // of several
)

// ListApprovals lists the calls that wait and that the sender may approve, oldest first.
func (c *Client) ListApprovals(ctx context.Context) iter.Seq2[Approval, error] {
	return listAll[Approval](ctx, c, apiPath("approvals"), nil)
}

// FindApproval returns a call that waits, with its arguments.
func (c *Client) FindApproval(ctx context.Context, id string) (Approval, error) {
	return doJSON[Approval](ctx, c, request{method: http.MethodGet, path: apiPath("approvals", id)})
}

// DecideApproval approves or denies a call.
func (c *Client) DecideApproval(ctx context.Context, id string, d ApprovalDecision) (ApprovalOutcome, error) {
	return doJSON[ApprovalOutcome](ctx, c, request{method: http.MethodPost, path: apiPath("approvals", id), body: d})
}

// DecideApprovals decides about several calls in one commit.
func (c *Client) DecideApprovals(ctx context.Context, list ApprovalDecisions) (ApprovalOutcomes, error) {
	return doJSON[ApprovalOutcomes](ctx, c, request{method: http.MethodPost, path: apiPath("approvals"), body: list})
}
