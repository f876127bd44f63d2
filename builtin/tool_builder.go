package builtin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rolecall/rolecall/errcode"
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

// checkOtherTool rejects a call that has the effect of a call of another tool, unless the caller may
// make that call too. Otherwise a tool could widen the permissions of a role, and the bounds and
// rules of approval for the other tool would not hold.
//
// use is the call and the argument, such as "put_artifact with path". It begins the text of the error.
func checkOtherTool(ctx context.Context, l CallLimits, use, tool string, args map[string]string) error {
	text, _ := json.Marshal(args) // texts always marshal
	err := l.CheckCall(ctx, currentCall(ctx).By, tool, text)
	if err == nil {
		return nil
	}
	return errcode.Wrap(errcode.CodeOf(err), err, "%s also needs %s: %s", use, tool, errcode.Message(err)).With("ok", false)
}

// currentCall returns the call that a handler runs for. Outside a call it returns
// the zero Call, whose principal has no permissions.
func currentCall(ctx context.Context) tool.Call {
	call, _ := tool.CurrentCall(ctx)
	return call
}
