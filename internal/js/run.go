package js

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"

	"modernc.org/quickjs"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// MaxResult is the maximum length of the result of RunScript, in UTF-16 code units of JSON.
const MaxResult = 200_000

//go:embed run.js
var runJS string

// RunScript evaluates code, the body of an async function with the parameter input, in a new VM and
// returns its result as JSON. Promises are awaited. A result undefined is null, and an empty
// input is undefined. RunScript is safe for concurrent use.
//
// An error has one of these codes, or is the cause of ctx if ctx ended:
//
//   - ToolExecutionFailed: the code threw, is not JavaScript, waits for a promise that never
//     settles, or exceeded the memory limit
//   - ToolTimeout: it exceeded the time limit
//   - NotSerializable: JSON cannot represent the result
//   - ResultTooLarge: the result is longer than MaxResult; the details are maxJsonLength and
//     jsonLength
func RunScript(ctx context.Context, code string, input json.RawMessage, l Limits) (json.RawMessage, error) {
	vm, err := New(l)
	if err != nil {
		return nil, err
	}
	defer vm.Close()
	var outcome string
	err = vm.runLimited(ctx, func() (err error) {
		outcome, err = vm.run(code, string(input))
		return err
	})
	if err != nil {
		return nil, withCode(err)
	}
	return parseOutcome(outcome)
}

// run starts code, runs its pending jobs and returns the outcome, as run.js describes it.
func (v *VM) run(code, input string) (outcome string, err error) {
	start, err := v.engine.EvalValue(runJS, quickjs.EvalGlobal)
	if err != nil {
		return "", err
	}
	defer start.Free()
	read, err := start.CallValue(quickjs.UndefinedValue, code, input, MaxResult)
	if err != nil {
		return "", err
	}
	defer read.Free()
	if err := v.runJobs(); err != nil {
		return "", err
	}
	value, err := read.Call(quickjs.UndefinedValue)
	outcome, _ = value.(string)
	return outcome, err
}

// runJobs runs pending jobs until no job is left. It fails only if it is interrupted, as what a job
// throws rejects its promise.
func (v *VM) runJobs() error {
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

// report is how run.js describes a failure.
type report struct {
	Code    string `json:"code"` // threw, notJSON or large
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
	Length  int    `json:"length"`
}

// parseOutcome returns the result or the error in an outcome of run.js.
func parseOutcome(outcome string) (json.RawMessage, error) {
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

// err returns the report as an error with a code.
func (r report) err() error {
	switch r.Code {
	case "large":
		return errcode.New(errcode.ResultTooLarge, "the result is %d characters of JSON, more than %d: return less", r.Length, MaxResult).
			With("maxJsonLength", MaxResult).With("jsonLength", r.Length)
	case "notJSON":
		return errcode.New(errcode.NotSerializable, "JSON cannot represent the returned value: %s", r.text())
	}
	if kindOf(r.Name, r.Message) == KindMemory {
		return errcode.New(errcode.ToolExecutionFailed, "the code ran out of memory")
	}
	return errcode.New(errcode.ToolExecutionFailed, "%s%s", r.text(), r.place())
}

// text returns the report as JavaScript prints an error.
func (r report) text() string {
	if r.Name == "" {
		return r.Message
	}
	return r.Name + ": " + r.Message
}

// bodyLine matches a line of a stack that is in the function body. The engine adds linesBefore
// lines before the body.
var bodyLine = textutil.LazyPattern(`<input>:(\d+)`)

const linesBefore = 2

// place returns the line of the code for an error text, "" if it is unknown.
func (r report) place() string {
	match := bodyLine().FindStringSubmatch(r.Stack)
	if match == nil {
		return ""
	}
	line, _ := strconv.Atoi(match[1]) // the pattern has digits only
	if line <= linesBefore {
		return ""
	}
	return fmt.Sprintf(" (line %d)", line-linesBefore)
}

// withCode returns an *Error as an error with a code.
func withCode(err error) error {
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
