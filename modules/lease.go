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

// leasedTool wraps a module's tool so that every call holds a lease on the instance.
// It implements tool.Leaser.
type leasedTool struct {
	tool       tool.Tool
	definition tool.Definition
	instance   *instance
}

// Definition implements tool.Tool.
func (t *leasedTool) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool for callers without a lease. When the module has ended
// meanwhile, the tool is not called and the error has the code tool_unavailable. A
// panic of the tool is left to the gate.
func (t *leasedTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	lease, ok := t.AcquireLease()
	if !ok {
		return tool.Result{}, errcode.New(errcode.ToolUnavailable,
			"%s did not start: module %q was unloaded or replaced; call it again if you still have the tool", t.definition.Name, t.instance.name)
	}
	defer lease.Release()
	return lease.Call(ctx, c)
}

// AcquireLease implements tool.Leaser.
func (t *leasedTool) AcquireLease() (tool.Lease, bool) {
	if !t.instance.acquire() {
		return nil, false
	}
	return (*activeLease)(t), true
}

// activeLease is a leasedTool whose lease was acquired. It implements tool.Lease.
type activeLease leasedTool

// Definition implements tool.Tool.
func (l *activeLease) Definition() tool.Definition { return l.definition }

// Release implements tool.Lease.
func (l *activeLease) Release() { l.instance.release() }

// Call implements tool.Tool. It first provisions a module that is not. A tool that does
// not return when ctx ends is abandoned. The call fails, and the tool keeps its lease
// until it returns.
func (l *activeLease) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	i := l.instance
	if err := i.ensureProvisioned(ctx, l.definition.Name); err != nil {
		return tool.Result{}, err
	}
	if ctx.Done() == nil {
		return l.tool.Call(ctx, c)
	}
	if n := i.abandoned.Load(); n >= maxAbandoned {
		return tool.Result{}, errcode.New(errcode.ToolUnavailable, "%s did not start: %d timed-out calls of module %q have not returned", l.definition.Name, n, i.name)
	}
	i.hold()
	done := make(chan callResult, 1)
	i.workers.run(func() { l.runCall(done, func() (tool.Result, error) { return l.tool.Call(ctx, c) }) })
	select {
	case r := <-done:
		return r.unwrap()
	case <-ctx.Done():
	}
	return l.abandon(ctx, done)
}

// maxAbandoned is how many abandoned calls of a module may run before further calls
// are rejected. It bounds the goroutines that a module can leave behind.
const maxAbandoned = 64

// abandon waits stopTimeout for a call whose context has ended, then abandons it.
func (l *activeLease) abandon(ctx context.Context, done <-chan callResult) (tool.Result, error) {
	select {
	case r := <-done:
		return r.unwrap()
	case <-time.After(stopTimeout):
	}
	l.instance.abandoned.Add(1)
	go func() {
		<-done
		l.instance.abandoned.Add(-1)
	}()
	return tool.Result{}, fmt.Errorf("%s of module %q did not stop: %w", l.definition.Name, l.instance.name, context.Cause(ctx))
}

// callResult is what a call in another goroutine returned.
type callResult struct {
	result   tool.Result
	err      error
	panicked string // value and stack of a panic; "" if there was none
}

// unwrap returns the result. It repeats a panic in the goroutine of the caller.
func (r callResult) unwrap() (tool.Result, error) {
	if r.panicked != "" {
		panic(r.panicked)
	}
	return r.result, r.err
}

// runCall releases the lease and sends a result also when the tool panics or ends its
// goroutine.
func (l *activeLease) runCall(done chan<- callResult, call func() (tool.Result, error)) {
	r := callResult{panicked: "the tool ended its goroutine"}
	defer func() {
		if p := recover(); p != nil {
			r.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		l.instance.release()
		done <- r
	}()
	result, err := call()
	r = callResult{result: result, err: err}
}

// sameTool reports whether two tools of one instance are the same value with the same
// definition.
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
