package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// ApprovalDecision is what one person decides about a request.
type ApprovalDecision struct {
	ID       string
	Approve  bool            // else the call is denied
	Args     json.RawMessage // that replace the arguments of the call, if not nil; the votes so far are void
	Reason   string          // of a denial, which the agent reads, or of an override
	Override bool            // the operator approves in place of the approvers; needs a reason
	Digest   string          // of the arguments that the person saw; "" is not compared

	// Pattern also approves further calls of the agent that fit it, once the votes of people for
	// the same pattern satisfy the rules. Nil approves this call only.
	Pattern *approval.Pattern
}

// ApprovalOutcome is what has become of a decision.
type ApprovalOutcome struct {
	ID      string
	Outcome string // of journal.ApprovalDecided: vote, approved or denied; "" after an error
	Err     error  // why the decision does not count, with an errcode.Code

	Standing string // id of the StandingApproval that there is now, if the decision had a pattern
}

// maxDecided is how many decisions one commit has.
const maxDecided = 1000

// ApproverAuth says how an approver was authenticated.
type ApproverAuth struct {
	How string // for the record

	// Credential names the credential of the person, for SetCredentialCheck. It is "" for access that
	// cannot be revoked, such as access to the data directory.
	Credential string
}

// DecideApprovals records the decisions of a person, in one commit, and lets the agents go on
// whose calls may be decided now. It returns one outcome for each decision, in order. One that
// does not count does not affect the others.
//
// A request is approved when the votes of people in active roles satisfy its rules. Votes whose
// credential is not active any more do not count. A person has one vote. The first person who may
// approve and denies ends it. The person for whom the call is made does not approve, unless all
// rules say so. Edited arguments pass the gate like the arguments of the call.
//
// Errors of outcomes:
//
//   - ApprovalNotFound if there is no such request for the person, or it has ended
//   - InsufficientPermissions
//   - ApprovalRequired for an override that must be approved itself
//   - Conflict for a second vote, or for other arguments than the person saw
//   - InvalidArguments and the errors of the gate for edited arguments
//   - LimitExceeded for a pattern that finds no room
func (rt *Runtime) DecideApprovals(ctx context.Context, by identity.Principal, auth ApproverAuth, list []ApprovalDecision) ([]ApprovalOutcome, error) {
	if len(list) > maxDecided {
		return nil, errcode.New(errcode.InvalidArguments, "decide about %d requests at once: at most %d are allowed", len(list), maxDecided)
	}
	out, edited, rests := make([]ApprovalOutcome, len(list)), make([]approval.Rules, len(list)), make([]string, len(list))
	list, shown := slices.Clone(list), make([]json.RawMessage, len(list))
	for i, d := range list {
		out[i].ID = d.ID
		if shown[i], out[i].Err = rt.prepareOverride(ctx, by, &list[i]); out[i].Err != nil {
			continue
		}
		if edited[i], out[i].Err = rt.prepareEdited(ctx, by, &list[i]); out[i].Err == nil {
			rests[i], out[i].Err = rt.preparePattern(ctx, by, &list[i])
		}
	}
	var decided []Approval
	_, err := rt.flushAndCommit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		rt.expireStanding(b) // they take no room for another
		for i, d := range list {
			if out[i].Err != nil {
				continue
			}
			a, e, err := rt.decideApproval(by, auth, d, edited[i])
			if err == nil && d.Override {
				err = rt.judgeOverride(b, Requester{by, auth.How}, a, d, shown[i])
			}
			if err != nil {
				out[i].Err = err
				continue
			}
			e.Auth, out[i].Outcome = auth.How, e.Outcome
			if s, ok := rt.newStanding(&a, d.Pattern, rests[i]); ok {
				rt.storeStanding(b, s)
				e.Standing, out[i].Standing = s.ID, s.ID
			}
			b.Events = append(b.Events, rt.approvalEvent(a, e))
			rt.storeApproval(b, a)
			if d.Args != nil {
				b.Put = append(b.Put, journal.Record{Kind: kindApprovalArgs, Key: a.ID + editedSuffix, Value: d.Args})
			}
			if a.Status != ApprovalWaiting {
				decided = append(decided, a)
			}
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	rt.wakeDecided(decided)
	return out, nil
}

// approvalOf returns the request that by may decide about, or see.
func (rt *Runtime) approvalOf(by identity.Principal, id string) (Approval, error) {
	a, ok := rt.approvals.find(id)
	if !ok || !rt.maySee(by, &a) {
		return Approval{}, errcode.New(errcode.ApprovalNotFound, "no request %.80q waits for your approval; it may have been decided, or its time may be over", id)
	}
	return a, nil
}

// maySee reports whether a principal may see a request. The operator sees all requests. A caller
// sees the requests that people in its role approve.
func (rt *Runtime) maySee(by identity.Principal, a *Approval) bool {
	vote, ok := rt.voteOf(by)
	return ok && a.isShownTo(vote, rt.now())
}

// isShownTo reports whether a request is shown to the people of a vote.
func (a *Approval) isShownTo(vote approval.Vote, now time.Time) bool {
	return vote.Operator || a.Rules.Admits(vote, now.Sub(a.Asked))
}

// voteOf returns the vote of a principal. It reports false if the principal has no vote. A caller
// in a network that is limited to tool groups has none: the groups do not say what it may approve.
func (rt *Runtime) voteOf(by identity.Principal) (approval.Vote, bool) {
	switch by.Kind {
	case identity.Operator:
		return approval.Vote{Operator: true}, true
	case identity.Caller:
		name, ok := rt.org.ApproverRole(by)
		return approval.Vote{Role: name}, ok && by.Within == ""
	}
	return approval.Vote{}, false
}

// decideApproval returns the request as it is after a decision, and the event of the decision.
// edited are the rules that select the arguments of the decision. They add to the rules of the
// request. decideApproval is called within the commit.
func (rt *Runtime) decideApproval(by identity.Principal, auth ApproverAuth, d ApprovalDecision, edited approval.Rules) (Approval, journal.ApprovalDecided, error) {
	d.Reason = shortReason(d.Reason)
	e := journal.ApprovalDecided{By: by.String(), Reason: d.Reason, Override: d.Override, Args: d.Args, Pattern: patternText(d.Pattern)}
	a, err := rt.approvalOf(by, d.ID)
	if err != nil {
		return a, e, err
	}
	withdraws := !d.Approve && a.Status == ApprovalGranted // before the call has used it
	if a.Status != ApprovalWaiting && !withdraws || !rt.now().Before(a.Until) {
		return a, e, errcode.New(errcode.ApprovalNotFound, "the request %s has ended: it is %s", a.ID, a.endedAs(rt))
	}
	vote, _ := rt.voteOf(by)
	e.As, a.Rules, a.Votes = vote.Role, a.Rules.Add(edited), rt.countedVotes(a.Votes)
	if err := rt.checkDecision(by, vote, &a, &d); err != nil {
		return a, e, err
	}
	if !d.Approve {
		a.Status, a.Denial, e.Outcome = ApprovalDenied, cmp.Or(d.Reason, "no reason was named"), journal.ApprovalRefused
		return a, e, nil
	}
	if d.Pattern != nil {
		if err := rt.standing.checkRoom(&a); err != nil {
			return a, e, err
		}
	}
	if d.Args != nil {
		a.Digest, a.Edited, a.Votes = approval.DigestJSON(d.Args), true, nil // votes about other arguments do not count
	}
	a.Votes = append(slices.Clip(a.Votes), ApprovalVote{By: by.String(), User: string(by.User), Role: string(by.Role), As: vote.Role, At: rt.now(), Auth: auth.How, Credential: auth.Credential, Pattern: d.Pattern})
	a.Override, e.Outcome = d.Override, journal.ApprovalVoted
	if rt.isApproved(&a) {
		a.Status, a.Until, e.Outcome = ApprovalGranted, rt.now().Add(a.Rules.Deadline()), journal.ApprovalGiven
	}
	return a, e, nil
}

// endedAs returns the state of a request that cannot be decided.
func (a *Approval) endedAs(rt *Runtime) ApprovalStatus {
	if !rt.now().Before(a.Until) && a.canExpire() {
		return ApprovalExpired
	}
	return a.Status
}

// isStarter reports whether a principal may be the person for whom a call is made. An issuer may
// name one user as operator and in a role.
func (a *Approval) isStarter(by identity.Principal) bool {
	return a.Starter == string(by.User) || by.Kind == identity.Operator && a.Starter == operatorStarter
}

// hasVoted reports whether a person has approved the call with its present arguments, as operator
// or in any role.
func (a *Approval) hasVoted(by identity.Principal) bool {
	return slices.ContainsFunc(a.Votes, func(v ApprovalVote) bool { return v.User == string(by.User) })
}

// checkDecision returns an error unless a principal may decide about a request.
func (rt *Runtime) checkDecision(by identity.Principal, vote approval.Vote, a *Approval, d *ApprovalDecision) error {
	operator := by.Kind == identity.Operator
	switch {
	case d.Override && a.Operation != "":
		return a.forbiddenError("an operation of an operator is approved by its approvers only")
	case d.Override && (!operator || d.Reason == "" || !d.Approve):
		return a.forbiddenError("only an operator approves in place of the approvers, with a reason")
	case d.Digest != "" && d.Digest != a.Digest:
		return errcode.New(errcode.Conflict, "decide about the request %s: its arguments are not those that you have seen; look at it again", a.ID).With("digest", a.Digest)
	case d.Override || !d.Approve && operator:
		return nil
	case !d.Approve:
		return a.forbiddenError(rt.notNamedReason(vote, a))
	}
	if refusal := rt.refusalOf(by, vote, a); refusal != "" {
		return a.forbiddenError(refusal)
	}
	if d.Args == nil && a.hasVoted(by) {
		return errcode.New(errcode.Conflict, "decide about the request %s: you have approved it already; another person must", a.ID)
	}
	return nil
}

// refusalOf says why the approval of a principal does not count for a request, "" if it counts.
func (rt *Runtime) refusalOf(by identity.Principal, vote approval.Vote, a *Approval) string {
	if reason := rt.notNamedReason(vote, a); reason != "" {
		return reason
	}
	switch {
	case a.isStarter(by) && a.Operation != "":
		return "the operator who asks for the operation may not approve it; another person must"
	case a.isStarter(by) && !a.Rules.AllowsSelf():
		return "the person for whom the call is made may not approve it"
	}
	return ""
}

// notNamedReason says that the rules of a request do not name the people of a vote now. It returns "" if
// the rules name them.
func (rt *Runtime) notNamedReason(vote approval.Vote, a *Approval) string {
	if a.Rules.Admits(vote, rt.now().Sub(a.Asked)) {
		return ""
	}
	return "its rules do not name you as an approver; an operator may override them with a reason"
}

// forbiddenError returns the error for a decision that a principal may not make, nil without a reason.
func (a *Approval) forbiddenError(reason string) error {
	if reason == "" {
		return nil
	}
	return errcode.New(errcode.InsufficientPermissions, "decide about the request %s: %s", a.ID, reason)
}

// ApproverRefusal says why the approval of a principal would not count for a request as it is now,
// without override. It returns "" if it would; DecideApprovals decides.
func (rt *Runtime) ApproverRefusal(by identity.Principal, a *Approval) string {
	vote, _ := rt.voteOf(by)
	return rt.refusalOf(by, vote, a)
}

// principal returns who makes the call.
func (a *Approval) principal() identity.Principal {
	if a.Agent != "" {
		return identity.ByAgent(a.Agent)
	}
	by, _ := identity.ParseCaller(a.Caller)
	return by
}

// prepareEdited normalizes the arguments that a person sets, and returns the rules that select them.
// It returns an error unless the gate would let the call run with them.
func (rt *Runtime) prepareEdited(ctx context.Context, by identity.Principal, d *ApprovalDecision) (approval.Rules, error) {
	if d.Args == nil {
		return nil, nil
	}
	a, err := rt.approvalOf(by, d.ID)
	if err != nil {
		return nil, err
	}
	if a.Operation != "" {
		return nil, errcode.New(errcode.InvalidArguments, "decide about the request %s: an operation of an operator is approved as it is, or denied", a.ID)
	}
	if len(d.Args) > maxEditedArgs || !canStore(d.Args) || !d.Approve {
		return nil, errcode.New(errcode.InvalidArguments, "decide about the request %s: arguments are set when the call is approved; they are JSON of at most %d bytes", a.ID, maxEditedArgs)
	}
	d.Args = normalizeJSON(d.Args)
	need, err := rt.gate.CheckEdited(ctx, a.principal(), tool.Call{ID: a.Call, Name: a.Tool, Args: d.Args}, a.ID)
	return need.Rules, err
}

// prepareOverride returns the arguments of a call that an operator wants to approve in place of the
// approvers. It sets the digest of the decision, which is then about these arguments. It returns
// nil for another decision.
func (rt *Runtime) prepareOverride(ctx context.Context, by identity.Principal, d *ApprovalDecision) (json.RawMessage, error) {
	if !d.Override || !rt.needsApproval(by, approval.Override) {
		return nil, nil
	}
	a, args, err := rt.FindApprovalRequest(ctx, by, d.ID)
	if err != nil {
		return nil, err
	}
	d.Digest = cmp.Or(d.Digest, a.Digest)
	return args.Current(), nil
}

// LookupApproval returns a request that has not ended and that by may see.
func (rt *Runtime) LookupApproval(by identity.Principal, id string) (Approval, bool) {
	a, err := rt.approvalOf(by, id)
	return a, err == nil
}

// ListApprovals returns the requests that wait and that by may see, oldest first.
func (rt *Runtime) ListApprovals(by identity.Principal) []Approval {
	now := rt.now()
	vote, ok := rt.voteOf(by)
	return rt.approvals.list(func(a *Approval) bool {
		return ok && a.Status == ApprovalWaiting && now.Before(a.Until) && a.isShownTo(vote, now)
	})
}

// ApprovalsChanged returns a channel that is closed by the next change of a request. Call it
// before ListApprovals.
func (rt *Runtime) ApprovalsChanged() <-chan struct{} { return rt.approvals.nextChange() }

// ApprovalArgs has the arguments that a request is about.
type ApprovalArgs struct {
	Asked  json.RawMessage // the arguments of the call
	Edited json.RawMessage // those that an approver has set; nil if none has
}

// Current returns the arguments that the votes are about.
func (a ApprovalArgs) Current() json.RawMessage {
	if a.Edited != nil {
		return a.Edited
	}
	return a.Asked
}

// maxShortArgs bounds the text of ApprovalArgs.Short, in bytes.
const maxShortArgs = 160

// Short returns the beginning of the arguments that the votes are about, for a list: on one line, with
// invisible characters escaped.
func (a ApprovalArgs) Short() string { return shortArgs(a.Current()) }

// ShortBefore is Short of the arguments of the call, "" if no approver has set others.
func (a ApprovalArgs) ShortBefore() string {
	if a.Edited == nil {
		return ""
	}
	return shortArgs(a.Asked)
}

// shortArgs returns the beginning of arguments on one line, "" if they are not JSON.
func shortArgs(args json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, args) != nil {
		return ""
	}
	return textutil.Truncate(string(textutil.EscapeUnprintable(line.Bytes()[:min(line.Len(), 4*maxShortArgs)])), maxShortArgs)
}

// FindApprovalRequest returns a request that has not ended and that by may see, with its
// arguments. Errors: ApprovalNotFound.
func (rt *Runtime) FindApprovalRequest(ctx context.Context, by identity.Principal, id string) (Approval, ApprovalArgs, error) {
	a, err := rt.approvalOf(by, id)
	if err != nil {
		return a, ApprovalArgs{}, err
	}
	args, err := rt.readApprovalArgs(ctx, &a)
	return a, args, err
}

// readApprovalArgs returns the arguments of a request. A request is in memory before the commit that made or
// edited it has ended; then readApprovalArgs waits for that commit.
func (rt *Runtime) readApprovalArgs(ctx context.Context, a *Approval) (ApprovalArgs, error) {
	args, err := rt.storedApprovalArgs(ctx, a)
	if err != nil || args.Asked != nil && (!a.Edited || approval.DigestJSON(args.Edited) == a.Digest) {
		return args, err
	}
	if _, err := rt.commit(new(journal.Batch)); err != nil {
		return args, err
	}
	return rt.storedApprovalArgs(ctx, a)
}

// storedApprovalArgs returns the arguments of a request that are on disk.
func (rt *Runtime) storedApprovalArgs(ctx context.Context, a *Approval) (args ApprovalArgs, err error) {
	if args.Asked, err = rt.store.ReadRecord(ctx, kindApprovalArgs, a.ID); err == nil && a.Edited {
		args.Edited, err = rt.store.ReadRecord(ctx, kindApprovalArgs, a.ID+editedSuffix)
	}
	return args, err
}
