package toolservice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
)

// serviceTool is one tool of a service. It is immutable.
type serviceTool struct {
	module     *Module
	values     string // a JSON object
	definition tool.Definition
}

// Definition implements tool.Tool.
func (t *serviceTool) Definition() tool.Definition { return t.definition }

// errTimeout is the cause of a context that ended after the timeout of a call.
var errTimeout = errors.New("the service did not answer in time")

// Call implements tool.Tool. The request is sent once, and again only if the service reports
// that it did nothing because it has too much to do.
func (t *serviceTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	c.Name = cmp.Or(c.Name, t.definition.Name)
	timed, cancel := context.WithTimeoutCause(ctx, t.module.timeout(), errTimeout)
	defer cancel()
	text, sent, err := t.send(timed, c)
	switch {
	case err == nil:
		return tool.Result{Text: textutil.RemoveInvisible(text)}, nil
	case ctx.Err() != nil: // the gate handles it
		return tool.Result{}, fmt.Errorf("call %s: %w", c.Name, context.Cause(ctx))
	}
	return tool.Failure(c.Name, t.callError(c.Name, sent, err)), nil
}

// send waits for the turn of the caller, sends the request and waits for the response. sent
// reports whether the service may have received it.
func (t *serviceTool) send(ctx context.Context, c tool.Call) (text string, sent bool, err error) {
	owner, member := c.FairKey()
	release, err := t.module.slots.Acquire(ctx, fair.Key{Owner: owner, Member: member})
	if err != nil {
		return "", false, err
	}
	defer release()
	delays := backoff.Backoff{Initial: firstDelay, Max: longestDelay, Jitter: true}
	for attempt := 1; ; attempt++ {
		text, sent, err = t.sendOnce(ctx, c)
		if !isBusy(err) || attempt == maxAttempts || !wait(ctx, delays.Next()) {
			return text, sent, err
		}
	}
}

// How often a request is sent to a service that has too much to do, and the delays between.
const (
	maxAttempts  = 6
	firstDelay   = 100 * time.Millisecond
	longestDelay = 10 * time.Second
)

// isBusy reports whether a service says that it did nothing because it has too much to do.
func isBusy(err error) bool {
	e, ok := errors.AsType[*protocol.Error](err)
	return ok && e.Type == protocol.ErrorRateLimited
}

// wait waits for d. It reports false if ctx ended before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// sendOnce sends the request once.
func (t *serviceTool) sendOnce(ctx context.Context, c tool.Call) (text string, sent bool, err error) {
	l, err := t.module.openLink(ctx)
	if err != nil {
		return "", false, err
	}
	m, err := t.message(ctx, c, l.maxBytes())
	if err != nil {
		return "", false, err
	}
	r := l.inbox.add(t.module.maxResponse())
	defer l.inbox.remove(r)
	m.ID = r.id
	if sent, err = l.link.Send(ctx, m); err != nil {
		return "", sent, err
	}
	select {
	case a := <-r.answer:
		return a.text, true, a.err
	case <-ctx.Done():
		return "", true, context.Cause(ctx)
	}
}

// message returns the request of a call, without its id. most is the largest body.
func (t *serviceTool) message(ctx context.Context, c tool.Call, most int) (broker.Message, error) {
	arguments := string(c.Args)
	if arguments == "" {
		arguments = "{}"
	}
	r := protocol.Request{User: userOf(c), Config: t.values, Arguments: arguments}
	body := r.Encode()
	if len(body) > most {
		return broker.Message{}, errcode.New(errcode.InvalidArguments, "the request has %d bytes and the broker accepts %d; send less", len(body), most)
	}
	token, err := t.token(ctx, c, r)
	return broker.Message{Body: body, Token: token}, err
}

// callError returns the error of a call that has no result. sent is whether the service may
// have received the request. It may have acted then, unless the error says that it did nothing.
func (t *serviceTool) callError(name string, sent bool, err error) error {
	service := t.module.config.Service.ID
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return errReported(service, e)
	}
	switch {
	case errors.Is(err, fair.ErrQueueFull):
		return errcode.New(errcode.RateLimited, "%s did not run: too many calls wait for the tool service %q already; wait for your own calls to finish, then call again", name, service)
	case !sent && errors.Is(err, broker.ErrTooLarge):
		return errcode.New(errcode.InvalidArguments, "%s did not run: the request is larger than the broker of the tool service %q accepts; send less", name, service)
	case errors.Is(err, broker.ErrNoService):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: no service receives requests of the tool service %q; it may be called again later", name, service)
	case errors.Is(err, broker.ErrBusy):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: the broker of the tool service %q takes no messages for now; it may be called again later", name, service)
	case errors.Is(err, errMalformed), errors.Is(err, errOversized):
		return t.errBadResponse(service, err)
	case sent && t.definition.Effect == tool.Mutating:
		return errcode.Wrap(errcode.ToolInterrupted, err, "%s was sent to the tool service %q and its outcome is unknown: verify the effect before retrying", name, service)
	case sent && errors.Is(err, errTimeout):
		return errcode.Wrap(errcode.ToolTimeout, err, "the tool service %q did not answer within %v; it is safe to call %s again", service, t.module.timeout(), name)
	case sent:
		return errcode.Wrap(errcode.ToolUnavailable, err, "the response of the tool service %q was lost; it is safe to call %s again", service, name)
	case errors.Is(err, errTimeout):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: the tool service %q had no place for it within %v", name, service, t.module.timeout())
	case errcode.CodeOf(err) != errcode.Internal:
		return err
	}
	return errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: the broker of the tool service %q cannot be reached", name, service)
}

// errReported returns the error that a service has reported.
func errReported(service string, e *protocol.Error) error {
	switch e.Type {
	case protocol.ErrorRateLimited:
		return errcode.New(errcode.ToolUnavailable, "the tool service %q has too much to do and did nothing; call again later", service)
	case protocol.ErrorForbidden:
		return errcode.New(errcode.ToolUnavailable, "the tool service %q rejected the request and did nothing: %s; the operator compares its key and its clock",
			service, textutil.OneLine(cmp.Or(e.Message, "the call token is not valid"), maxReasonText))
	}
	return errcode.New(errcode.ToolExecutionFailed, "%s", textutil.Truncate(textutil.RemoveInvisible(cmp.Or(e.Message, e.Type, "the tool service failed without a message")), maxErrorText))
}

// maxReasonText is the largest number of bytes of a service's reason to reject a request.
const maxReasonText = 200

// maxErrorText is the largest number of bytes of an error's text that the model reads.
const maxErrorText = 4 << 10

// errBadResponse returns the error of a call whose response cannot be used. The service has acted.
func (t *serviceTool) errBadResponse(service string, err error) error {
	acted := ""
	if t.definition.Effect == tool.Mutating {
		acted = "; it may have changed something"
	}
	if errors.Is(err, errOversized) {
		return errcode.New(errcode.ResultTooLarge, "the response of the tool service %q is larger than %d bytes%s", service, t.module.maxResponse(), acted)
	}
	return errcode.New(errcode.ToolExecutionFailed, "the response of the tool service %q cannot be read: %v%s", service, err, acted)
}
