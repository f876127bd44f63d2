package runtime

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// The kind and the key of the only record of the active Oversight. The record makes the Oversight
// valid from the start on, whatever configuration is loaded.
const (
	kindOversight = "oversight"
	oversightKey  = "active"
)

// ownerName is the name of the operator who holds the data directory or the start-up token. The
// configuration files are on the machine of this operator. So this operator asks for their changes.
const ownerName = "operator"

// Requester is the operator who asks for an operation.
type Requester struct {
	By   identity.Principal
	Auth string // how the operator was authenticated, for the record
}

// operation is something that an operator does and that may wait for people.
type operation struct {
	kind    approval.Operation
	subject string   // what the operation changes; another change of that makes an approval void
	request any      // what was asked for, as JSON: the same request uses the approval
	bound   []string // what an approval is bound to besides the request
	text    any      // what approvers see, as JSON
}

// key returns the key of the approval for a request of an operator.
func (op *operation) key(user identity.UserName) ApprovalHash {
	request, _ := json.Marshal(op.request) // texts and specifications always marshal
	return hashTexts("operation", string(user), string(op.kind), op.subject, approval.DigestJSON(request))
}

// Operation is an operation whose effect is not a change of the organization.
type Operation struct {
	Kind    approval.Operation
	Subject string // names what it changes
	Request any    // what was asked for, as JSON; approvers see it
	Base    any    // what is there now, as JSON; approvers see it, and a change of it makes the approval void
}

func (o Operation) operation() *operation {
	base, _ := json.Marshal(o.Base) // requestOperation rejects a Base without JSON
	return &operation{
		kind: o.Kind, subject: o.Subject, request: o.Request, bound: []string{approval.DigestJSON(base)},
		text: map[string]any{"operation": o.Kind, "subject": o.Subject, "request": o.Request, "now": o.Base},
	}
}

// UseOperationApproval returns nil if an operation may be carried out now: no Oversight covers it, or
// people have approved it. Then the approval is used up. Otherwise the request is recorded.
//
// Errors: ApprovalRequired with the id in the detail "approval", ApprovalDenied, and
// LimitExceeded if too many requests wait.
func (rt *Runtime) UseOperationApproval(from Requester, o Operation) error {
	return rt.requireApproval(from, o.operation(), rt.useApproval)
}

// requestApproval is UseOperationApproval for an operation that is carried out later. The approval
// is not used up.
func (rt *Runtime) requestApproval(from Requester, op *operation) error {
	return rt.requireApproval(from, op, func(*journal.Batch, Requester, Approval) {})
}

// requireApproval returns nil if an operation is approved or needs no approval. It calls approved with
// the approval, within the commit. Without an approval it records the request.
func (rt *Runtime) requireApproval(from Requester, op *operation, approved func(*journal.Batch, Requester, Approval)) error {
	if !rt.needsApproval(from.By, op.kind) {
		return nil
	}
	var held error
	_, err := rt.flushAndCommit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		if !rt.needsApproval(from.By, op.kind) {
			return nil
		}
		granted, err := rt.judgeOperation(b, from, op)
		if held = err; err == nil {
			approved(b, from, granted)
		}
		return nil
	}})
	return cmp.Or(err, held)
}

// ActiveOversight returns which operations of operators wait for people, nil if none do. The
// caller must not change it.
func (rt *Runtime) ActiveOversight() *approval.Oversight { return rt.oversight.Load() }

// needsApproval reports whether an operation of a principal needs an approval.
func (rt *Runtime) needsApproval(by identity.Principal, kind approval.Operation) bool {
	return by.Kind == identity.Operator && rt.oversight.Load().Covers(kind)
}

// judgeOperation returns the approval that a held operation may use, and does not use it up.
// Without an approval it adds a request to the batch and returns why the operation is held. The
// batch must be committed. judgeOperation is called within a commit.
func (rt *Runtime) judgeOperation(b *journal.Batch, from Requester, op *operation) (granted Approval, held error) {
	rules := rt.oversight.Load().Rules()
	bound := hashTexts(append([]string{rules.Digest()}, op.bound...)...)
	a, ok := rt.approvals.byCall(op.key(from.By.User))
	now := rt.now()
	switch {
	case !ok:
	case a.Bound != bound:
		rt.endApproval(b, a, journal.ApprovalVoid, "what it changes, or the rule, is not as it was")
	case a.Status == ApprovalDenied:
		rt.approvals.remove(b, a.ID)
		return a, deniedError(a, "denied")
	case !a.canExpire() || !now.Before(a.Until):
		rt.endApproval(b, a, journal.ApprovalExpired, "")
		return a, deniedError(a, "deadline")
	case a.Status == ApprovalWaiting:
		return a, operationRequired(a)
	case rt.isApproved(&a):
		return a, nil
	default:
		rt.endApproval(b, a, journal.ApprovalVoid, "an approver has no active role any more")
	}
	return a, rt.requestOperation(b, from, op, bound)
}

// requestOperation adds the request for an operation to a batch and returns why it is held.
func (rt *Runtime) requestOperation(b *journal.Batch, from Requester, op *operation, bound ApprovalHash) error {
	if err := rt.approvals.checkRoom(string(from.By.User)); err != nil {
		return err
	}
	text, err := json.Marshal(op.text)
	if err != nil {
		return err
	}
	now, rules := rt.now(), rt.oversight.Load().Rules()
	a := Approval{
		ID: identity.NewID(), Status: ApprovalWaiting, Operation: op.kind, Subject: op.subject, Tool: string(op.kind), Starter: string(from.By.User),
		Rules: rules, Epoch: rt.org.CurrentEpoch(), Asked: now, Until: now.Add(rules.Deadline()),
		Digest: approval.DigestJSON(text), Key: op.key(from.By.User), Bound: bound,
	}
	a.Asks = a.Digest
	e := journal.ApprovalRequested{Operation: string(a.Operation), Operator: a.Starter, Auth: from.Auth}
	rt.recordRequest(b, a, e, text, func(body journal.EventBody) journal.Event { return journal.Event{At: now, Body: body} })
	return operationRequired(a)
}

func operationRequired(a Approval) error {
	return errcode.New(errcode.ApprovalRequired, "%s waits for the approval of other people: send the same request again when the request %s is approved", a.Tool, a.ID).With("approval", a.ID)
}

// useApproval uses up the approval for an operation. An approval without an id is ignored.
// useApproval is called within the commit of the operation, after judgeOperation.
func (rt *Runtime) useApproval(b *journal.Batch, from Requester, a Approval) {
	if a.ID == "" {
		return
	}
	e := rt.approvalEvent(a, journal.ApprovalDecided{Outcome: journal.ApprovalUsed, By: from.By.String(), Auth: from.Auth})
	b.Events = append(b.Events, e)
	rt.approvals.remove(b, a.ID)
}

// judgeOverride returns why an override is held, nil if it is not held. An override approves a call
// in place of its approvers. args are the arguments that the votes are about. The approval of the
// override is used up. judgeOverride is called within the commit of the decision.
func (rt *Runtime) judgeOverride(b *journal.Batch, from Requester, a Approval, d ApprovalDecision, args json.RawMessage) error {
	if !rt.needsApproval(from.By, approval.Override) {
		return nil
	}
	call := map[string]any{"approval": a.ID, "tool": a.Tool, "role": a.Role, "digest": a.Digest, "reason": d.Reason}
	if d.Args != nil {
		call["args"] = d.Args
	}
	op := operation{
		kind: approval.Override, subject: a.ID, request: call, bound: []string{a.Digest, string(a.Bound[:])},
		text: map[string]any{"operation": approval.Override, "request": call},
	}
	if d.Args == nil { // otherwise the request has the arguments
		op.text = map[string]any{"operation": approval.Override, "request": call, "args": shownArgs(args)}
	}
	granted, held := rt.judgeOperation(b, from, &op)
	if held == nil {
		rt.useApproval(b, from, granted)
	}
	return held
}

// shownArgs returns arguments as approvers of an override read them. Large arguments become a
// shortened text.
func shownArgs(args json.RawMessage) any {
	if len(args) <= maxEventArgs {
		return args
	}
	return textutil.Truncate(string(args), maxEventArgs)
}

// voidOperations ends the requests for operations that match. It is called within a commit.
func (rt *Runtime) voidOperations(b *journal.Batch, reason string, match func(*Approval) bool) {
	if rt.approvals.isEmpty() {
		return
	}
	for _, a := range rt.approvals.list(func(a *Approval) bool { return a.Operation != "" && match(a) }) {
		rt.endApproval(b, a, journal.ApprovalVoid, reason)
	}
}

// fromFiles is the Requester of what the configuration files say.
var fromFiles = Requester{By: identity.ByOperator(ownerName), Auth: "configuration files"}

// changesOversight reports whether a configuration has another Oversight than the active one.
func (rt *Runtime) changesOversight(s OrgConfig) bool {
	return !s.KeepRoles && !rt.oversight.Load().Equal(s.Oversight)
}

// judgeOversight returns the approval that a change of the Oversight may use, or why the change is
// held. The people of the active Oversight must approve the change. judgeOversight is called within
// a commit, as judgeOperation is.
func (rt *Runtime) judgeOversight(b *journal.Batch, s OrgConfig) (granted Approval, held error) {
	now := rt.oversight.Load()
	if now == nil || !rt.changesOversight(s) {
		return Approval{}, nil
	}
	return rt.judgeOperation(b, fromFiles, &operation{
		kind: approval.ChangeOversight, request: s.Oversight,
		text: map[string]any{"operation": approval.ChangeOversight, "now": now, "next": s.Oversight},
	})
}

// setOversight makes the Oversight of a configuration active and uses the approval for that. All
// other requests for operations are void. It is called within a commit.
func (rt *Runtime) setOversight(b *journal.Batch, s OrgConfig, granted Approval) {
	if !rt.changesOversight(s) {
		return
	}
	rt.useApproval(b, fromFiles, granted)
	rt.voidOperations(b, "the rule has changed", func(*Approval) bool { return true })
	rt.oversight.Store(s.Oversight)
	record := journal.Record{Kind: kindOversight, Key: oversightKey}
	if s.Oversight != nil {
		record.Value, _ = json.Marshal(s.Oversight) // names and times always marshal
	}
	b.Put = append(b.Put, record)
}

// checkOversight returns an error unless the Oversight of a configuration is valid.
func checkOversight(s OrgConfig) error {
	if err := s.Oversight.Check(); err != nil {
		return errcode.New(errcode.InvalidConfig, "oversight: %s", err)
	}
	return nil
}

// loadOversight reads the active Oversight. A damaged record is an error: without the Oversight,
// operations that need approval would need none.
func (rt *Runtime) loadOversight() error {
	for r, err := range rt.store.ReadRecords(rt.ctx, kindOversight, "") {
		o := new(approval.Oversight)
		if err == nil {
			err = json.Unmarshal(r.Value, o)
		}
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			return fmt.Errorf("the record of the rule is damaged; restore a backup: %w", err)
		}
		rt.oversight.Store(o)
	}
	return nil
}

// revisionText returns a revision for operation.bound.
func revisionText(n uint64) string { return strconv.FormatUint(n, 10) }
