package mcpclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// remoteTool is one tool of a server, by one definition.
type remoteTool struct {
	module     *Module
	pin        modules.Pin
	digest     string
	definition tool.Definition
	extra      *resourceTool // when the module makes the tool itself
}

// Definition implements tool.Tool.
func (t *remoteTool) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool. The request is sent once: a second time only when
// the connection was over before a byte of the first had left, or the server
// has forgotten that there was one.
func (t *remoteTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	mine, cancel := context.WithTimeoutCause(ctx, t.module.config.Timeout, errTimeout)
	defer cancel()
	for try := 1; ; try++ {
		result, sent, err := t.try(mine, c)
		if err == nil {
			return result, nil
		}
		if try == 1 && over(err) && !sent && mine.Err() == nil {
			continue
		}
		return tool.Result{}, t.outcome(ctx, mine, err, sent)
	}
}

// try sends the request once and says whether the server may have acted.
func (t *remoteTool) try(ctx context.Context, c tool.Call) (r tool.Result, sent bool, err error) {
	n, err := t.module.link.ready(ctx)
	if err != nil {
		return r, false, err
	}
	if !t.module.isActive(t.pin.Tool, t.digest) {
		return r, false, errcode.New(errcode.ToolUnavailable, "the server %q offers another definition than the one that was accepted; the operator has to accept it", t.module.config.Name)
	}
	ctx, left := withSent(ctx)
	r, err = t.send(ctx, n, c)
	if err == nil {
		return r, true, nil
	}
	if answer := serverError(err); answer != nil && ctx.Err() == nil {
		return tool.Failure(t.definition.Name, answer), true, nil
	}
	if over(err) {
		n.kill()
		n.close()
	}
	return r, mayHaveActed(left, err), n.explain(err)
}

var errTimeout = errors.New("the server did not answer in time")

// send asks the server and tells the caller of progress.
func (t *remoteTool) send(ctx context.Context, n *conn, c tool.Call) (tool.Result, error) {
	if t.extra != nil {
		return t.extra.call(ctx, n.session, t.definition.Name, c.Args)
	}
	token, stop := n.onProgress(tool.Monotonic(func(p tool.Progress) { // called by one goroutine, of the connection
		if ctx.Err() == nil {
			tool.Report(ctx, p)
		}
	}))
	defer stop()
	params := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: t.pin.Tool, Arguments: c.Args}
	params.SetProgressToken(token)
	r, err := n.session.CallTool(ctx, params)
	if err != nil {
		return tool.Result{}, err
	}
	if r.NeedsInput() {
		return tool.Failure(t.definition.Name, errcode.New(errcode.ToolExecutionFailed, "%s asks for input from a person, which is not available here", t.definition.Name)), nil
	}
	return resultOf(t.definition.Name, r), nil
}

// outcome says what an error means for a call: sent says whether the server
// may have acted on it.
func (t *remoteTool) outcome(caller, mine context.Context, err error, sent bool) error {
	name := t.definition.Name
	switch {
	case caller.Err() != nil: // the gate knows what that means
		return fmt.Errorf("call %s: %w", name, context.Cause(caller))
	case sent && t.definition.Effect == tool.Mutating:
		return errcode.Wrap(errcode.ToolInterrupted, err, "%s was sent to the server %q and its outcome is unknown: it may or may not have acted; look before you call it again", name, t.module.config.Name)
	case mine.Err() != nil && sent:
		return errcode.Wrap(errcode.ToolTimeout, err, "%s was not answered within %v; it is safe to call again", name, t.module.config.Timeout)
	case errcode.Of(err) == errcode.ToolUnavailable:
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: %s", name, errcode.Message(err))
	case sent:
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s was not answered: the server %q broke off; it is safe to call again", name, t.module.config.Name)
	}
	return errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: the server %q cannot be reached", name, t.module.config.Name)
}

// Codes that the library uses for errors of its own.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// serverError gives the server's own answer that a call failed; nil when the
// error is something else.
func serverError(err error) error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code == codeClientClosing || e.Code == codeServerClosing || e.Code == codeRejected {
		return nil
	}
	return errcode.New(errcode.ToolExecutionFailed, "the server refused the call: %s", oneLine(e.Message, 4096)).With("serverCode", e.Code)
}
