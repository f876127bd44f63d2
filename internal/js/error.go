package js

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"modernc.org/quickjs"

	"github.com/rolecall/rolecall/internal/textutil"
)

// ErrorKind is the reason why a script failed.
type ErrorKind string

// The kinds of Error.
const (
	KindThrown    ErrorKind = "thrown"    // the script threw, or is not JavaScript
	KindTimeout   ErrorKind = "timeout"   // it exceeded its time limit
	KindMemory    ErrorKind = "memory"    // it exceeded its memory limit
	KindCancelled ErrorKind = "cancelled" // the context ended; Unwrap returns its cause
)

// Error is a failure of a script.
type Error struct {
	Kind    ErrorKind
	Message string // for example "TypeError: x is not a function"
	Source  string // name of the source that failed, "" if unknown
	Line    int    // line in Source, from 1; 0 if unknown
	Column  int    // column in Line, from 1; 0 if unknown
	cause   error  // of KindCancelled
}

// Error returns the place, if known, and the message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	if e.Column == 0 {
		return fmt.Sprintf("%s:%d: %s", e.Source, e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Source, e.Line, e.Column, e.Message)
}

// Unwrap returns the cause of a KindCancelled, nil for other kinds.
func (e *Error) Unwrap() error { return e.cause }

// cancelledError returns the error of a call whose context ended.
func cancelledError(ctx context.Context) error {
	return &Error{Kind: KindCancelled, Message: "the script was stopped: " + context.Cause(ctx).Error(), cause: context.Cause(ctx)}
}

// timeoutError returns the error of a call that exceeded its time limit.
func timeoutError(limit time.Duration) error {
	return &Error{Kind: KindTimeout, Message: fmt.Sprintf("the script ran out of time: it may take %v", limit)}
}

// source is a loaded source and the number of lines in the VM before it.
type source struct {
	name   string
	before int
}

// explain returns an error of the engine as an *Error with its place.
func (v *VM) explain(err error) error {
	raw, ok := errors.AsType[*quickjs.Error](err)
	if !ok {
		return err
	}
	e := &Error{Kind: kindOf(raw.Name, raw.Message), Message: raw.Error()}
	if e.Kind == KindMemory {
		e.Message = fmt.Sprintf("the script ran out of memory: it may take %d MiB", v.limits.Memory>>20)
	}
	if raw.FileName == scriptFile && raw.LineNumber > 0 {
		e.Source, e.Line = v.sourceLine(raw.LineNumber)
		e.Column = raw.ColumnNumber
	} else {
		e.Source, e.Line, e.Column = v.innermost(raw.Stack)
	}
	return e
}

// kindOf returns the kind of an error that the engine threw.
func kindOf(name, message string) ErrorKind {
	if name == "InternalError" && message == "out of memory" {
		return KindMemory
	}
	return KindThrown
}

// scriptFile is the file name that the engine uses for every script.
const scriptFile = "<eval>"

var stackLine = textutil.LazyPattern(scriptFile + `:(\d+)(?::(\d+))?`)

// innermost returns the innermost place of a stack that is in a named source.
func (v *VM) innermost(stack string) (name string, line, column int) {
	for _, match := range stackLine().FindAllStringSubmatch(stack, -1) {
		number, _ := strconv.Atoi(match[1]) // the pattern has digits only
		if name, line := v.sourceLine(number); name != "" {
			column, _ := strconv.Atoi(match[2])
			return name, line, column
		}
	}
	return "", 0, 0
}

// sourceLine returns the source and the line in it of a line of the VM. It returns "" for a
// source without a name.
func (v *VM) sourceLine(number int) (name string, line int) {
	for i := len(v.sources) - 1; i >= 0; i-- {
		s := v.sources[i]
		if number > s.before && s.name != "" {
			return s.name, number - s.before
		}
		if number > s.before {
			break
		}
	}
	return "", 0
}
