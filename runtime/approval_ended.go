package runtime

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// The limits of EndedApprovals: requests that it returns, and events that it searches for them.
const (
	maxEndedApprovals = 50
	maxEndedEvents    = 20_000
	maxEndedTime      = 100 * time.Millisecond // for which it searches; looked at every endedStep events
	endedStep         = 256
)

// EndedApproval is a request for approval that was decided or has ended otherwise. It says what became
// of the call, without its result.
type EndedApproval struct {
	Request  Approval                // who asks for what, Rules and Asked; it has no votes and no deadline
	Args     ApprovalArgs            // of the request, without long ones
	At       time.Time               // of the decision
	Decision journal.ApprovalDecided // the last one that is no vote
	Status   EndedStatus
	Code     errcode.Code // of a failed or denied call

	voters map[string]bool // who has voted, as identity.Principal.String
}

// EndedStatus says what became of a request that has ended.
type EndedStatus string

// The states of a request that has ended. The first three are of a call that is approved.
const (
	EndedApproved EndedStatus = "approved" // the call has not started
	EndedRunning  EndedStatus = "running"
	EndedOK       EndedStatus = "ok" // also an operation that was carried out
	EndedFailed   EndedStatus = "failed"
	EndedDenied   EndedStatus = "denied"
	EndedExpired  EndedStatus = "expired"
	EndedVoid     EndedStatus = "void"
)

// endedStatuses are the states by the outcomes of decisions.
var endedStatuses = map[string]EndedStatus{
	journal.ApprovalGiven: EndedApproved, journal.ApprovalUsed: EndedOK, journal.ApprovalRefused: EndedDenied, journal.ApprovalExpired: EndedExpired,
	journal.ApprovalVoid: EndedVoid,
}

// EndedApprovals returns the requests that were decided last, the newest decision first. Those are
// requests that by could see when they ended, or has voted about. It looks for them in the newest events
// only.
func (rt *Runtime) EndedApprovals(ctx context.Context, by identity.Principal) ([]*EndedApproval, error) {
	vote, ok := rt.voteOf(by)
	if !ok {
		return nil, nil
	}
	seen := func(e *EndedApproval) bool {
		return e.voters[by.String()] || e.Request.isShownTo(vote, e.At)
	}
	list, first, err := rt.endedRequests(ctx, seen)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, rt.addOutcomes(ctx, list, first)
}

// endedRequests returns the requests that have ended and that are seen. first is the number of the
// event before the first of their decisions.
func (rt *Runtime) endedRequests(ctx context.Context, seen func(*EndedApproval) bool) (list []*EndedApproval, first uint64, err error) {
	open, order, searched, begin := map[string]*EndedApproval{}, []*EndedApproval{}, 0, time.Now()
	for e, err := range rt.store.EventsBefore(ctx, isRequestEvent, math.MaxUint64) {
		if err != nil {
			return nil, 0, err
		}
		switch b := e.Body.(type) {
		case journal.ApprovalDecided:
			if open[b.Approval] == nil && b.Outcome == journal.ApprovalVoted {
				continue // it waits
			}
			if open[b.Approval] == nil {
				open[b.Approval] = &EndedApproval{At: e.At, Decision: b, Status: endedStatuses[b.Outcome], voters: map[string]bool{}}
				order = append(order, open[b.Approval])
			}
			open[b.Approval].addDecision(b)
			first = e.Seq - 1
		case journal.ApprovalRequested:
			if found := open[b.Approval]; found != nil && found.setRequest(e, b) && seen(found) {
				list = append(list, found)
			}
		}
		searched++
		if searched == maxEndedEvents || searched%endedStep == 0 && time.Since(begin) > maxEndedTime {
			break
		}
	}
	return newestEnded(order, list), first, nil
}

// newestEnded returns the requests of a list in an order, at most maxEndedApprovals.
func newestEnded(order, list []*EndedApproval) (newest []*EndedApproval) {
	in := make(map[*EndedApproval]bool, len(list))
	for _, e := range list {
		in[e] = true
	}
	for _, e := range order {
		if in[e] && len(newest) < maxEndedApprovals {
			newest = append(newest, e)
		}
	}
	return newest
}

// isRequestEvent reports whether an event is about a request.
func isRequestEvent(h journal.EventHead) bool {
	return h.IsType(journal.ApprovalRequested{}.EventType()) || h.IsType(journal.ApprovalDecided{}.EventType())
}

// addDecision adds an earlier decision about the same request. Of an operation that was carried out,
// the decision of the approver counts.
func (e *EndedApproval) addDecision(b journal.ApprovalDecided) {
	e.voters[b.By] = true
	if e.Decision.Outcome == journal.ApprovalUsed && b.Outcome == journal.ApprovalGiven {
		e.Decision = b
	}
	if e.Args.Edited == nil && b.Digest == e.Decision.Digest {
		e.Args.Edited = b.Args
	}
}

// setRequest sets what was asked. It reports false for a request that cannot be read.
func (e *EndedApproval) setRequest(event journal.Event, b journal.ApprovalRequested) bool {
	var rules approval.Rules
	if json.Unmarshal(b.Rules, &rules) != nil {
		return false
	}
	e.Args.Asked = b.Args
	e.Request = Approval{
		ID: b.Approval, Task: event.Task, Agent: event.Agent, Caller: b.Caller, Starter: b.For, Call: b.Call, Tool: b.Tool, Role: event.Role,
		Rules: rules, Asked: event.At, Operation: approval.Operation(b.Operation),
	}
	if b.Operation != "" {
		e.Request.Starter = b.Operator
	}
	return true
}

// addOutcomes adds what became of the calls that have used approvals. It reads the events after a number, which
// endedRequests has searched.
func (rt *Runtime) addOutcomes(ctx context.Context, list []*EndedApproval, after uint64) error {
	f := outcomeFold{byApproval: map[string]*EndedApproval{}, calls: map[identity.CallID]bool{}, running: map[string]*EndedApproval{}}
	for _, e := range list {
		f.byApproval[e.Request.ID] = e
	}
	for e, err := range rt.store.FollowMatching(ctx, f.match, after, journal.StoredOnly) {
		if err != nil {
			return err
		}
		f.add(e)
	}
	return nil
}

// outcomeFold adds the outcomes of calls to the requests that they have used.
type outcomeFold struct {
	byApproval map[string]*EndedApproval
	calls      map[identity.CallID]bool  // that have used one of them; two agents may have the same id
	running    map[string]*EndedApproval // by runningKey
}

// match reports whether an event is about a call that has used one of the requests.
func (f *outcomeFold) match(h journal.EventHead) bool {
	switch {
	case h.IsType(journal.ToolCall{}.EventType()):
		uses := f.byApproval[h.Approval()] != nil
		if uses {
			f.calls[h.Call()] = true
		}
		return uses
	case h.IsType(journal.ToolResult{}.EventType()), h.IsType(journal.ToolError{}.EventType()):
		return f.calls[h.Call()]
	}
	return false
}

// runningKey tells apart the calls of agents and callers.
func runningKey(e journal.Event, caller string, call identity.CallID) string {
	return string(e.Agent) + " " + caller + " " + string(call)
}

func (f *outcomeFold) add(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.ToolCall:
		found := f.byApproval[b.Approval]
		if b.Decision == journal.Denied {
			found.deny(b.Code)
			return
		}
		found.Status = EndedRunning
		f.running[runningKey(e, b.Caller, b.Call)] = found
	case journal.ToolResult:
		f.end(runningKey(e, b.Caller, b.Call), EndedOK, "")
	case journal.ToolError:
		f.end(runningKey(e, b.Caller, b.Call), EndedFailed, b.Code)
	}
}

// deny adds why the gate has denied the call. That people had to decide, or have refused, is known.
func (e *EndedApproval) deny(code errcode.Code) {
	if code != errcode.ApprovalRequired && code != errcode.ApprovalDenied {
		e.Code = code
	}
}

func (f *outcomeFold) end(key string, status EndedStatus, code errcode.Code) {
	if found := f.running[key]; found != nil {
		found.Status, found.Code = status, code
		delete(f.running, key)
	}
}
