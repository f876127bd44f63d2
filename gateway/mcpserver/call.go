package mcpserver

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// call runs one tool call through the gate. A denied call of a tool that is not
// offered to the caller returns the zero outcome. A denied call of a tool that is offered
// in another workflow state returns a failure for the model to read. So does any call in a
// suspended role.
func (s *Server) call(ctx context.Context, sc *clientScope, c toolCall) outcome {
	ctx, err := s.withRoot(ctx, sc)
	if err != nil {
		return outcome{err: err}
	}
	suspended := s.rt.Gate().Subject(sc.caller).AuthorizeTool(c.name).Suspended() != "" // then all names have the same answer
	if c.name == AskName && !suspended {
		return s.askOrganization(ctx, sc, c.args, c.input)
	}
	snapshot := s.rt.GroupManager().CurrentSnapshot()
	if sc.endpoint.toolset != "" && !snapshot.InGroups(c.name, sc.endpoint.toolset) {
		return outcome{}
	}
	var definition tool.Definition
	if h, ok := snapshot.LookupTool(c.name); ok {
		definition = h.Definition
	}
	if !suspended && !c.secureAllowed(definition) {
		return outcome{}
	}
	ctx, rounds, err := s.withInput(ctx, sc, c, definition)
	if err != nil {
		return outcome{rejected: newRPCError(jsonrpc.CodeInvalidParams, errcode.Message(err))}
	}
	a, err := s.rt.InvokeTool(c.withCredentials(ctx, definition.Auth), sc.caller, c.name, c.args)
	if o, ended := rounds.outcomeOf(c.name, a, err); ended {
		return o
	}
	switch {
	case err != nil:
		return failedCall(c.name, err)
	case a.Decision.Suspended() != "":
		return outcome{result: &a.Result}
	case !a.Decision.Allowed() && (a.Decision.Rule() != toolgroups.WrongState || !s.offers(sc, c.name)):
		return outcome{}
	case lacksToken(a):
		return outcome{tokenErr: a.Err}
	}
	return outcome{result: &a.Result, rows: definition.Declared != nil, typed: definition.Listing.Output != nil}
}

// withInput returns a context in which a tool that may ask asks the client. rounds is nil in
// versions with sessions, and for other tools.
//
// Errors: the errors of newRoundInput.
func (s *Server) withInput(ctx context.Context, sc *clientScope, c toolCall, d tool.Definition) (context.Context, *roundInput, error) {
	switch {
	case d.Asks == tool.AsksNothing || !s.rt.Gate().Subject(sc.caller).AuthorizeTool(c.name).Allowed(): // all denials look alike
		return ctx, nil, nil
	case c.rounds == nil && c.input != nil:
		return tool.WithInput(ctx, c.input), nil, nil
	case c.rounds == nil:
		return ctx, nil, nil
	}
	in, err := s.newRoundInput(sc, c, d.Effect, *c.rounds)
	if err != nil {
		return ctx, nil, err
	}
	return runtime.WithResumedCall(tool.WithInput(ctx, in), in.state.Call), in, nil
}

// lacksToken reports whether the gate rejected a call because no valid token was sent
// that the call itself requires. A token for a parameter only is reported as a result.
func lacksToken(a *gate.Admission) bool {
	err, ok := errors.AsType[*errcode.Error](a.Err)
	return ok && err.Code == errcode.Unauthenticated && err.Details["parameter"] == nil
}

// offers reports whether a tool is offered to the caller in some workflow
// state.
func (s *Server) offers(sc *clientScope, name string) bool {
	return slices.ContainsFunc(s.rt.Gate().Subject(sc.caller).ListableTools(), func(o tool.Definition) bool { return o.Name == name })
}

// failedCall returns the outcome of a call that returned err instead of a
// result. Errors with a code become failures for the model to read; others stay
// internal.
func failedCall(name string, err error) outcome {
	if errcode.CodeOf(err) == errcode.Internal {
		return outcome{err: err}
	}
	r := tool.Failure(name, err)
	return outcome{result: &r}
}
