package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/runtime"
)

// listDecidedApprovals returns the calls that were decided last and that the sender could approve.
func (a *api) listDecidedApprovals(r *http.Request) (any, error) {
	list, err := a.rt.EndedApprovals(r.Context(), auth.SenderOf(r))
	if err != nil {
		return nil, err
	}
	out := wire.DecidedApprovals{Approvals: []wire.DecidedApproval{}}
	for _, e := range list {
		out.Approvals = append(out.Approvals, a.decidedApprovalOf(r, e))
	}
	return out, nil
}

func (a *api) decidedApprovalOf(r *http.Request, e *runtime.EndedApproval) wire.DecidedApproval {
	p, d := e.Request, e.Decision
	return wire.DecidedApproval{
		ID: p.ID, Status: string(e.Status), Code: string(e.Code), Task: p.Task, TaskShort: a.taskShort(r.Context(), p.Task), Agent: p.Agent, AgentName: a.agentName(p.Agent), Caller: p.Caller, Starter: p.Starter, Tool: p.Tool, Role: p.Role,
		Operation: p.Operation, Short: e.Args.Short(), Before: e.Args.ShortBefore(), By: d.By, As: d.As, Reason: d.Reason, Override: d.Override, Asked: p.Asked, At: e.At,
	}
}
