// Package js runs JavaScript in isolated virtual machines with limits on memory and time.
//
// The input and output of a VM are JSON texts:
//
//	vm, err := js.New(js.Limits{Pure: true})
//	err = vm.LoadScript("agents.js", source)
//	result, err := vm.CallFunction(ctx, "step", json.RawMessage(`{"n": 1}`))
//
// RunScript evaluates a single function body. Scripts have the language only: no files, no network,
// no timers, no modules and no host functions. A Pure VM also has no clock, time zone or
// randomness.
//
// The engine checks the limits in this process, and not inside of built-in functions. So a
// script can exceed them, and a fault of the engine ends the process. Therefore package jsworker
// runs scripts in processes of their own.
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

// The default limits of a VM.
const (
	DefaultMemory = 64 << 20
	DefaultTime   = 5 * time.Second
)

// Limits limit what scripts may use. The zero Limits are the defaults.
type Limits struct {
	Memory int           // bytes; 0 is DefaultMemory
	Time   time.Duration // of each LoadScript, CallFunction or RunScript; 0 is DefaultTime
	Pure   bool          // no clock, time zone or randomness, and no way to observe garbage collection
}

// withDefaults returns l with the default of each limit that is not set.
func (l Limits) withDefaults() Limits {
	if l.Memory <= 0 {
		l.Memory = DefaultMemory
	}
	if l.Time <= 0 {
		l.Time = DefaultTime
	}
	return l
}

// VM is one JavaScript virtual machine. It is not safe for concurrent use.
type VM struct {
	engine  *quickjs.VM
	limits  Limits
	invoke  quickjs.Value // the function of invoke.js
	sources []source      // the loaded sources, by line
	lines   int           // the number of lines of all sources
	broken  error         // if not nil, the VM is closed or was interrupted
}

// The scripts of a new VM. pure.js removes the clock, the time zone, randomness and what shows
// garbage collection. invoke.js calls functions with JSON text.
var (
	//go:embed pure.js
	pureJS string
	//go:embed invoke.js
	invokeJS string
)

// New returns a VM. Close it after use.
func New(l Limits) (*VM, error) {
	engine, err := quickjs.NewVM()
	if err != nil {
		return nil, fmt.Errorf("start a JavaScript engine: %w", err)
	}
	v := &VM{engine: engine, limits: l.withDefaults()}
	engine.SetMemoryLimit(uintptr(v.limits.Memory))
	engine.SetCanBlock(false)
	if err := v.prepare(); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// prepare runs the scripts that must be loaded first.
func (v *VM) prepare() error {
	if v.limits.Pure {
		if err := v.LoadScript("", pureJS); err != nil {
			return err
		}
	}
	var err error
	v.invoke, err = v.engine.EvalValue(v.padSource("", invokeJS), quickjs.EvalGlobal)
	return err
}

// LoadScript evaluates source as a script. What it declares is available to later calls. Errors are
// of type *Error and have the place as name:line:column. They never point into a source with the
// name "".
func (v *VM) LoadScript(name, source string) error {
	return v.runLimited(context.Background(), func() error {
		value, err := v.engine.EvalValue(v.padSource(name, source), quickjs.EvalGlobal)
		if err == nil {
			value.Free()
		}
		return err
	})
}

// CallFunction calls the global function fn with the value of the JSON text arg and returns the
// result as JSON. An empty arg is undefined, and a result undefined is null.
//
// Errors are of type *Error. A result that JSON cannot represent is a TypeError, of
// KindThrown. After KindTimeout or KindCancelled the VM cannot be used any more and returns
// the same error again.
func (v *VM) CallFunction(ctx context.Context, fn string, arg json.RawMessage) (json.RawMessage, error) {
	var result string
	err := v.runLimited(ctx, func() error {
		value, err := v.invoke.Call(quickjs.UndefinedValue, fn, string(arg))
		result, _ = value.(string)
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.RawMessage(result), nil
}

// Close frees the VM's memory. It may be called twice, but not concurrently with another
// method.
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

// runLimited runs fn under the VM's limits.
func (v *VM) runLimited(ctx context.Context, fn func() error) error {
	if v.broken != nil {
		return v.broken
	}
	if ctx.Err() != nil {
		return cancelledError(ctx)
	}
	w := v.watch(ctx)
	err := fn()
	if v.broken = w.stop(); v.broken != nil {
		return v.broken
	}
	return v.explain(err)
}

// padSource registers a source and returns it padded with empty lines. No other source of
// the VM has lines of the same numbers. The engine calls every source <eval>, so only the
// line identifies a source.
func (v *VM) padSource(name, text string) string {
	v.sources = append(v.sources, source{name, v.lines})
	padded := strings.Repeat("\n", v.lines) + text
	v.lines += strings.Count(text, "\n") + 1
	return padded
}
