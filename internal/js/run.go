package js

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"modernc.org/quickjs"
)

// MaxResult is how many characters of JSON a Run may give.
const MaxResult = 200_000

//go:embed run.js
var runJS string

// Run evaluates code, the body of an async function with the variable input,
// in a VM of its own and gives what it returns as JSON. Promises are awaited,
// undefined is null, an empty input is undefined. Safe for concurrent use.
//
// Errors carry a code: ToolExecutionFailed when the code threw, is no
// JavaScript, waits for what can never come or ran out of memory; ToolTimeout;
// NotSerializable when JSON cannot carry the value; ResultTooLarge, with the
// details maxJsonLength and jsonLength. When ctx ends the error is its cause.
func Run(ctx context.Context, code string, input json.RawMessage, l Limits) (json.RawMessage, error) {
	vm, err := New(l)
	if err != nil {
		return nil, err
	}
	defer vm.Close()
	var outcome string
	err = vm.enter(ctx, func() (err error) {
		outcome, err = vm.run(code, string(input))
		return err
	})
	if err != nil {
		return nil, failure(err)
	}
	return read(outcome)
}

// run starts code and drives its promises until nothing is left to do.
func (v *VM) run(code, input string) (outcome string, err error) {
	start, err := v.engine.EvalValue(runJS, quickjs.EvalGlobal)
	if err != nil {
		return "", err
	}
	defer start.Free()
	look, err := start.CallValue(quickjs.UndefinedValue, code, input, MaxResult)
	if err != nil {
		return "", err
	}
	defer look.Free()
	if err := v.settle(); err != nil {
		return "", err
	}
	value, err := look.Call(quickjs.UndefinedValue)
	outcome, _ = value.(string)
	return outcome, err
}

// settle runs jobs until there are none. Only an interrupt makes one fail: what
// a job throws goes to its promise.
func (v *VM) settle() error {
	for {
		n, err := v.engine.ExecutePendingJobs()
		if _, stopped := err.(*quickjs.Error); stopped {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// report is what run.js says of code that did not end well.
type report struct {
	Code    string `json:"code"` // threw, carry or large
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
	Length  int    `json:"length"`
}

// read takes an outcome of run.js apart.
func read(outcome string) (json.RawMessage, error) {
	if outcome == "" {
		return nil, errcode.New(errcode.ToolExecutionFailed,
			"the code ended without a value: it waits for a promise that can never settle (there are no timers and no I/O here), or ran out of memory")
	}
	if outcome[0] == '+' {
		return json.RawMessage(outcome[1:]), nil
	}
	var r report
	if err := json.Unmarshal([]byte(outcome[1:]), &r); err != nil {
		return nil, fmt.Errorf("read the outcome of a script: %w", err)
	}
	return nil, r.err()
}

func (r report) err() error {
	switch r.Code {
	case "large":
		return errcode.New(errcode.ResultTooLarge, "the result is %d characters of JSON, at most %d are given: return less", r.Length, MaxResult).
			With("maxJsonLength", MaxResult).With("jsonLength", r.Length)
	case "carry":
		return errcode.New(errcode.NotSerializable, "JSON cannot carry the returned value: %s", r.text())
	}
	if kindOf(r.Name, r.Message) == KindMemory {
		return errcode.New(errcode.ToolExecutionFailed, "the code ran out of memory")
	}
	return errcode.New(errcode.ToolExecutionFailed, "%s%s", r.text(), r.place())
}

func (r report) text() string {
	if r.Name == "" {
		return r.Message
	}
	return r.Name + ": " + r.Message
}

// bodyFrame is a line of a stack inside the function body; the engine puts two
// lines of its own before it.
var bodyFrame = regexp.MustCompile(`<input>:(\d+)`)

const bodyBefore = 2

// place says where in the code it happened, if known.
func (r report) place() string {
	match := bodyFrame.FindStringSubmatch(r.Stack)
	if match == nil {
		return ""
	}
	line, _ := strconv.Atoi(match[1]) // the pattern has digits only
	if line <= bodyBefore {
		return ""
	}
	return fmt.Sprintf(" (line %d)", line-bodyBefore)
}

// failure gives an *Error of the VM its code.
func failure(err error) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	switch e.Kind {
	case KindCancelled:
		return e.cause
	case KindTimeout:
		return errcode.New(errcode.ToolTimeout, "%s", e.Message)
	}
	return errcode.New(errcode.ToolExecutionFailed, "%s", e.Message)
}
