package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/tool"
)

// remoteTool is one tool of a server with one definition.
type remoteTool struct {
	module     *Module
	pin        modules.ToolPin
	digest     string
	definition tool.Definition
	resource   *resourceTool // nil for a tool of the server
}

// Definition implements tool.Tool.
func (t *remoteTool) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool. The request is sent again only if the connection had ended
// before a byte of it was sent, or the server had lost the session.
func (t *remoteTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	callCtx, cancel := tool.WithWorkTime(ctx, t.module.config.Timeout, errTimeout)
	defer cancel()
	c.Name = cmp.Or(c.Name, t.definition.Name)
	for attempt := 1; ; attempt++ {
		result, sent, err := t.tryCall(callCtx, c)
		if err == nil {
			return result, nil
		}
		if attempt == 1 && isConnectionLost(err) && !sent && callCtx.Err() == nil {
			continue
		}
		return tool.Result{}, t.callError(ctx, callCtx, c.Name, err, sent)
	}
}

// tryCall sends the request once. sent reports whether the server may have acted.
func (t *remoteTool) tryCall(ctx context.Context, c tool.Call) (r tool.Result, sent bool, err error) {
	n, release, err := t.connection(ctx, c)
	if err != nil {
		return r, false, err
	}
	defer release()
	ctx, flag := withSent(ctx)
	r, err = t.send(ctx, n, c)
	if err == nil {
		return r, true, nil
	}
	if answer := answeredError(err); answer != nil && ctx.Err() == nil {
		return tool.Failure(c.Name, answer), true, nil
	}
	if isConnectionLost(err) {
		n.kill()
		n.close()
	}
	return r, mayHaveActed(flag, err), n.explain(err)
}

// connection returns the connection for a call, until release is called. It is the connection of
// the operator, or of the person for whom the call is made. In any case the definition is
// compared with the definition that the server last sent to the operator.
func (t *remoteTool) connection(ctx context.Context, c tool.Call) (n *conn, release func(), err error) {
	m := t.module
	n, err = m.reconnector.connection(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !m.isActive(t.pin.Tool, t.digest) {
		return nil, nil, errcode.New(errcode.ToolUnavailable, "the definition of the tool on server %q has changed; the operator has to accept the new one", m.config.Name)
	}
	if m.config.Auth == nil || !m.config.Auth.PerCaller() {
		return n, func() {}, nil
	}
	subject, err := m.config.subjectOf(c)
	if err != nil || subject == mcpauth.Operator {
		return n, func() {}, err
	}
	return m.callers.acquire(ctx, subject)
}

// errTimeout is the cause of a context that ended after Config.Timeout.
var errTimeout = errors.New("the server did not answer in time")

// send sends the request, reports the progress to the caller and returns the result.
func (t *remoteTool) send(ctx context.Context, n *conn, c tool.Call) (tool.Result, error) {
	owner, _ := c.FairKey()
	end, err := n.beginCall(ctx, owner) // also of a resource or a prompt: the server may ask meanwhile
	if err != nil {
		return tool.Result{}, err
	}
	defer end()
	if t.resource != nil {
		return t.resource.call(ctx, n.session, c.Name, c.Args)
	}
	token, stop := n.onProgress(tool.MonotonicProgress(func(p tool.Progress) { // called by one goroutine, of the connection
		if ctx.Err() == nil {
			tool.ReportProgress(ctx, p)
		}
	}))
	defer stop()
	params := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: t.pin.Tool, Arguments: c.Args}
	params.SetProgressToken(token)
	n.askForLogs(params)
	r, err := n.callWithInput(ctx, params)
	if code := errcode.CodeOf(err); code == errcode.InputRequired || code == errcode.InputUnavailable || code == errcode.InvalidArguments {
		return tool.Failure(c.Name, err), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	return resultOf(c.Name, r), nil
}

// callError returns the error of a call. callCtx is caller with the timeout of the call;
// sent is whether the server may have acted.
func (t *remoteTool) callError(caller, callCtx context.Context, name string, err error, sent bool) error {
	switch {
	case caller.Err() != nil: // the gate handles it
		return fmt.Errorf("call %s: %w", name, context.Cause(caller))
	case errcode.CodeOf(err) == errcode.AuthorizationRequired:
		return errcode.Wrap(errcode.AuthorizationRequired, err, "%s did not run: %s", name, errcode.Message(err)).With("server", t.module.config.Name)
	case sent && t.definition.Effect == tool.Mutating:
		return errcode.Wrap(errcode.ToolInterrupted, err, "%s was sent to the server %q and its outcome is unknown: verify the effect before retrying", name, t.module.config.Name)
	case callCtx.Err() != nil && sent:
		return errcode.Wrap(errcode.ToolTimeout, err, "%s was not answered within %v; it is safe to call again", name, t.module.config.Timeout)
	case errcode.CodeOf(err) == errcode.ToolUnavailable:
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: %s", name, errcode.Message(err))
	case sent:
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s was not answered: the connection to the server %q was lost; it is safe to call again", name, t.module.config.Name)
	}
	return errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: the server %q is unreachable", name, t.module.config.Name)
}

// JSON-RPC error codes that the library uses for its own errors.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// answeredError returns the tool error for a JSON-RPC error that the server has answered,
// nil for any other error.
func answeredError(err error) error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code == codeClientClosing || e.Code == codeServerClosing || e.Code == codeRejected {
		return nil
	}
	return errcode.New(errcode.ToolExecutionFailed, "the server rejected the call: %s", visibleLine(e.Message, 4096)).With("serverCode", e.Code)
}
