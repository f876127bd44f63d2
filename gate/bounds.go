package gate

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// checkBounds rejects arguments outside a bound on the tool. The View that decided has the
// bounds of all roles along the line, and each of them must hold.
func (g *Gate) checkBounds(ctx context.Context, a *Admission) error {
	checks := a.Decision.outcome.ToolChecks(a.handle)
	if len(checks) == 0 {
		return nil
	}
	inputs := g.inputsOf(ctx, a.Subject.Principal)
	for _, c := range checks {
		if v := c.CheckArguments(a.Request.Args, inputs); v != nil {
			return notGrantedError(a.Request.Name, v)
		}
	}
	return nil
}

// notGrantedError returns the error for arguments that a bound rejects.
func notGrantedError(name string, v *bounds.Violation) error {
	return errcode.New(errcode.ArgumentNotGranted, "call %s: %s; use an argument within it, or ask the sender of your task", name, v.Error()).
		With("path", v.Path).With("operator", v.Operator).With("bound", v.Bound)
}

// inputsOf returns the values of the input of a principal's task.
func (g *Gate) inputsOf(ctx context.Context, p identity.Principal) bounds.TaskInputs {
	if g.config.Inputs == nil {
		return nil
	}
	return func(name string) (json.RawMessage, bool) { return g.config.Inputs(ctx, p, name) }
}

// withBounds returns a context with the bounds on a call, for what the arguments do not say:
// requests may be redirected (bounds.CheckRedirect).
func (g *Gate) withBounds(ctx context.Context, a *Admission) context.Context {
	checks := a.Decision.outcome.ToolChecks(a.handle)
	if len(checks) == 0 {
		return ctx
	}
	return bounds.WithCall(ctx, bounds.BoundCall{Checks: checks, Inputs: g.inputsOf(ctx, a.Subject.Principal)})
}

// CheckArguments returns the error of the bound that denies a call of the named tool with these
// arguments. It returns nil if all bounds allow them, or if the tool is not visible. args must be
// strict JSON. The error has the code ArgumentNotGranted. A PreviewSubject has no task, so a
// bound by its input denies. CheckArguments decides nothing: Call checks the bounds of each call.
func (g *Gate) CheckArguments(ctx context.Context, s *Subject, name string, args json.RawMessage) error {
	a := decideNow(s, name, args)
	if !a.Decision.Allowed() {
		return nil
	}
	return g.checkBounds(ctx, a)
}

// decideNow returns a call with the current decision about its tool. It does not wait for
// changes of the registry, as resolve does: they may wait for a running call.
func decideNow(s *Subject, name string, args json.RawMessage) *Admission {
	a := &Admission{Request: CallRequest{Call: tool.Call{Name: name, Args: args}}, Subject: s, Decision: s.AuthorizeTool(name)}
	if a.Decision.Allowed() {
		a.handle = a.Decision.handle
	}
	return a
}
