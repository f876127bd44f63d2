package modules

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// instance is one module from Provision to Close, with a count of the leases on it.
type instance struct {
	name      string
	module    Module
	owner     *toolgroups.Owner // of groups
	loader    *Loader
	groups    []toolgroups.Group // as registered, with leasedTools. Written by the holder of the changeLock, with Loader.mu held
	idle      chan struct{}      // closed when the instance has ended and the last lease was released
	sem       chan struct{}      // holds a token while a method of the module runs
	lazy      *lazyState         // nil when it was provisioned before it was registered
	abandoned atomic.Int32       // abandoned calls that have not returned
	workers   workerPool         // run its calls
	labels    Labels             // of its tools

	mu     sync.Mutex // guards what follows
	leases int        // acquired and not yet released
	ended  bool       // no call gets a lease any more

	closed chan struct{} // of an instance that closeWhenIdle closes: closed after err is set
	err    error
}

func newInstance(l *Loader, name string, m Module) *instance {
	idle := make(chan struct{})
	return &instance{
		name: name, module: m, loader: l, workers: workerPool{make(chan func()), idle},
		idle: idle, sem: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// prepare runs the steps before the groups are registered. It changes nothing that
// is visible outside of the module.
func (i *instance) prepare(ctx context.Context) error {
	if err := i.provisionAndValidate(ctx); err != nil {
		return err
	}
	groups, err := runMethod(ctx, i, func() ([]toolgroups.Group, error) { return i.wrapGroups(i.module.ToolGroups()) })
	if err != nil {
		return i.stepError(StepGroups, err)
	}
	i.groups = groups
	return nil
}

// provisionAndValidate calls Provision and Validate, as far as the module has them.
func (i *instance) provisionAndValidate(ctx context.Context) error {
	if p, ok := i.module.(Provisioner); ok {
		if _, err := runMethod(ctx, i, func() (any, error) { return nil, p.Provision(ctx) }); err != nil {
			return i.stepError(StepProvision, err)
		}
	}
	if v, ok := i.module.(Validator); ok {
		if _, err := runMethod(ctx, i, func() (any, error) { return nil, v.Validate() }); err != nil {
			return i.stepError(StepValidate, err)
		}
	}
	return nil
}

// stopTimeout is how long code may take to return after its context has ended.
const stopTimeout = time.Second

// runMethod runs fn, which calls a method of the module, and waits for it until ctx
// has ended. One fn runs at a time. A method that does not return in time goes on.
// Until it has returned, no other method runs and the module is not closed.
func runMethod[T any](ctx context.Context, i *instance, fn func() (T, error)) (T, error) {
	var none T
	if err := i.lock(ctx); err != nil {
		return none, err
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.err = recoverPanic(func() (err error) { r.value, err = fn(); return err })
		<-i.sem
		i.release()
		done <- r
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(stopTimeout):
		return none, fmt.Errorf("the module did not return in time: %w", context.Cause(ctx))
	}
}

// lock waits until no method of the module runs, and holds the instance.
// The caller receives from sem and calls release when its method has returned.
func (i *instance) lock(ctx context.Context) error {
	select {
	case i.sem <- struct{}{}:
	default:
		select {
		case i.sem <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("a method of the module that was called before has not returned: %w", context.Cause(ctx))
		}
	}
	if i.hold() {
		return nil
	}
	<-i.sem
	return errcode.New(errcode.ToolUnavailable, "module %q was unloaded", i.name)
}

// wrapGroups returns copies of groups whose tools are leasedTools, with the defaults of
// their ids and descriptions. It rejects a duplicate id, which would silently replace the
// module's own group.
func (i *instance) wrapGroups(from []toolgroups.Group) ([]toolgroups.Group, error) {
	if len(from) > maxGroups {
		return nil, errcode.New(errcode.InvalidGroupDef, "the module has %d groups; the limit is %d", len(from), maxGroups)
	}
	groups := slices.Clone(from)
	seen := make(map[toolgroups.GroupID]bool, len(groups))
	tools := 0
	for n := range groups {
		i.setDefaults(&groups[n])
		g := groups[n]
		if seen[g.ID] {
			return nil, errcode.New(errcode.DuplicateGroupID, "the module has two groups with the id %q", g.ID)
		}
		if tools += len(g.Tools); tools > maxTools {
			return nil, errcode.New(errcode.InvalidGroupDef, "the module has more than the limit of %d tools", maxTools)
		}
		seen[g.ID] = true
		groups[n].Refs, groups[n].APIs = slices.Clone(g.Refs), maps.Clone(g.APIs)
		groups[n].Tools = i.wrap(g)
	}
	return groups, nil
}

// setDefaults sets the id and the description of a group that has none.
func (i *instance) setDefaults(g *toolgroups.Group) {
	g.ID = cmp.Or(g.ID, toolgroups.GroupID(i.name))
	if g.Description != "" {
		return
	}
	if d, ok := i.module.(Describer); ok {
		g.Description = d.Description()
	}
	g.Description = cmp.Or(g.Description, "Tools of the module "+i.name)
}

// The limits of one module.
const (
	maxGroups = 10_000
	maxTools  = 10_000
)

// wrap calls each tool's Definition once and copies the result, so that the module
// cannot change it later. It applies the labels. A nil tool stays nil: the registry rejects
// it and names its place.
func (i *instance) wrap(g toolgroups.Group) []tool.Tool {
	wrapped := make([]tool.Tool, len(g.Tools))
	for n, t := range g.Tools {
		if t == nil {
			continue
		}
		d := t.Definition()
		d.Input, d.Shown, d.States = slices.Clone(d.Input), slices.Clone(d.Shown), slices.Clone(d.States)
		d = i.labels.Apply(g.APIs[d.Name], d)
		wrapped[n] = &leasedTool{tool: t, definition: d, instance: i}
	}
	return wrapped
}

// acquire takes a lease for a call; the caller releases it. It reports false, holding
// nothing, when the instance has ended.
func (i *instance) acquire() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return false
	}
	i.leases++
	return true
}

// hold takes a lease also of an instance that has ended, as long as it has leases. It
// reports false when the instance is idle, for then it may be closed already.
func (i *instance) hold() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended && i.leases == 0 {
		return false
	}
	i.leases++
	return true
}

// release releases a lease of acquire or hold.
func (i *instance) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.leases--
	i.signalIdle()
}

// end makes acquire fail from now on. It may be called repeatedly.
func (i *instance) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ended {
		i.ended = true
		i.signalIdle()
	}
}

// signalIdle must be called with mu held. Its condition becomes true once: hold
// takes no lease of an idle instance that has ended.
func (i *instance) signalIdle() {
	if i.ended && i.leases == 0 {
		close(i.idle)
	}
}

// waitIdle waits until an ended instance has no leases. It succeeds for an idle
// instance also when ctx has ended already.
func (i *instance) waitIdle(ctx context.Context) error {
	select {
	case <-i.idle:
		return nil
	default:
	}
	select {
	case <-i.idle:
		return nil
	case <-ctx.Done():
		return i.stepError(StepWait, fmt.Errorf("the module closes when the calls in progress have ended: %w", context.Cause(ctx)))
	}
}

// close closes the module. It stops waiting after the step timeout.
func (i *instance) close() error {
	c, ok := i.module.(io.Closer)
	if !ok {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- recoverPanic(c.Close) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(i.loader.stepTimeout()):
		err = fmt.Errorf("Close did not return within %v", i.loader.stepTimeout())
	}
	if err != nil {
		return i.stepError(StepClose, err)
	}
	return nil
}

// hasClosed reports whether a draining instance has been closed without an error.
func (i *instance) hasClosed() bool {
	select {
	case <-i.closed:
		return i.err == nil
	default:
		return false
	}
}

func (i *instance) stepError(step LoadStep, err error) error {
	return &StepError{Module: i.name, Step: step, Err: err}
}
