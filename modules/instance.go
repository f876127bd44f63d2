package modules

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// instance is one module on its way from Provision to Close.
type instance struct {
	name   string
	module Module
	groups []toolgroups.Group // set by prepare; their tools enter the instance
	idle   chan struct{}      // closed when it has ended and the last call left

	mu    sync.Mutex // guards what follows
	calls int        // that entered and have not left
	ended bool       // no call enters any more

	closed chan struct{} // of an instance that outlived its Unload: closed after err is set
	err    error
}

func newInstance(name string, m Module) *instance {
	return &instance{name: name, module: m, idle: make(chan struct{}), closed: make(chan struct{})}
}

// prepare takes the module through the steps that nobody else sees.
func (i *instance) prepare(ctx context.Context) error {
	if err := guard(func() error { return i.provision(ctx) }); err != nil {
		return i.failed(StepProvision, err)
	}
	if err := guard(i.validate); err != nil {
		return i.failed(StepValidate, err)
	}
	if err := guard(i.collect); err != nil {
		return i.failed(StepGroups, err)
	}
	return nil
}

func (i *instance) provision(ctx context.Context) error {
	if p, ok := i.module.(Provisioner); ok {
		return p.Provision(ctx)
	}
	return nil
}

func (i *instance) validate() error {
	if v, ok := i.module.(Validator); ok {
		return v.Validate()
	}
	return nil
}

// collect asks for the groups. An id that comes twice would replace the
// module's own group without a word.
func (i *instance) collect() error {
	groups := slices.Clone(i.module.Groups())
	seen := make(map[toolgroups.GroupID]bool, len(groups))
	for n, g := range groups {
		if seen[g.ID] {
			return errcode.New(errcode.DuplicateGroupID, "the module has two groups of the id %q", g.ID)
		}
		seen[g.ID] = true
		groups[n].Refs = slices.Clone(g.Refs)
		groups[n].Tools = i.wrap(g.Tools)
	}
	i.groups = groups
	return nil
}

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
		wrapped[n] = &entering{tool: t, definition: d, instance: i}
	}
	return wrapped
}

// enter lets a call in; each that entered leaves.
func (i *instance) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return false
	}
	i.calls++
	return true
}

func (i *instance) leave() {
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

func (i *instance) close() error {
	c, ok := i.module.(io.Closer)
	if !ok {
		return nil
	}
	if err := guard(c.Close); err != nil {
		return i.failed(StepClose, err)
	}
	return nil
}

// closedWell says whether there is nothing left to tell of a late instance.
func (i *instance) closedWell() bool {
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

// entering is a module's tool whose calls enter the instance.
type entering struct {
	tool       tool.Tool
	definition tool.Definition
	instance   *instance
}

// Definition implements tool.Tool.
func (t *entering) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool. When the module has ended meanwhile, the tool is
// not called and the error has the code tool_unavailable. A panic of the tool
// is the gate's to handle.
func (t *entering) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if !t.instance.enter() {
		return tool.Result{}, errcode.New(errcode.ToolUnavailable,
			"%s did not start: module %q was unloaded or replaced; see whether you still have the tool and call it again", t.definition.Name, t.instance.name)
	}
	defer t.instance.leave()
	return t.tool.Call(ctx, c)
}
