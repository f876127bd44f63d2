package gateway

import (
	"math"
	"net/http"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// listStanding returns the standing approvals that the sender may revoke.
func (a *api) listStanding(r *http.Request) (any, error) {
	list := a.rt.ListStanding(auth.SenderOf(r))
	return paginate(r, list, func(s runtime.StandingApproval) string { return creationKey(s.Since, s.ID) }, standingOf)
}

// revokeStanding ends a standing approval.
func (a *api) revokeStanding(r *http.Request) (any, error) {
	q, err := decode[wire.RevokeRequest](r)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	return wire.Revoked{ID: id}, a.rt.RevokeStanding(requesterOf(r), id, q.Reason)
}

func standingOf(s runtime.StandingApproval) wire.StandingApproval {
	out := wire.StandingApproval{
		ID: s.ID, Request: s.Request, Task: s.Task, Agent: s.Agent, Tool: s.Tool, Role: s.Role,
		Pattern: shownPattern(s.Pattern), Used: s.Used, Votes: votesOf(s.Votes), Since: s.Since,
	}
	if !s.Until.IsZero() {
		out.Until = &s.Until
	}
	return out
}

func shownPattern(p approval.Pattern) wire.ApprovalPattern {
	return wire.ApprovalPattern{Args: []byte(p.Args.String()), Uses: p.Uses, Seconds: int64(p.For / time.Second)}
}

// patternOf reads a pattern. It returns nil for nil.
func patternOf(p *wire.ApprovalPattern) (*approval.Pattern, error) {
	if p == nil {
		return nil, nil
	}
	invalid := func(text string) (*approval.Pattern, error) {
		return nil, errcode.New(errcode.InvalidArguments, "field \"pattern\": %s", text).With("field", "pattern")
	}
	if p.Seconds < 0 || p.Seconds > math.MaxInt64/int64(time.Second) {
		return invalid("seconds is out of range")
	}
	rule, err := bounds.ParseRule(p.Args)
	if err != nil {
		return invalid("args: " + err.Error() + "; see docs/bounds.md for the operators")
	}
	out := &approval.Pattern{Args: rule, Uses: p.Uses, For: time.Duration(p.Seconds) * time.Second}
	if err := out.Check(); err != nil {
		return invalid(err.Error())
	}
	return out, nil
}
