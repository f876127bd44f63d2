package modules

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// leasedTool is a module's tool whose calls enter the instance. It implements
// tool.Leaser.
type leasedTool struct {
	tool       tool.Tool
	definition tool.Definition
	instance   *instance
}

// Definition implements tool.Tool.
func (t *leasedTool) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool for callers that did not enter. When the module has
// ended meanwhile, the tool is not called and the error has the code
// tool_unavailable. A panic of the tool is the gate's to handle.
func (t *leasedTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	in, ok := t.Lease()
	if !ok {
		return tool.Result{}, errcode.New(errcode.ToolUnavailable,
			"%s did not start: module %q was unloaded or replaced; see whether you still have the tool and call it again", t.definition.Name, t.instance.name)
	}
	defer in.Release()
	return in.Call(ctx, c)
}

// Lease implements tool.Leaser.
func (t *leasedTool) Lease() (tool.Lease, bool) {
	if !t.instance.acquire() {
		return nil, false
	}
	return (*activeLease)(t), true
}

// activeLease is an entering that was entered.
type activeLease leasedTool

// Definition implements tool.Tool.
func (t *activeLease) Definition() tool.Definition { return t.definition }

// Release implements tool.Lease.
func (t *activeLease) Release() { t.instance.release() }

// Call implements tool.Tool. A module that sleeps is woken first; then the tool
// has until ctx ends. One that does not heed that is given up: its call is over
// and it stays in the instance until it returns.
func (t *activeLease) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	i := t.instance
	if err := i.ensureProvisioned(ctx, t.definition.Name); err != nil {
		return tool.Result{}, err
	}
	if ctx.Done() == nil {
		return t.tool.Call(ctx, c)
	}
	if n := i.abandoned.Load(); n >= maxAbandoned {
		return tool.Result{}, errcode.New(errcode.ToolUnavailable, "%s did not start: %d calls of module %q have not returned though they were told to", t.definition.Name, n, i.name)
	}
	i.hold()
	done := make(chan callResult, 1)
	i.workers.run(func() { t.run(done, func() (tool.Result, error) { return t.tool.Call(ctx, c) }) })
	select {
	case o := <-done:
		return o.unwrap()
	case <-ctx.Done():
	}
	return t.abandon(ctx, done)
}

// maxAbandoned is how many calls of a module may be given up and not have returned
// before it gets no more.
const maxAbandoned = 64

// abandon gives a call that was told to stop a moment to do so.
func (t *activeLease) abandon(ctx context.Context, done <-chan callResult) (tool.Result, error) {
	select {
	case o := <-done:
		return o.unwrap()
	case <-time.After(stopGrace):
	}
	t.instance.abandoned.Add(1)
	go func() {
		<-done
		t.instance.abandoned.Add(-1)
	}()
	return tool.Result{}, fmt.Errorf("%s of module %q was told to stop and did not: %w", t.definition.Name, t.instance.name, context.Cause(ctx))
}

// callResult is what came of a call.
type callResult struct {
	result   tool.Result
	err      error
	panicked string // how the tool panicked
}

// unwrap ends the call with it; a panic goes on in the caller's goroutine.
func (o callResult) unwrap() (tool.Result, error) {
	if o.panicked != "" {
		panic(o.panicked)
	}
	return o.result, o.err
}

// run ends a call with an outcome, whatever the tool does.
func (t *activeLease) run(done chan<- callResult, call func() (tool.Result, error)) {
	o := callResult{panicked: "the tool ended its goroutine"}
	defer func() {
		if p := recover(); p != nil {
			o.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		t.instance.release()
		done <- o
	}()
	result, err := call()
	o = callResult{result: result, err: err}
}

// sameTool says whether two tools of one instance are one: the same value with
// the same definition.
func sameTool(a, b tool.Tool) bool {
	x, ok := a.(*leasedTool)
	y, also := b.(*leasedTool)
	if !ok || !also {
		return false
	}
	if x == y {
		return true
	}
	return x.instance == y.instance && reflect.ValueOf(x.tool).Comparable() && reflect.ValueOf(y.tool).Comparable() &&
		x.tool == y.tool && reflect.DeepEqual(x.definition, y.definition)
}
