package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// InvokeTool passes one call of an external caller (identity.ByCaller) through the
// gate and returns its outcome. As with agents, a denied or failed call is an
// outcome and not an error (gate.Admission.Err, Result). Nil args mean {}.
//
//  1. The decision, and for an allowed call its intent, are committed to the
//     organization's stream. This commit starts the call. It fails if the
//     permissions or the workflow state have changed since the decision, which
//     is then made again.
//  2. The tool runs. It is cancelled when ctx ends or the runtime closes.
//  3. One commit records the outcome, also of a cancelled call. It also records the workflow
//     state that a successful call moves to. That state is durable per user and role
//     (org.Caller).
//
// A call without effects does not wait for the disk. It is denied, or its tool is ReadOnly and
// changes no workflow state. It starts once its decision is found to be current. Its events share
// a commit with the events of other calls. That commit begins within 10 ms, or once the one
// before it has ended. It begins at once with Flush, and before a later call with effects, a
// change of roles or groups, or the start of a task. See
// docs/decisions/0017-calls-that-change-nothing-share-a-commit.md.
//
// Calls of one caller run concurrently, except that calls of tools that change
// the workflow state run one at a time, from decision to outcome. If the
// process ends between steps 1 and 3 the call stays without an outcome and has
// not changed the workflow state. It is never run again, whatever its effect
// class.
//
// What the tool asks (tool.Ask) is answered by the tool.InputSource of ctx. Questions and answers
// are on record.
//
// An error means that the call was not started, or that the store has stopped
// and the outcome is unknown. Errors:
//
//   - Unauthenticated if by is not a caller
//   - StorageLow
//   - QuotaExceeded if the caller has recorded all it may
//   - ToolUnavailable while the runtime closes
//   - the errors of ctx
func (rt *Runtime) InvokeTool(ctx context.Context, by identity.Principal, name string, args json.RawMessage) (*gate.Admission, error) {
	if err := org.CheckCaller(by); err != nil {
		return nil, err
	}
	ctx, done, err := rt.beginExternal(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := errors.Join(rt.CheckStorage(), rt.recorded.check(byteOwner{caller: by.String()}, 0)); err != nil {
		return nil, err
	}
	if err := rt.advanceEpoch(); err != nil {
		return nil, err
	}
	ec := &externalCall{rt: rt, by: by, role: rt.roleName(org.Agent{Role: by.Role}), hold: diskHold{guard: rt.disk}}
	defer ec.hold.end()
	ctx = rt.withLoggedInput(ctx, tool.InputOf(ctx), by.String(), ec.event)
	a, err := ec.callApproved(ctx, gate.CallRequest{Call: tool.Call{ID: resumedOrNewID(ctx), Name: sanitizeToolName(name), Args: args}})
	if err != nil && errors.Is(context.Cause(ctx), errClosing) {
		err = closingError()
	}
	return a, err
}

// resumedCallKey is the context key for the id of WithResumedCall.
type resumedCallKey struct{}

// WithResumedCall returns a context for a call that continues an earlier call. The earlier call
// ended with a question (errcode.InputRequired). The call has its id. It passes the gate like any
// other.
func WithResumedCall(ctx context.Context, id identity.CallID) context.Context {
	return context.WithValue(ctx, resumedCallKey{}, id)
}

// resumedOrNewID returns the id of WithResumedCall, or a new one.
func resumedOrNewID(ctx context.Context) identity.CallID {
	if id, ok := ctx.Value(resumedCallKey{}).(identity.CallID); ok {
		return id
	}
	return identity.CallID(identity.NewID())
}

// closingError is the error of a call that is not started because the runtime closes.
func closingError() error {
	return errcode.Wrap(errcode.ToolUnavailable, errClosing, "rolecall is shutting down and starts no more calls; call again after the restart")
}

// beginExternal admits an external call unless Close has begun. Close waits
// until the returned function is called. The returned context ends with ctx and
// when Close begins.
func (rt *Runtime) beginExternal(ctx context.Context) (_ context.Context, done func(), err error) {
	if err := rt.tracker.beginWork(); errors.Is(err, errClosing) {
		return nil, nil, closingError()
	} else if err != nil {
		return nil, nil, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(rt.ctx, func() { cancel(context.Cause(rt.ctx)) })
	return inner, func() { stop(); cancel(nil); rt.tracker.work.Done() }, nil
}

// sanitizeToolName returns a tool name that is safe to record: invalid UTF-8 is
// replaced and an overlong name truncated. A changed name ends in "…", so it is
// never the name of a tool.
func sanitizeToolName(name string) string {
	if len(name) <= tool.MaxName && utf8.ValidString(name) {
		return name
	}
	return strings.ToValidUTF8(name[:min(len(name), tool.MaxName)], "\uFFFD") + "…"
}

// externalCall is one call by an external caller. It implements gate.CallRecorder.
type externalCall struct {
	rt        *Runtime
	by        identity.Principal
	role      string   // the role's name, for records
	exclusive bool     // holds the caller's lock, so the call may change the workflow state
	hold      diskHold // the space on the disk that is kept free for the records of the call
}

// CallPending implements gate.CallRecorder. Errors: storage_low.
func (ec *externalCall) CallPending(_ context.Context, requests []gate.CallRequest) error {
	ec.hold.end()
	return ec.hold.set(callBytes(requests))
}

// errNeedsExclusive reports that a call changes the workflow state and must
// hold the caller's lock.
var errNeedsExclusive = errors.New("the call moves the workflow state")

// call passes the call through the gate. If the call changes the workflow
// state, it is tried again with the caller's lock held.
func (ec *externalCall) call(ctx context.Context, r gate.CallRequest) (*gate.Admission, error) {
	a, err := ec.attempt(ctx, r)
	if !errors.Is(err, errNeedsExclusive) {
		return a, err
	}
	done, err := ec.rt.callerLocks.Lock(ctx, ec.by.Key())
	if err != nil {
		return nil, err
	}
	defer done()
	ec.exclusive = true
	return ec.attempt(ctx, r)
}

// callApproved is call with the arguments that an approver has set, if one has.
func (ec *externalCall) callApproved(ctx context.Context, r gate.CallRequest) (*gate.Admission, error) {
	if err := ec.rt.useEdited(ctx, ec.by, &r); err != nil {
		return nil, err
	}
	return ec.call(ctx, r)
}

// attempt passes the call through the gate once.
func (ec *externalCall) attempt(ctx context.Context, r gate.CallRequest) (*gate.Admission, error) {
	all, err := ec.rt.gate.Call(ctx, ec.by, []gate.CallRequest{r}, ec)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// CallStarted implements gate.CallRecorder. The commit fails if a decision is no longer
// current. Denied calls are recorded together with their outcome, since they do
// not run.
func (ec *externalCall) CallStarted(ctx context.Context, calls []*gate.Admission) error {
	b := &journal.Batch{Prepare: func(b *journal.Batch) error {
		if err := cmp.Or(ec.rt.checkCurrent(ec.by, calls), ec.rt.checkApprovals(ec.by, calls)); err != nil {
			return err
		}
		ec.rt.useApprovals(b, ec.by, calls)
		ec.rt.requestApprovals(b, ec.by, calls, "", ec.event)
		return nil
	}}
	for _, c := range calls {
		if c.NextState() != "" && !ec.exclusive {
			return errNeedsExclusive
		}
		e := decisionEvent(c)
		e.Caller = ec.by.String()
		ec.recordDeniedArgs(ctx, &e, c)
		if args := detachArgs(&e); args != nil {
			ec.rt.storeArgs(b, e.ArgsHash, args)
		}
		b.Events = append(b.Events, ec.event(e))
		if !c.Allowed() {
			b.Events = append(b.Events, ec.event(ec.outcome(b, c)))
		}
	}
	if err := ec.record(b, calls); err != nil {
		return err
	}
	ec.rt.logDenied(ec.by, ec.role, calls...)
	return nil
}

// storeArgs adds arguments to a batch as stored content, which exists once for each hash.
func (rt *Runtime) storeArgs(b *journal.Batch, hash string, args []byte) {
	b.Put = append(b.Put, journal.Record{Kind: kindBlob, Key: hash, Value: args})
	prependPrepare(b, func(*journal.Batch) error {
		rt.artifacts.references.add(hash)
		return nil
	})
}

// record commits the events of these calls, or adds them to the record buffer
// if the calls have no effects.
func (ec *externalCall) record(b *journal.Batch, calls []*gate.Admission) error {
	if len(b.Put) > 0 || slices.ContainsFunc(calls, hasEffect) {
		defer ec.rt.acquireLargeCommit(ec.by, batchSize(b))()
		_, err := ec.rt.flushAndCommit(b)
		return err
	}
	if err := ec.rt.buffer.flushIfFull(); err != nil {
		return err
	}
	if b.Prepare != nil {
		if err := b.Prepare(b); err != nil {
			return err
		}
	}
	ec.rt.buffer.add(recordSize(calls), b.Events...)
	return nil
}

// hasEffect reports whether a call may change anything inside or outside the
// organization. A call that uses an approval, or that people are asked about, changes that.
func hasEffect(c *gate.Admission) bool {
	return c.Approval() != "" || c.Allowed() && (c.Effect() != tool.ReadOnly || c.NextState() != "")
}

// recordSize estimates how many bytes the events of calls take.
func recordSize(calls []*gate.Admission) (bytes int) {
	for _, c := range calls {
		args := len(c.Request.Args)
		if !c.Allowed() {
			args = min(args, maxDeniedArgs)
		}
		bytes += args + min(c.Result.TextBytes(), maxResult)
	}
	return bytes
}

// checkCurrent returns gate.ErrSuperseded if the permissions or the workflow state of by
// have changed since the decisions.
func (rt *Runtime) checkCurrent(by identity.Principal, calls []*gate.Admission) error {
	_, state := rt.org.ResolveView(by)
	for _, c := range calls {
		if c.Superseded() || c.Allowed() && c.Subject.State != state {
			return gate.ErrSuperseded
		}
	}
	return nil
}

// CallFinished implements gate.CallRecorder. It records the outcomes even if the
// context has ended, since the calls have run.
func (ec *externalCall) CallFinished(_ context.Context, calls []*gate.Admission) error {
	b := &journal.Batch{}
	for _, c := range calls {
		if !c.Allowed() {
			continue
		}
		b.Events = append(b.Events, ec.event(ec.outcome(b, c)))
		if movesState(c) {
			b.Events = append(b.Events, ec.event(journal.StateTransition{Tool: c.Request.Name, From: c.Subject.State, To: c.NewState, Caller: ec.by.String()}))
			prependPrepare(b, ec.prepareState(c.NewState))
		}
	}
	if len(b.Events) == 0 {
		return nil
	}
	if err := ec.record(b, calls); err != nil {
		return err
	}
	ec.rt.logGatedCalls("caller", ec.by.String(), calls...)
	return nil
}

// prepareState returns a Prepare function that changes the caller's workflow state.
func (ec *externalCall) prepareState(to string) func(*journal.Batch) error {
	return func(b *journal.Batch) error {
		b.Put = append(b.Put, storeRecords(ec.rt.org.SetCallerState(ec.by, to))...)
		return nil
	}
}

// event returns an event of now, in the role of the caller.
func (ec *externalCall) event(body journal.EventBody) journal.Event {
	return journal.Event{At: ec.rt.now(), Role: ec.role, Body: body}
}

// outcome returns the event of a call's result. The caller gets a large result in full.
// The event has a preview of the result and a reference to an artifact of the caller.
// There is no artifact if the result exceeds the artifact limit. The data of its
// contents is stored with the event.
func (ec *externalCall) outcome(b *journal.Batch, c *gate.Admission) journal.EventBody {
	ec.rt.storeContents(b, c, &ec.hold)
	result := normalizeJSON(c.Result.JSON())
	if len(result) > maxResult {
		p := ec.rt.storePreview(b, c, result, maxPreview, &ec.hold)
		p.Note = "The caller received the complete result."
		result, _ = json.Marshal(p) // strings and numbers always marshal
	}
	if c.Result.IsError {
		return journal.ToolError{Call: c.Request.ID, Tool: c.Request.Name, Code: c.Code(), Result: result, Caller: ec.by.String()}
	}
	return journal.ToolResult{Call: c.Request.ID, Tool: c.Request.Name, Result: result, Caller: ec.by.String()}
}

// ResetCaller sets the workflow state of an external caller back to the start
// of its role's workflow. It also repairs a caller that is denied because its
// record cannot be read. It waits for a running call of the caller that changes
// the state.
//
// Errors: InsufficientPermissions unless by is the operator; the errors of
// org.Org.ResetCaller and of ctx.
func (rt *Runtime) ResetCaller(ctx context.Context, by, caller identity.Principal) error {
	if by.Kind != identity.Operator {
		return errcode.New(errcode.InsufficientPermissions, "reset workflow state of %s: only the operator may do that", caller)
	}
	done, err := rt.callerLocks.Lock(ctx, caller.Key())
	if err != nil {
		return err
	}
	defer done()
	_, err = rt.flushAndCommit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		_, from := rt.org.ResolveView(caller)
		changes, err := rt.org.ResetCaller(caller)
		if err != nil {
			return err
		}
		e := journal.StateTransition{From: from, To: toolgroups.UndefinedState, Caller: caller.String()}
		b.Events = append(b.Events, journal.Event{At: rt.now(), Role: rt.roleName(org.Agent{Role: caller.Role}), Body: e})
		b.Put = append(b.Put, storeRecords(changes)...)
		return nil
	}})
	return err
}
