package runtime

import (
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

// Invoke takes one call of a caller from outside (identity.ByCaller) through
// the gate and gives what it came to: a refusal and a failure are outcomes, as
// for agents (gate.Admission.Err, Result). Nil args are {}.
//
//  1. The decision, and the intent if it is an allowance, are committed to the
//     organization's stream. A call starts at that commit, which refuses a
//     decision whose View, or whose workflow state, is no longer in force; it
//     is then made again.
//  2. The tool runs. When ctx ends, or the runtime closes, it is cancelled.
//  3. One commit records the outcome, also of a call that was cut short, and
//     the workflow state that a success moves to, which is durable for each
//     user and role (org.Caller).
//
// A call that changes nothing, because it is refused or its tool is ReadOnly
// and moves no state, waits for no disk: it starts when its decision is found
// in force, and its events are committed with others' within 10 ms, or by
// Flush, and before a later call that does change something, a change of roles
// or groups, or a task begins (decision 17).
//
// Calls of one caller run side by side, but those whose tool moves the state:
// each has its turn, from its decision to its outcome. A call whose process
// ended between 1 and 3 stays without an outcome and has moved nothing; it is
// never run again, whatever its effect class.
//
// The error says that the call was not started: Unauthenticated for what is no
// caller, ToolUnavailable when the runtime closes, ctx's; or that the store
// has stopped, and with it nobody knows. Safe for concurrent use.
func (rt *Runtime) Invoke(ctx context.Context, by identity.Principal, name string, args json.RawMessage) (*gate.Admission, error) {
	if err := org.CheckCaller(by); err != nil {
		return nil, err
	}
	ctx, leave, err := rt.beginExternal(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := rt.advance(); err != nil {
		return nil, err
	}
	v := &externalCall{rt: rt, by: by, role: rt.roleName(org.Agent{Role: by.Role})}
	a, err := v.call(ctx, gate.Request{Call: tool.Call{ID: identity.CallID(identity.NewID()), Name: sanitizeToolName(name), Args: args}})
	if err != nil && errors.Is(context.Cause(ctx), errClosing) {
		err = closingError()
	}
	return a, err
}

func closingError() error {
	return errcode.Wrap(errcode.ToolUnavailable, errClosing, "no call is started any more: rolecall is closing; call again when it is back")
}

// beginExternal lets somebody from outside in, unless Close has begun, which waits
// until leave is called. The context ends when it begins.
func (rt *Runtime) beginExternal(ctx context.Context) (_ context.Context, leave func(), err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if cause := context.Cause(rt.ctx); cause != nil {
		if errors.Is(cause, errClosing) {
			cause = closingError()
		}
		return nil, nil, cause
	}
	rt.work.Add(1)
	inner, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(rt.ctx, func() { cancel(context.Cause(rt.ctx)) })
	return inner, func() { stop(); cancel(nil); rt.work.Done() }, nil
}

// sanitizeToolName gives a name as it is decided about and recorded: one that is no
// tool's for its length or bytes is cut to what is no tool's either.
func sanitizeToolName(name string) string {
	if len(name) <= tool.MaxName && utf8.ValidString(name) {
		return name
	}
	return strings.ToValidUTF8(name[:min(len(name), tool.MaxName)], "\uFFFD") + "…"
}

// externalCall is one call of a caller from outside, and its gate.Recorder.
type externalCall struct {
	rt        *Runtime
	by        identity.Principal
	role      string // the role's name, for records
	exclusive bool   // it may move the state: nobody else does meanwhile
}

// errNeedsExclusive: the call would move the workflow state and has not its turn.
var errNeedsExclusive = errors.New("the call moves the workflow state")

// call takes the call through the gate; once more, in its turn, if it is one
// that moves the state.
func (v *externalCall) call(ctx context.Context, r gate.Request) (*gate.Admission, error) {
	a, err := v.attempt(ctx, r)
	if !errors.Is(err, errNeedsExclusive) {
		return a, err
	}
	done, err := v.rt.turns.Lock(ctx, v.by.Key())
	if err != nil {
		return nil, err
	}
	defer done()
	v.exclusive = true
	return v.attempt(ctx, r)
}

func (v *externalCall) attempt(ctx context.Context, r gate.Request) (*gate.Admission, error) {
	all, err := v.rt.gate.Call(ctx, v.by, []gate.Request{r}, v)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Started implements gate.Recorder. The commit refuses what is no longer in
// force. What is refused is on record with its outcome: nothing will run.
func (v *externalCall) Started(_ context.Context, calls []*gate.Admission) error {
	b := &journal.Batch{Prepare: func(*journal.Batch) error { return v.checkCurrent(calls) }}
	for _, c := range calls {
		if c.NextState() != "" && !v.exclusive {
			return errNeedsExclusive
		}
		e := decisionEvent(c)
		e.Caller = v.by.String()
		b.Events = append(b.Events, v.event(e))
		if !c.Allowed() {
			b.Events = append(b.Events, v.event(v.outcome(b, c)))
		}
	}
	if err := v.record(b, calls); err != nil {
		return err
	}
	v.rt.logDenied("Caller "+v.by.String(), calls...)
	return nil
}

// record puts a batch of these calls on disk, or, when they change nothing, on
// the trail that leads there.
func (v *externalCall) record(b *journal.Batch, calls []*gate.Admission) error {
	if len(b.Put) > 0 || slices.ContainsFunc(calls, hasEffect) {
		_, err := v.rt.flushAndCommit(b)
		return err
	}
	if err := v.rt.buffer.flushIfFull(); err != nil {
		return err
	}
	if b.Prepare != nil {
		if err := b.Prepare(b); err != nil {
			return err
		}
	}
	v.rt.buffer.add(recordSize(calls), b.Events...)
	return nil
}

// hasEffect says whether a call may change anything, anywhere.
func hasEffect(c *gate.Admission) bool {
	return c.Allowed() && (c.Effect() != tool.ReadOnly || c.NextState() != "")
}

// recordSize is about how many bytes the record of calls has.
func recordSize(calls []*gate.Admission) (bytes int) {
	for _, c := range calls {
		bytes += len(c.Request.Args) + min(len(c.Result.Text)+len(c.Result.Structured), maxResult)
	}
	return bytes
}

func (v *externalCall) checkCurrent(calls []*gate.Admission) error {
	_, state := v.rt.org.Resolve(v.by)
	for _, c := range calls {
		if c.Superseded() || c.Allowed() && c.Subject.State != state {
			return gate.ErrSuperseded
		}
	}
	return nil
}

// Finished implements gate.Recorder. It records in any case: nobody else will.
func (v *externalCall) Finished(_ context.Context, calls []*gate.Admission) error {
	b := &journal.Batch{}
	for _, c := range calls {
		if !c.Allowed() {
			continue
		}
		b.Events = append(b.Events, v.event(v.outcome(b, c)))
		if c.NewState != "" && c.NewState != c.Subject.State {
			b.Events = append(b.Events, v.event(journal.StateTransition{Tool: c.Request.Name, From: c.Subject.State, To: c.NewState, Caller: v.by.String()}))
			prependPrepare(b, v.setState(c.NewState))
		}
	}
	if len(b.Events) == 0 {
		return nil
	}
	if err := v.record(b, calls); err != nil {
		return err
	}
	v.rt.logDone("caller", v.by.String(), calls...)
	return nil
}

// setState changes the caller's workflow state in the same commit.
func (v *externalCall) setState(to string) func(*journal.Batch) error {
	return func(b *journal.Batch) error {
		b.Put = append(b.Put, records(v.rt.org.SetCallerState(v.by, to))...)
		return nil
	}
}

func (v *externalCall) event(body journal.Body) journal.Event {
	return journal.Event{At: v.rt.now(), Role: v.role, Body: body}
}

// outcome is what a call came to, as it is recorded. The caller gets a large
// result whole; the record has its beginning and, if it may be that large, an
// artifact of the caller's.
func (v *externalCall) outcome(b *journal.Batch, c *gate.Admission) journal.Body {
	result := normalizeJSON(c.Result.JSON())
	if len(result) > maxResult {
		p := v.rt.previewed(b, c, result, maxPreview)
		p.Note = "The caller got the whole result."
		result, _ = json.Marshal(p) // strings and a number always marshal
	}
	if c.Result.IsError {
		return journal.ToolError{Call: c.Request.ID, Tool: c.Request.Name, Code: c.Code(), Result: result, Caller: v.by.String()}
	}
	return journal.ToolResult{Call: c.Request.ID, Tool: c.Request.Name, Result: result, Caller: v.by.String()}
}

// ResetCaller puts a caller from outside back to the beginning of its role's
// workflow, also one whose record cannot be read and who is denied therefore.
// It waits for a call of the caller that moves the state.
//
// Errors: InsufficientPermissions unless by is the operator, those of
// org.ResetCaller, ctx's.
func (rt *Runtime) ResetCaller(ctx context.Context, by, who identity.Principal) error {
	if by.Kind != identity.Operator {
		return errcode.New(errcode.InsufficientPermissions, "reset the workflow state of %s: only the operator may", who)
	}
	done, err := rt.turns.Lock(ctx, who.Key())
	if err != nil {
		return err
	}
	defer done()
	_, err = rt.flushAndCommit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		_, from := rt.org.Resolve(who)
		changes, err := rt.org.ResetCaller(who)
		if err != nil {
			return err
		}
		e := journal.StateTransition{From: from, To: toolgroups.Undefined, Caller: who.String()}
		b.Events = append(b.Events, journal.Event{At: rt.now(), Role: rt.roleName(org.Agent{Role: who.Role}), Body: e})
		b.Put = append(b.Put, records(changes)...)
		return nil
	}})
	return err
}
