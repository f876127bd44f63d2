// Package js owns the JavaScript engine: virtual machines that nothing leads
// out of, with a limit on memory and on time.
//
// A VM takes and gives JSON text alone:
//
//	vm, err := js.New(js.Limits{Pure: true})
//	err = vm.Load("brain.js", source)
//	result, err := vm.Call(ctx, "step", json.RawMessage(`{"n": 1}`))
//
// and Run evaluates one function body. Scripts see the language and nothing
// else: no files, no network, no timers, no modules, no host functions; a Pure
// VM has no clock and no randomness either.
//
// Limits are kept inside this process and as far as the engine asks for them:
// a built-in function that runs long asks for none. They are for scripts of
// the operator. Package worker runs scripts that nobody trusts.
package js

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/quickjs"
)

// The limits of a VM that states none.
const (
	DefaultMemory = 64 << 20
	DefaultTime   = 5 * time.Second
)

// Limits bound what scripts may use. The zero Limits are the defaults.
type Limits struct {
	Memory int           // bytes; 0 is DefaultMemory
	Time   time.Duration // for one entry: a Load, a Call, a Run; 0 is DefaultTime
	Pure   bool          // no clock, no time zone, no randomness, no view of garbage collection
}

// orDefault fills in what l leaves open.
func (l Limits) orDefault() Limits {
	if l.Memory <= 0 {
		l.Memory = DefaultMemory
	}
	if l.Time <= 0 {
		l.Time = DefaultTime
	}
	return l
}

// VM is one JavaScript world. It belongs to one goroutine at a time; make
// another VM for another.
type VM struct {
	engine  *quickjs.VM
	limits  Limits
	invoke  quickjs.Value // calls a global function with JSON text, gives JSON text
	sources []source      // what was loaded, in order of line
	lines   int           // how many lines they take
	broken  error         // why the VM takes no more entries
}

// The scripts a VM starts with: pure.js takes the clock away, invoke.js is the
// door.
var (
	//go:embed pure.js
	pureJS string
	//go:embed invoke.js
	invokeJS string
)

// New makes a VM. Close it after use.
func New(l Limits) (*VM, error) {
	engine, err := quickjs.NewVM()
	if err != nil {
		return nil, fmt.Errorf("start a JavaScript engine: %w", err)
	}
	v := &VM{engine: engine, limits: l.orDefault()}
	engine.SetMemoryLimit(uintptr(v.limits.Memory))
	engine.SetCanBlock(false)
	if err := v.prepare(); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// prepare runs what must be in place before any foreign line.
func (v *VM) prepare() error {
	if v.limits.Pure {
		if err := v.Load("", pureJS); err != nil {
			return err
		}
	}
	var err error
	v.invoke, err = v.engine.EvalValue(v.place("", invokeJS), quickjs.EvalGlobal)
	return err
}

// Load evaluates source as a script; what it declares is there for later
// entries. Errors are *Error and name the place as name:line. Sources with the
// name "" are left out of places, as befits preludes.
func (v *VM) Load(name, source string) error {
	return v.enter(context.Background(), func() error {
		value, err := v.engine.EvalValue(v.place(name, source), quickjs.EvalGlobal)
		if err == nil {
			value.Free()
		}
		return err
	})
}

// Call calls the global function fn with the value arg stands for and gives
// what it returns as JSON; undefined is null. An empty arg is undefined.
//
// Errors are *Error: what the script threw (a result JSON cannot carry throws
// a TypeError), or Timeout, Memory, Cancelled when ctx ended. After a Timeout
// or Cancelled the VM is dead: it gives that error again.
func (v *VM) Call(ctx context.Context, fn string, arg json.RawMessage) (json.RawMessage, error) {
	var result string
	err := v.enter(ctx, func() error {
		value, err := v.invoke.Call(quickjs.UndefinedValue, fn, string(arg))
		result, _ = value.(string)
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.RawMessage(result), nil
}

// Close frees the VM's memory. It may be called twice, but not while an entry
// runs.
func (v *VM) Close() {
	if v.engine == nil {
		return
	}
	if v.invoke.VM() != nil {
		v.invoke.Free()
	}
	v.engine.Close()
	v.engine, v.broken = nil, errors.New("the JavaScript VM is closed")
}

// enter runs one entry under the VM's limits.
func (v *VM) enter(ctx context.Context, entry func() error) error {
	if v.broken != nil {
		return v.broken
	}
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	w := v.watch(ctx)
	err := entry()
	if v.broken = w.stop(); v.broken != nil {
		return v.broken
	}
	return v.explain(err)
}

// place pads source so that its lines are found nowhere else in the VM: the
// engine calls every source <eval>, the line alone says which one it was.
func (v *VM) place(name, text string) string {
	v.sources = append(v.sources, source{name, v.lines})
	padded := strings.Repeat("\n", v.lines) + text
	v.lines += strings.Count(text, "\n") + 1
	return padded
}
