package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// editedSuffix is added to the id of a request in the key of the arguments that an approver has
// set.
const editedSuffix = "/edited"

// requestApprovals adds the requests of calls that wait, and that no person was asked about, to a
// batch. A request for the same call that is bound to something else ends.
func (rt *Runtime) requestApprovals(b *journal.Batch, p identity.Principal, calls []*gate.Admission, reason string, event func(journal.EventBody) journal.Event) {
	for _, c := range calls {
		need, asks := c.Need()
		if !asks || c.Allowed() || c.Approval() == "" || !c.Waiting() && c.Code() != errcode.ApprovalRequired {
			continue
		}
		if _, known := rt.approvals.find(c.Approval()); known {
			continue
		}
		a := rt.newApproval(p, c, reason)
		if old, ok := rt.approvals.byCall(a.Key); ok {
			rt.endApproval(b, old, journal.ApprovalVoid, "the call, its tool or its role has changed, or an approver may not approve any more")
		}
		e := journal.ApprovalRequested{For: a.Starter, Call: a.Call, Definition: need.Definition, Reason: a.Reason, Caller: a.Caller}
		rt.recordRequest(b, a, e, c.Request.Args, event)
	}
}

// recordRequest adds a new request, its arguments and its event to a batch. It sets the fields of
// the event that requests for calls and for operations have in common. It is called within a commit.
func (rt *Runtime) recordRequest(b *journal.Batch, a Approval, e journal.ApprovalRequested, args json.RawMessage, event func(journal.EventBody) journal.Event) {
	e.Approval, e.Tool, e.Digest, e.Epoch, e.Until = a.ID, a.Tool, a.Digest, a.Epoch, a.Until
	e.Rules, _ = json.Marshal(a.Rules) // rules always marshal
	if len(args) <= maxEventArgs {
		e.Args = args
	}
	b.Events = append(b.Events, event(e))
	rt.storeApproval(b, a)
	b.Put = append(b.Put, journal.Record{Kind: kindApprovalArgs, Key: a.ID, Value: args})
}

// storeApproval writes a request. It is called within a commit.
func (rt *Runtime) storeApproval(b *journal.Batch, a Approval) {
	rt.approvals.put(a)
	b.Put = append(b.Put, journal.Record{Kind: kindApproval, Key: a.ID, Value: a.encode()})
}

// checkApprovals returns gate.ErrSuperseded if the approval of an allowed call is not granted any more.
// It also does so if another request for a denied call was recorded since. It is called within the
// commit that starts the call.
func (rt *Runtime) checkApprovals(p identity.Principal, calls []*gate.Admission) error {
	uses := map[string]int{} // of standing approvals, by id
	for _, c := range calls {
		need, asks := c.Need()
		if asks && c.Code() == errcode.ApprovalRequired {
			same, ok := rt.requestFor(p, c.Request.Call, need)
			if ok && same.ID != c.Approval() && rt.isBound(&same, p, c.Request.Call, need) {
				return gate.ErrSuperseded // the same call was made at the same time
			}
		}
		if asks && c.Waiting() && !rt.mayCall(p, c.Request.Name) {
			return gate.ErrSuperseded // the tool was lost since the decision
		}
		if !asks || !c.Allowed() {
			continue
		}
		if s, ok := rt.standing.find(c.Approval()); ok {
			uses[s.ID]++
			if s.Pattern.Uses > 0 && uses[s.ID] > s.Left || !rt.covers(&s, p, c.Request.Call, need) {
				return gate.ErrSuperseded
			}
			continue
		}
		a, ok := rt.approvals.find(c.Approval())
		if !ok || a.Status != ApprovalGranted || !rt.now().Before(a.Until) || a.Digest != need.Args || !rt.isBound(&a, p, c.Request.Call, need) {
			return gate.ErrSuperseded
		}
	}
	return nil
}

// useApprovals removes the approvals that calls use, and the refusals that end calls. The
// request of an agent's call that was denied for another reason, or that needs none any more, is
// void. It is called within the commit that records the decisions, after checkApprovals.
func (rt *Runtime) useApprovals(b *journal.Batch, p identity.Principal, calls []*gate.Admission) {
	if rt.approvals.isEmpty() && rt.standing.isEmpty() {
		return
	}
	for _, c := range calls {
		if p.Kind == identity.Agent {
			rt.standing.release(p.Agent, c.Request.ID)
		}
		if c.Waiting() {
			continue
		}
		_, asks := c.Need()
		if covered := asks && c.Allowed() && rt.useStanding(b, c.Approval()); !covered && asks && (c.Allowed() || c.Code() == errcode.ApprovalDenied) {
			rt.approvals.remove(b, c.Approval())
			continue
		}
		if a, ok := rt.approvals.byCall(agentKey(p.Agent, c.Request.ID)); ok && p.Kind == identity.Agent {
			reason := "the call was denied"
			if c.Allowed() { // or a standing approval covers it
				reason = "the call needs no approval any more"
			}
			rt.endApproval(b, a, journal.ApprovalVoid, reason)
		}
	}
}

// endApproval ends a request whose call will not run, and records why.
func (rt *Runtime) endApproval(b *journal.Batch, a Approval, outcome, reason string) {
	b.Events = append(b.Events, rt.approvalEvent(a, journal.ApprovalDecided{Outcome: outcome, Reason: reason}))
	rt.approvals.remove(b, a.ID)
}

// voidApprovals ends the requests of a task whose calls will not run. It is called within a
// commit.
func (rt *Runtime) voidApprovals(b *journal.Batch, task identity.TaskID, reason string, match func(*Approval) bool) {
	if !rt.approvals.hasRequests(task) {
		return
	}
	for _, a := range rt.approvals.list(match) {
		rt.endApproval(b, a, journal.ApprovalVoid, reason)
	}
}

// mayCall reports whether a principal may call a tool now.
func (rt *Runtime) mayCall(p identity.Principal, tool string) bool {
	return rt.gate.Subject(p).AuthorizeTool(tool).Allowed()
}

// callableRequests returns the requests whose agents and callers may call the tool now. It
// considers the requests that a change of the role may concern. With allRoles it considers all
// requests. It is called within a commit, before the change.
func (rt *Runtime) callableRequests(role identity.RoleID) []*Approval {
	return slices.DeleteFunc(rt.requestsConcerned(role), func(a *Approval) bool { return !rt.mayCall(a.principal(), a.Tool) })
}

// allRoles stands for all roles in callableRequests.
const allRoles identity.RoleID = ""

// requestsConcerned returns the requests for calls that a change of a role may concern, in no order.
func (rt *Runtime) requestsConcerned(role identity.RoleID) []*Approval {
	switch {
	case rt.approvals.isEmpty():
		return nil
	case role == allRoles:
		return rt.approvals.callRequests()
	}
	return rt.approvals.callRequestsOf(rt.org.RolesConcerned(role))
}

// lostRequests are requests that ended because their callers have lost the tool.
type lostRequests struct {
	list  []Approval
	tasks []*taskRun // acquired until wakeLost; a task may be in it more than once
}

// voidLost ends the requests in callable whose agents and callers have lost the tool. A change
// of roles since then has taken it away. A pause takes no tool away. The calls are decided
// again after the commit, and denied. Pass the result to wakeLost then.
func (rt *Runtime) voidLost(b *journal.Batch, callable []*Approval) (lost lostRequests) {
	for _, a := range callable {
		if d := rt.gate.Subject(a.principal()).AuthorizeTool(a.Tool); d.Rule() == toolgroups.NotGranted && d.Suspended() == "" {
			lost.list = append(lost.list, *a)
		}
	}
	slices.SortFunc(lost.list, byAsked)
	for _, a := range lost.list {
		if run := rt.tracker.acquire(a.Task); run != nil { // the request does not keep the task from ending any more
			lost.tasks = append(lost.tasks, run)
		}
		rt.endApproval(b, a, journal.ApprovalVoid, "the tool is not available to the role any more")
	}
	rt.voidLostStanding(b)
	return lost
}

// lostInPause returns the requests whose agents and callers have lost the tool while a role was
// paused, which has just been resumed. Tools of closed groups are not lost.
func (rt *Runtime) lostInPause(role identity.RoleID) []*Approval {
	return slices.DeleteFunc(rt.requestsConcerned(role), func(a *Approval) bool { return rt.isClosed(a.principal(), a.Tool) })
}

// isClosed reports whether hours keep a tool from a principal.
func (rt *Runtime) isClosed(p identity.Principal, name string) bool {
	h, ok := rt.config.Groups.CurrentSnapshot().LookupTool(name)
	if !ok {
		return false
	}
	limits := rt.org.LimitsOnCaller
	if p.Kind == identity.Agent {
		limits = func(p identity.Principal, h *toolgroups.ToolHandle) []org.PermissionLimit {
			return rt.org.LimitsOnAgent(p.Agent, h)
		}
	}
	return slices.ContainsFunc(limits(p, h), func(l org.PermissionLimit) bool { return l.Closed != "" })
}

// wakeLost lets the agents go on whose requests voidLost has ended.
func (rt *Runtime) wakeLost(lost lostRequests) {
	rt.wakeDecided(lost.list)
	for _, run := range lost.tasks {
		rt.releaseOrEnd(run)
	}
}

// approvalEvent returns the event of a decision about a request.
func (rt *Runtime) approvalEvent(a Approval, d journal.ApprovalDecided) journal.Event {
	d.Approval, d.Call, d.Tool, d.Digest, d.Caller, d.Waited = a.ID, a.Call, a.Tool, a.Digest, a.Caller, rt.now().Sub(a.Asked)
	return journal.Event{At: rt.now(), Task: a.Task, Agent: a.Agent, Role: a.Role, Body: d}
}

// expireApprovals records which requests escalate, and ends the time of others. The calls of these
// are decided again, and denied.
func (rt *Runtime) expireApprovals() {
	if rt.tracker.beginWork() != nil {
		return
	}
	defer rt.tracker.work.Done()
	var ended []Approval
	_, err := rt.flushAndCommit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		rt.expireStanding(b)
		for _, a := range rt.approvals.due() {
			if rt.now().Before(a.Until) {
				rt.escalateApproval(b, a)
				continue
			}
			b.Events = append(b.Events, rt.approvalEvent(a, journal.ApprovalDecided{Outcome: journal.ApprovalExpired}))
			if a.Status = ApprovalExpired; a.Agent == "" {
				rt.approvals.remove(b, a.ID) // the same call is asked about again
				continue
			}
			rt.storeApproval(b, a)
			ended = append(ended, a)
		}
		return nil
	}})
	if err != nil {
		rt.log.Error("requests for approval not ended", "error", err)
	}
	rt.wakeDecided(ended)
}

// escalateApproval records that more people may approve a request now. It is called within a
// commit.
func (rt *Runtime) escalateApproval(b *journal.Batch, a Approval) {
	for {
		e, ok := a.nextEscalation()
		if !ok || rt.now().Before(a.Asked.Add(e.After)) {
			break
		}
		a.Escalated++
		b.Events = append(b.Events, journal.Event{At: rt.now(), Task: a.Task, Agent: a.Agent, Role: a.Role, Body: journal.ApprovalEscalated{
			Approval: a.ID, Call: a.Call, Tool: a.Tool, Digest: a.Digest, To: e.To.String(), Until: a.Until, Caller: a.Caller,
		}})
	}
	rt.storeApproval(b, a)
}

// wakeDecided lets the agents go on whose calls were decided about.
func (rt *Runtime) wakeDecided(list []Approval) {
	for _, a := range list {
		if a.Agent != "" {
			rt.wake(a.Agent)
		}
	}
}

// readyCalls returns the open calls of the agent that wait for no person, with the arguments that
// approvers have set.
func (a *actor) readyCalls() []model.Call {
	if a.rt.approvals.isEmpty() {
		return a.state.pending
	}
	var ready []model.Call
	for _, c := range a.state.pending {
		found, ok := a.rt.approvals.byCall(agentKey(a.agent.ID, c.ID))
		if !ok || found.Status != ApprovalWaiting {
			ready = append(ready, c)
		}
	}
	return ready
}

// useEdited replaces the arguments of a call by the arguments that an approver has set, if any. It
// leaves the arguments of a call whose approval is void as they are: people are asked again.
func (rt *Runtime) useEdited(ctx context.Context, p identity.Principal, c *gate.CallRequest) error {
	if rt.approvals.isEmpty() { // else the arguments are parsed, for their digest
		return nil
	}
	found, ok := rt.approvals.byCall(rt.approvalKey(p, c.Call, approval.DigestJSON(c.Args)))
	if !ok || !found.Edited || found.Status != ApprovalGranted {
		return nil
	}
	args, err := rt.readApprovalArgs(ctx, &found)
	if err != nil {
		return err
	}
	edited := c.Call
	edited.Args = args.Edited
	need, err := rt.gate.CheckEdited(ctx, p, edited, found.ID)
	if err == nil && !rt.isBound(&found, p, edited, need) {
		return nil
	}
	c.Call, c.Edited = edited, found.ID // the gate denies what it has denied now
	return nil
}

// editedResult is the result of a call with arguments that an approver has set.
type editedResult struct {
	Note   string          `json:"note"`
	Args   json.RawMessage `json:"approvedArguments"`
	Result json.RawMessage `json:"result"`
}

// withEditedArgs returns the result of a call as its agent reads it: with the arguments, if an
// approver has set them.
func (a *actor) withEditedArgs(c *gate.Admission, result json.RawMessage) json.RawMessage {
	at := slices.IndexFunc(a.state.pending, func(p model.Call) bool { return p.ID == c.Request.ID })
	if c.Approval() == "" || !c.Allowed() || at < 0 || approval.DigestJSON(a.state.pending[at].Args) == approval.DigestJSON(c.Request.Args) {
		return result
	}
	told, err := json.Marshal(editedResult{"The person who approved the call has changed its arguments. It ran with approvedArguments.", c.Request.Args, result})
	if err != nil { // the result is no JSON
		return result
	}
	return told
}

// shortReason returns the beginning of a text that an agent writes.
func shortReason(text string) string {
	return textutil.Truncate(strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD"), maxApprovalReason)
}
