package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/rolecall/rolecall/gateway/wire"
)

// Calls that wait for people.
type (
	Approval          = wire.Approval          // a call that waits until people approve it
	ApprovalChange    = wire.ApprovalChange    // what has changed about such a call
	ApprovalDecision  = wire.ApprovalDecision  // what a person decides
	ApprovalDecisions = wire.ApprovalDecisions // decisions about several calls
	NamedDecision     = wire.NamedDecision     // one of them
	ApprovalOutcome   = wire.ApprovalOutcome   // what has become of a decision
	ApprovalOutcomes  = wire.ApprovalOutcomes  // of several
	ApprovalPattern   = wire.ApprovalPattern   // further calls that a decision approves
	DecidedApproval   = wire.DecidedApproval   // a call that is decided, and what became of it
	StandingApproval  = wire.StandingApproval  // a pattern that was approved
)

// ListApprovals lists the calls that wait and that the sender may approve, oldest first.
func (c *Client) ListApprovals(ctx context.Context) iter.Seq2[Approval, error] {
	return listAll[Approval](ctx, c, apiPath("approvals"), nil)
}

// FollowApprovals yields the calls that wait and that the sender may approve. Then it yields an
// item of the type wire.ApprovalsListed. Then it yields changes until ctx ends. The last error
// wraps io.ErrUnexpectedEOF if the server ended the stream.
func (c *Client) FollowApprovals(ctx context.Context) iter.Seq2[ApprovalChange, error] {
	return func(yield func(ApprovalChange, error) bool) {
		answer, err := c.do(ctx, request{method: http.MethodGet, path: apiPath("approval-changes"), query: url.Values{"follow": {"1"}}, header: http.Header{"Accept": {wire.NDJSON}}})
		if err != nil {
			yield(ApprovalChange{}, err)
			return
		}
		defer answer.Body.Close()
		for d := json.NewDecoder(answer.Body); ; {
			var change ApprovalChange
			err := d.Decode(&change)
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				err = fmt.Errorf("follow approvals: %w", err)
			}
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// FindApproval returns a call that waits, with its arguments.
func (c *Client) FindApproval(ctx context.Context, id string) (Approval, error) {
	return doJSON[Approval](ctx, c, request{method: http.MethodGet, path: apiPath("approvals", id)})
}

// ListDecidedApprovals lists the last calls and operations that were decided, the newest decision first.
// Those are calls that the sender could approve.
func (c *Client) ListDecidedApprovals(ctx context.Context) ([]DecidedApproval, error) {
	list, err := doJSON[wire.DecidedApprovals](ctx, c, request{method: http.MethodGet, path: apiPath("decided-approvals")})
	return list.Approvals, err
}

// ListStandingApprovals lists the patterns by which further calls are approved, oldest first.
func (c *Client) ListStandingApprovals(ctx context.Context) iter.Seq2[StandingApproval, error] {
	return listAll[StandingApproval](ctx, c, apiPath("standing-approvals"), nil)
}

// RevokeStandingApproval ends a standing approval. No call that starts later uses it.
func (c *Client) RevokeStandingApproval(ctx context.Context, id, reason string) error {
	_, err := doJSON[wire.Revoked](ctx, c, request{method: http.MethodPost, path: apiPath("standing-approvals", id, "revoke"), body: wire.RevokeRequest{Reason: reason}})
	return err
}

// DecideApproval approves or denies a call.
func (c *Client) DecideApproval(ctx context.Context, id string, d ApprovalDecision) (ApprovalOutcome, error) {
	return doJSON[ApprovalOutcome](ctx, c, request{method: http.MethodPost, path: apiPath("approvals", id), body: d})
}

// DecideApprovals decides about several calls in one commit.
func (c *Client) DecideApprovals(ctx context.Context, list ApprovalDecisions) (ApprovalOutcomes, error) {
	return doJSON[ApprovalOutcomes](ctx, c, request{method: http.MethodPost, path: apiPath("approvals"), body: list})
}
