package builtin

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// toolBuilder collects the tools of one group and the errors of creating them.
type toolBuilder struct {
	tools []tool.Tool
	err   error
}

// add appends a tool, or collects the error of creating it.
func (b *toolBuilder) add(t tool.Tool, err error) {
	b.tools, b.err = append(b.tools, t), errors.Join(b.err, err)
}

// toolOptions returns the options of a tool with an effect class, flags and a schema. The schema may
// have the keywords x-hidden and x-required. It is compiled at the first call. A test compiles all
// schemas.
func toolOptions(effect tool.Effect, flags tool.Flags, schema string) *tool.Options {
	return &tool.Options{Effect: effect, Flags: flags, Input: acceptedSchema(schema), Shown: shownSchema(schema), CompileLater: true}
}

// withCatalog sets the catalog of a tool that lists or reads resources.
func withCatalog(c tool.Catalog, o *tool.Options) *tool.Options {
	o.Catalog = c
	return o
}

// withErrorCode returns fn with the code internal for errors that have none. The text of such
// an error may describe internals, and tool.New would show the text to the model.
func withErrorCode[In, Out any](fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := fn(ctx, in)
		if _, coded := errors.AsType[*errcode.Error](err); err != nil && !coded {
			err = errcode.Wrap(errcode.Internal, err, "%s", errcode.Message(err))
		}
		return out, err
	}
}

// requireTool rejects a call that has the effect of another tool which the caller
// may not call. Otherwise a tool could widen the permissions of a role.
//
// use is the call and the argument, such as "put_artifact with path". It begins the text of the error.
func requireTool(l CallLimits, by identity.Principal, use, tool string) error {
	if l.CanCall(by, tool) {
		return nil
	}
	return errcode.New(errcode.ToolNotAvailable, "%s also needs the tool %s, which is not available to you", use, tool).With("ok", false)
}

// currentCall returns the call that a handler runs for. Outside a call it returns
// the zero Call, whose principal has no permissions.
func currentCall(ctx context.Context) tool.Call {
	call, _ := tool.CurrentCall(ctx)
	return call
}
