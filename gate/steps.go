package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// CallRequest is a tool call to pass through the gate. Its fields By, Claims and Secure
// are ignored: the gate sets them from what it has verified.
type CallRequest struct {
	tool.Call

	// Refusal denies the call: it is recorded and does not run. nil leaves the decision to
	// the gate.
	Refusal error

	// Cut is set for a call whose arguments may have ended early: the tokens at which the
	// model's answer was cut off. 0 is for all other calls.
	Cut int

	// Edited is the id of a request for approval whose approver has replaced the arguments of
	// the call. It is "" if the call has its own arguments. A call with edited arguments uses
	// this approval, even if no rule selects the arguments.
	Edited string

	// Started is set for a call whose intent is recorded and whose outcome is not.
	// The process ended in between. The call is decided again. It runs again only if
	// it is safe to repeat.
	Started bool
	Effect  tool.Effect // of the tool at the time the call started
}

// Admission is the state of one call in the gate, from the first step to its
// outcome. A CallRecorder reads it; only the gate changes it.
type Admission struct {
	Request     CallRequest
	Subject     *Subject
	Decision    Decision
	Err         error       // the reason for a denial, with an errcode.Code; nil if allowed
	Result      tool.Result // of the tool, or of the denial
	NewState    string      // the workflow state after a success; "" if it stays
	Interrupted bool        // the caller's context was done before the tool returned

	handle    *toolgroups.ToolHandle     // of an allowed tool, else nil
	lease     tool.Lease                 // held from acquire to release, nil for tools without leases
	argsValid bool                       // parse found the arguments valid
	secure    json.RawMessage            // secure arguments, if the tool takes them
	claims    map[string]json.RawMessage // verified claims by auth service

	need     *ApprovalNeed // of a call that rules select, else nil
	approval string        // see Approval
	waiting  bool          // for people; false only if none is needed or they have approved

	claimChecks []func() bool // report whether the services that verified claims are still active
}

// Allowed reports whether the call has passed all steps so far and waits for no person.
func (a *Admission) Allowed() bool { return a.Err == nil && !a.waiting }

// Code returns the error code of a denial or of a failed Result, "" after a success.
func (a *Admission) Code() errcode.Code {
	switch {
	case a.Err != nil:
		return errcode.CodeOf(a.Err)
	case a.Result.IsError:
		return errcode.Code(gjson.GetBytes(a.Result.Structured, "error").Str)
	}
	return ""
}

// Superseded reports whether the call was allowed by a View, or by an auth service,
// that has been replaced since. A denial is never superseded.
func (a *Admission) Superseded() bool {
	return a.Allowed() && !(a.Subject.isCurrent(a.Decision) && a.claimsCurrent())
}

// step is one check of a call. The call is denied with the error that run returns,
// which has an errcode.Code.
type step struct {
	name string
	run  func(*Gate, context.Context, *Admission) error
}

// checks are the checks of a call, in order. None of them has an effect. The calls
// that pass are recorded, run and recorded again, see run.go.
var checks = []step{
	{"resolve", (*Gate).resolve},
	{"parse", (*Gate).parse},
	{"refuse", (*Gate).refuse},
	{"authorize", (*Gate).authorize},
	{"validate", (*Gate).validate},
	{"check bounds", (*Gate).checkBounds},
	{"authenticate", (*Gate).authenticate},
	{"check quota", (*Gate).checkQuota},
	{"check retry", (*Gate).checkRetry},
}

// steps are the checks, and then the step that may wait for people.
var steps = append(slices.Clip(checks), step{"approve", (*Gate).requireApproval})

// admit takes a request through the steps. It stops at the first denial.
func (g *Gate) admit(ctx context.Context, p identity.Principal, r CallRequest) *Admission {
	return g.admitBy(ctx, p, r, steps)
}

// admitBy is admit with some of the steps.
func (g *Gate) admitBy(ctx context.Context, p identity.Principal, r CallRequest, steps []step) *Admission {
	a := &Admission{Request: r, Subject: &Subject{Principal: p}}
	for _, s := range steps {
		if err := s.run(g, ctx, a); err != nil {
			a.deny(err)
			g.logCause(a)
			break
		}
	}
	return a
}

// deny denies the call with err, which becomes the result that the model reads.
func (a *Admission) deny(err error) {
	a.Err = err
	a.Result = tool.Failure(a.Request.Name, err)
}

// resolve resolves the principal and looks up the tool. If a change of the registry
// may be the reason for a denial, resolve waits for the change and decides again. A
// tool must not be denied for a moment because it is being replaced. The denial
// itself is left to authorize, so that malformed arguments are reported first.
func (g *Gate) resolve(_ context.Context, a *Admission) error {
	var denied *toolgroups.ToolHandle // the tool of the decision before
	for try := 0; ; try++ {
		a.Subject = g.Subject(a.Subject.Principal)
		a.Decision = a.Subject.AuthorizeTool(a.Request.Name)
		if !a.maybeStale() || a.Decision.handle == denied || try == maxDecisions {
			break
		}
		denied = a.Decision.handle // a later decision finds another if the next change has begun
		g.config.Groups.WaitIdle()
	}
	if a.Decision.Allowed() {
		a.handle = a.Decision.handle
	}
	return nil
}

// refuse denies the call for the reason in its request.
func (g *Gate) refuse(_ context.Context, a *Admission) error { return a.Request.Refusal }

// parse reads the arguments once, strictly, so that the tool sees the document that
// was checked. Missing arguments become {}. If the caller may use the tool, the
// same pass checks them against the schema; validate reports the result. Otherwise
// the schema is not read, so that the denial reveals nothing about the tool.
func (g *Gate) parse(_ context.Context, a *Admission) (err error) {
	if len(a.Request.Args) == 0 {
		a.Request.Args = json.RawMessage(`{}`)
	}
	if n := len(a.Request.Args); n > g.config.MaxArgs {
		return errcode.New(errcode.InvalidArguments, "arguments of %s have %d bytes; at most %d are allowed: make several shorter calls", a.Request.Name, n, g.config.MaxArgs)
	}
	if err := a.rejectQuoted(); err != nil {
		return err
	}
	if a.handle != nil {
		a.argsValid, err = a.handle.Schema.Read(a.Request.Args)
	} else {
		err = strictjson.CheckObject(a.Request.Args, nil)
	}
	if wrong, ok := errors.AsType[*strictjson.Error](err); ok {
		return a.malformedError(string(a.Request.Args), wrong)
	}
	return err
}

// authorize denies a call that the View does not allow.
func (g *Gate) authorize(_ context.Context, a *Admission) error {
	if !a.Decision.Allowed() {
		return errcode.New(a.Decision.Code(), "%s", a.Decision.Reason()+a.advice())
	}
	return nil
}

// validate rejects arguments that do not match the tool's schema. parse has found
// most valid arguments already. The full validator is slower; it decides the
// others and explains what is wrong. It decodes the arguments, so few run at once.
func (g *Gate) validate(ctx context.Context, a *Admission) error {
	if a.argsValid {
		return nil
	}
	release, err := g.validations.Acquire(ctx, fair.Key{Owner: g.config.Owner(a.Subject.Principal), Member: a.Subject.Principal.String()})
	if err != nil {
		return errcode.Wrap(errcode.RequestAborted, err, "arguments of %s were not checked: the call was cancelled", a.Request.Name)
	}
	defer release()
	return a.handle.Schema.ValidateShown(a.Request.Args, a.handle.Definition.ModelSchema(), a.handle.Definition.Input)
}

// checkRetry rejects a call that was started before and whose outcome is unknown. It does not
// reject the call if its tool was repeatable then and is repeatable now.
func (g *Gate) checkRetry(_ context.Context, a *Admission) error {
	if a.Request.Started && !(isRepeatable(a.Request.Effect) && isRepeatable(a.handle.Definition.Effect)) {
		return interruptedError(a.Request.Name)
	}
	return nil
}

// checkQuota rejects arguments that the caller may not record any more. They are recorded
// with the call, and a tool may store them. Those of a call that was started before are
// recorded already.
func (g *Gate) checkQuota(_ context.Context, a *Admission) error {
	if g.config.Quota == nil || a.Request.Started {
		return nil
	}
	return g.config.Quota(a.Subject.Principal, 2*len(a.Request.Args))
}

// isRepeatable reports whether a call with an unknown outcome may run again.
func isRepeatable(e tool.Effect) bool { return e == tool.Idempotent || e == tool.ReadOnly }

// Effect returns the effect class of the tool of an allowed call. For other calls
// it returns Mutating.
func (a *Admission) Effect() tool.Effect {
	if a.handle == nil {
		return tool.Mutating
	}
	return a.handle.Definition.Effect
}

// NextState returns the workflow state that an allowed call leads to if it
// succeeds. It returns "" if the state stays and for denied calls.
func (a *Admission) NextState() string {
	if !a.Allowed() || a.handle == nil {
		return ""
	}
	return a.handle.Definition.State
}

// interruptedError returns the error of a call that started and may or may not have had
// its effect.
func interruptedError(name string) error {
	return errcode.New(errcode.ToolInterrupted, "%s was started and its outcome is unknown: it may or may not have acted; verify the effect before retrying", name)
}
