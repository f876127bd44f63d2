package builtin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// toolBuilder collects the tools of one group and what went wrong making them.
type toolBuilder struct {
	tools []tool.Tool
	err   error
}

func (s *toolBuilder) add(t tool.Tool, err error) {
	s.tools, s.err = append(s.tools, t), errors.Join(s.err, err)
}

func options(effect tool.Effect, input string) *tool.Options {
	return &tool.Options{Effect: effect, Input: json.RawMessage(input)}
}

// guarded gives errors of fn without a code the code internal: their text may
// name what is inside the process, and tool.New would show it to the model.
func guarded[In, Out any](fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := fn(ctx, in)
		if _, coded := errors.AsType[*errcode.Error](err); err != nil && !coded {
			err = errcode.Wrap(errcode.Internal, err, "%s", errcode.Message(err))
		}
		return out, err
	}
}

// requireTool refuses a call that does what another tool does, unless that is the
// caller's too: what a role may do does not grow by how it is asked for.
func requireTool(b Limits, by identity.Principal, what, tool string) error {
	if b.CanCall(by, tool) {
		return nil
	}
	return errcode.New(errcode.ToolNotAvailable, "%s needs %s, which is not available to you; do it without", what, tool).With("ok", false)
}

// caller gives the call a handler works for. Outside a call it is the zero
// Call, whose principal is nobody and has nothing.
func caller(ctx context.Context) tool.Call {
	call, _ := tool.Current(ctx)
	return call
}
