package modules

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// instance is one module on its way from Provision to Close.
type instance struct {
	name      string
	module    Module
	loader    *Loader
	groups    []toolgroups.Group // as registered; their tools enter the instance. Written by who holds the claim, under the Loader's mu
	idle      chan struct{}      // closed when it has ended and the last call left
	turn      chan struct{}      // holds one token while a method of the module runs
	sleep     *lazyState         // nil when it was provisioned before it was registered
	abandoned atomic.Int32       // calls that were given up and have not returned
	workers   workers            // run its calls

	mu    sync.Mutex // guards what follows
	calls int        // that entered and have not left
	ended bool       // no call enters any more

	closed chan struct{} // of an instance that outlived its Unload: closed after err is set
	err    error
}

func newInstance(l *Loader, name string, m Module) *instance {
	idle := make(chan struct{})
	return &instance{
		name: name, module: m, loader: l, workers: workers{make(chan func()), idle},
		idle: idle, turn: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// prepare takes the module through the steps that nobody else sees.
func (i *instance) prepare(ctx context.Context) error {
	if err := i.begin(ctx); err != nil {
		return err
	}
	groups, err := ask(ctx, i, func() ([]toolgroups.Group, error) { return i.wrapGroups(i.module.Groups()) })
	if err != nil {
		return i.failed(StepGroups, err)
	}
	i.groups = groups
	return nil
}

// begin provisions and validates.
func (i *instance) begin(ctx context.Context) error {
	if p, ok := i.module.(Provisioner); ok {
		if _, err := ask(ctx, i, func() (any, error) { return nil, p.Provision(ctx) }); err != nil {
			return i.failed(StepProvision, err)
		}
	}
	if v, ok := i.module.(Validator); ok {
		if _, err := ask(ctx, i, func() (any, error) { return nil, v.Validate() }); err != nil {
			return i.failed(StepValidate, err)
		}
	}
	return nil
}

// stopGrace is what code that was told to stop gets to do so.
const stopGrace = time.Second

// ask runs code of the module, one at a time, and waits for it until ctx has
// ended. What does not return then keeps the module from being asked anything,
// and from being closed, until it does.
func ask[T any](ctx context.Context, i *instance, fn func() (T, error)) (T, error) {
	var none T
	if err := i.lock(ctx); err != nil {
		return none, err
	}
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		a.err = guard(func() (err error) { a.value, err = fn(); return err })
		<-i.turn
		i.release()
		done <- a
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done:
		return a.value, a.err
	case <-time.After(stopGrace):
		return none, fmt.Errorf("it did not return in time: %w", context.Cause(ctx))
	}
}

// lock waits until no method of the module runs, and holds the instance.
func (i *instance) lock(ctx context.Context) error {
	select {
	case i.turn <- struct{}{}:
	default:
		select {
		case i.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("it has not returned from what it was asked before: %w", context.Cause(ctx))
		}
	}
	if i.hold() {
		return nil
	}
	<-i.turn
	return errcode.New(errcode.ToolUnavailable, "module %q was unloaded", i.name)
}

// wrapGroups wraps the tools of groups. An id that comes twice would replace the
// module's own group without a word.
func (i *instance) wrapGroups(given []toolgroups.Group) ([]toolgroups.Group, error) {
	if len(given) > maxGroups {
		return nil, errcode.New(errcode.InvalidGroupDef, "the module has %d groups; at most %d are taken", len(given), maxGroups)
	}
	groups := slices.Clone(given)
	seen := make(map[toolgroups.GroupID]bool, len(groups))
	tools := 0
	for n, g := range groups {
		if seen[g.ID] {
			return nil, errcode.New(errcode.DuplicateGroupID, "the module has two groups of the id %q", g.ID)
		}
		if tools += len(g.Tools); tools > maxTools {
			return nil, errcode.New(errcode.InvalidGroupDef, "the module has more than %d tools", maxTools)
		}
		seen[g.ID] = true
		groups[n].Refs = slices.Clone(g.Refs)
		groups[n].Tools = i.wrap(g.Tools)
	}
	return groups, nil
}

// The most that one module may bring.
const (
	maxGroups = 10_000
	maxTools  = 10_000
)

// wrap asks each tool for its definition, once, and shares no bytes of it with
// the module. A tool that is none stays none: the registry refuses it and says
// where it is.
func (i *instance) wrap(tools []tool.Tool) []tool.Tool {
	wrapped := make([]tool.Tool, len(tools))
	for n, t := range tools {
		if t == nil {
			continue
		}
		d := t.Definition()
		d.Input, d.States = slices.Clone(d.Input), slices.Clone(d.States)
		wrapped[n] = &leasedTool{tool: t, definition: d, instance: i}
	}
	return wrapped
}

// acquire lets a call in; each that entered leaves.
func (i *instance) acquire() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return false
	}
	i.calls++
	return true
}

// hold keeps the instance from being closed, as a call does. It may come after
// the end while a call is in it.
func (i *instance) hold() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended && i.calls == 0 {
		return false
	}
	i.calls++
	return true
}

func (i *instance) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls--
	i.settle()
}

// end lets no further call in.
func (i *instance) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ended {
		i.ended = true
		i.settle()
	}
}

// settle wants mu held. It becomes true once: after end no call enters.
func (i *instance) settle() {
	if i.ended && i.calls == 0 {
		close(i.idle)
	}
}

// wait returns when the last call has left an ended instance. An instance
// that is quiet has been waited for, however late it is.
func (i *instance) wait(ctx context.Context) error {
	select {
	case <-i.idle:
		return nil
	default:
	}
	select {
	case <-i.idle:
		return nil
	case <-ctx.Done():
		return i.failed(StepWait, fmt.Errorf("it closes when the calls that entered it have ended: %w", context.Cause(ctx)))
	}
}

// close closes the module, or leaves it to itself when that takes too long.
func (i *instance) close() error {
	c, ok := i.module.(io.Closer)
	if !ok {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- guard(c.Close) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(i.loader.patience()):
		err = fmt.Errorf("it did not return within %v and is left to itself", i.loader.patience())
	}
	if err != nil {
		return i.failed(StepClose, err)
	}
	return nil
}

// closedOK says whether there is nothing left to tell of a late instance.
func (i *instance) closedOK() bool {
	select {
	case <-i.closed:
		return i.err == nil
	default:
		return false
	}
}

func (i *instance) failed(step Step, err error) error {
	return &StepError{Module: i.name, Step: step, Err: err}
}
