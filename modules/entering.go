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

// entering is a module's tool whose calls enter the instance. It implements
// tool.Leaser.
type entering struct {
	tool       tool.Tool
	definition tool.Definition
	instance   *instance
}

// Definition implements tool.Tool.
func (t *entering) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool for callers that did not enter. When the module has
// ended meanwhile, the tool is not called and the error has the code
// tool_unavailable. A panic of the tool is the gate's to handle.
func (t *entering) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	in, ok := t.Lease()
	if !ok {
		return tool.Result{}, errcode.New(errcode.ToolUnavailable,
			"%s did not start: module %q was unloaded or replaced; see whether you still have the tool and call it again", t.definition.Name, t.instance.name)
	}
	defer in.Release()
	return in.Call(ctx, c)
}

// Lease implements tool.Leaser.
func (t *entering) Lease() (tool.Lease, bool) {
	if !t.instance.enter() {
		return nil, false
	}
	return (*inside)(t), true
}

// inside is an entering that was entered.
type inside entering

// Definition implements tool.Tool.
func (t *inside) Definition() tool.Definition { return t.definition }

// Release implements tool.Lease.
func (t *inside) Release() { t.instance.leave() }

// Call implements tool.Tool. A module that sleeps is woken first; then the tool
// has until ctx ends. One that does not heed that is given up: its call is over
// and it stays in the instance until it returns.
func (t *inside) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	i := t.instance
	if err := i.awake(ctx, t.definition.Name); err != nil {
		return tool.Result{}, err
	}
	if ctx.Done() == nil {
		return t.tool.Call(ctx, c)
	}
	if n := i.stuck.Load(); n >= maxStuck {
		return tool.Result{}, errcode.New(errcode.ToolUnavailable, "%s did not start: %d calls of module %q have not returned though they were told to", t.definition.Name, n, i.name)
	}
	i.hold()
	done := make(chan outcome, 1)
	i.workers.run(func() { t.run(done, func() (tool.Result, error) { return t.tool.Call(ctx, c) }) })
	select {
	case o := <-done:
		return o.give()
	case <-ctx.Done():
	}
	return t.giveUp(ctx, done)
}

// maxStuck is how many calls of a module may be given up and not have returned
// before it gets no more.
const maxStuck = 64

// giveUp gives a call that was told to stop a moment to do so.
func (t *inside) giveUp(ctx context.Context, done <-chan outcome) (tool.Result, error) {
	select {
	case o := <-done:
		return o.give()
	case <-time.After(grace):
	}
	t.instance.stuck.Add(1)
	go func() {
		<-done
		t.instance.stuck.Add(-1)
	}()
	return tool.Result{}, fmt.Errorf("%s of module %q was told to stop and did not: %w", t.definition.Name, t.instance.name, context.Cause(ctx))
}

// outcome is what came of a call.
type outcome struct {
	result tool.Result
	err    error
	broke  string // how the tool panicked
}

// give ends the call with it; a panic goes on in the caller's goroutine.
func (o outcome) give() (tool.Result, error) {
	if o.broke != "" {
		panic(o.broke)
	}
	return o.result, o.err
}

// run ends a call with an outcome, whatever the tool does.
func (t *inside) run(done chan<- outcome, call func() (tool.Result, error)) {
	o := outcome{broke: "the tool ended its goroutine"}
	defer func() {
		if p := recover(); p != nil {
			o.broke = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		t.instance.leave()
		done <- o
	}()
	result, err := call()
	o = outcome{result: result, err: err}
}

// sameTool says whether two tools of one instance are one: the same value with
// the same definition.
func sameTool(a, b tool.Tool) bool {
	x, ok := a.(*entering)
	y, also := b.(*entering)
	if !ok || !also {
		return false
	}
	if x == y {
		return true
	}
	return x.instance == y.instance && reflect.ValueOf(x.tool).Comparable() && reflect.ValueOf(y.tool).Comparable() &&
		x.tool == y.tool && reflect.DeepEqual(x.definition, y.definition)
}
