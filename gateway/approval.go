package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/runtime"
)

// listApprovals returns the calls that wait and that the sender may approve.
func (a *api) listApprovals(r *http.Request) (any, error) {
	list := a.rt.ListApprovals(auth.SenderOf(r))
	return paginate(r, list, func(p runtime.Approval) string { return creationKey(p.Asked, p.ID) }, func(p runtime.Approval) wire.Approval { return a.listedApproval(r, p) })
}

// showApproval returns one call that waits, with its arguments.
func (a *api) showApproval(r *http.Request) (any, error) {
	found, args, err := a.rt.FindApprovalRequest(r.Context(), auth.SenderOf(r), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := a.approvalOf(r, found)
	out.Args, out.Edited, out.Text, out.Short = args.Asked, args.Edited, argsText(args), args.Short()
	out.Refusal = a.rt.ApproverRefusal(auth.SenderOf(r), &found)
	return out, nil
}

// argsText returns the arguments that the votes are about as a person reads them. A program in
// between would round numbers.
func argsText(args runtime.ApprovalArgs) string {
	var out bytes.Buffer
	if json.Indent(&out, args.Current(), "", "  ") != nil {
		return ""
	}
	return string(textutil.EscapeUnprintable(out.Bytes()))
}

// decideApproval records a decision of the sender about one call.
func (a *api) decideApproval(r *http.Request) (any, error) {
	d, err := decode[wire.ApprovalDecision](r)
	if err != nil {
		return nil, err
	}
	out, err := a.decideAll(r, []wire.NamedDecision{{ID: r.PathValue("id"), ApprovalDecision: d}})
	if err != nil {
		return nil, err
	}
	if out[0].Err != nil {
		return nil, out[0].Err
	}
	return outcomeOf(out[0]), nil
}

// decideApprovals records the decisions of the sender about several calls.
func (a *api) decideApprovals(r *http.Request) (any, error) {
	list, err := decode[wire.ApprovalDecisions](r)
	if err != nil {
		return nil, err
	}
	if len(list.Decisions) == 0 {
		return nil, errcode.New(errcode.InvalidArguments, "field \"decisions\" is missing: name a request and an action in each").With("field", "decisions")
	}
	decided, err := a.decideAll(r, list.Decisions)
	if err != nil {
		return nil, err
	}
	out := wire.ApprovalOutcomes{Outcomes: []wire.ApprovalOutcome{}}
	for _, o := range decided {
		out.Outcomes = append(out.Outcomes, outcomeOf(o))
	}
	return out, nil
}

func (a *api) decideAll(r *http.Request, list []wire.NamedDecision) ([]runtime.ApprovalOutcome, error) {
	decisions := make([]runtime.ApprovalDecision, len(list))
	for i, d := range list {
		if d.Action != "approve" && d.Action != "deny" {
			return nil, errcode.New(errcode.InvalidArguments, "field \"action\" is %.80q; want approve or deny", d.Action).With("field", "action")
		}
		pattern, err := patternOf(d.Pattern)
		if err != nil {
			return nil, err
		}
		decisions[i] = runtime.ApprovalDecision{ID: d.ID, Approve: d.Action == "approve", Args: d.Args, Reason: d.Reason, Override: d.Override, Digest: d.Digest, Pattern: pattern}
	}
	return a.rt.DecideApprovals(r.Context(), auth.SenderOf(r), a.authOf(r), decisions)
}

// authOf returns how the sender of a request was authenticated.
func (a *api) authOf(r *http.Request) runtime.ApproverAuth {
	by := runtime.ApproverAuth{How: howAuthenticated(r)}
	if a.sessions != nil {
		by.Credential = a.sessions.CredentialOf(r)
	}
	return by
}

// howAuthenticated says how the sender of a request was authenticated, for the record.
func howAuthenticated(r *http.Request) string {
	switch {
	case r.Header.Get("Authorization") != "":
		return "token of " + string(auth.SenderOf(r).User)
	case auth.IsLocalOwner(r):
		return "owner of the data directory"
	}
	return "session of " + string(auth.SenderOf(r).User)
}

// requesterOf returns the operator who sends a request.
func requesterOf(r *http.Request) runtime.Requester {
	return runtime.Requester{By: auth.SenderOf(r), Auth: howAuthenticated(r)}
}

func outcomeOf(o runtime.ApprovalOutcome) wire.ApprovalOutcome {
	out := wire.ApprovalOutcome{ID: o.ID, Outcome: o.Outcome, Standing: o.Standing}
	if o.Err != nil {
		out.Code, out.Message = string(errcode.CodeOf(o.Err)), errcode.Message(o.Err)
	}
	return out
}

// listedApproval returns a request as a list shows it, with the beginning of its arguments. They are read
// for what is shown, and are missing for a request that has ended meanwhile.
func (a *api) listedApproval(r *http.Request, p runtime.Approval) wire.Approval {
	out := a.approvalOf(r, p)
	if _, args, err := a.rt.FindApprovalRequest(r.Context(), auth.SenderOf(r), p.ID); err == nil {
		out.Short = args.Short()
	}
	return out
}

func (a *api) approvalOf(r *http.Request, p runtime.Approval) wire.Approval {
	out := wire.Approval{
		ID: p.ID, Status: string(p.Status), Task: p.Task, Agent: p.Agent, Caller: p.Caller, Starter: p.Starter, Call: p.Call, Tool: p.Tool, Role: p.Role,
		Reason: p.Reason, Rules: p.Rules, Operation: p.Operation, Votes: []wire.ApprovalVote{}, Digest: p.Digest, Asked: p.Asked, Until: p.Until,
	}
	out.Votes = append(out.Votes, votesOf(p.Votes)...)
	out.TaskShort, out.AgentName = a.taskShort(r.Context(), p.Task), a.agentName(p.Agent)
	return out
}

// maxTaskShort bounds the text of a task that approvers read, in bytes.
const maxTaskShort = 160

// taskShort returns the beginning of the text of a task, for approvers: they may decide about its
// calls and may not see the task. It returns "" for no task.
func (a *api) taskShort(ctx context.Context, id identity.TaskID) string {
	if id == "" {
		return ""
	}
	task, err := a.rt.TaskRecord(ctx, id)
	if err != nil {
		return ""
	}
	return textutil.OneLine(textutil.Sanitize(textutil.Prefix(task.Text, 4*maxTaskShort)), maxTaskShort)
}

// agentName returns the name of an agent, "" for no agent.
func (a *api) agentName(id identity.AgentID) string {
	agent, _ := a.rt.Org().AgentByID(id)
	return agent.Name
}

func votesOf(votes []runtime.ApprovalVote) []wire.ApprovalVote {
	list := []wire.ApprovalVote{}
	for _, v := range votes {
		vote := wire.ApprovalVote{By: v.By, As: v.As, Auth: v.Auth, At: v.At}
		if v.Pattern != nil {
			shown := shownPattern(*v.Pattern)
			vote.Pattern = &shown
		}
		list = append(list, vote)
	}
	return list
}
