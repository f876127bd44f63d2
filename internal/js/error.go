package js

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"modernc.org/quickjs"
)

// Kind says why a script did not end well.
type Kind string

// The kinds of Error.
const (
	KindThrown    Kind = "thrown"    // the script threw, or is no JavaScript
	KindTimeout   Kind = "timeout"   // it ran out of time
	KindMemory    Kind = "memory"    // it ran out of memory
	KindCancelled Kind = "cancelled" // the context ended; Unwrap gives its cause
)

// Error is how a script failed.
type Error struct {
	Kind    Kind
	Message string // as "TypeError: x is not a function"
	Source  string // name of the source that failed, "" when not known
	Line    int    // line in Source, from 1; 0 when not known
	cause   error
}

// Error gives the place, if known, and the message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.Source, e.Line, e.Message)
}

// Unwrap gives the cause of a Cancelled.
func (e *Error) Unwrap() error { return e.cause }

func cancelled(ctx context.Context) error {
	return &Error{Kind: KindCancelled, Message: "the script was stopped: " + context.Cause(ctx).Error(), cause: context.Cause(ctx)}
}

func timeout(limit time.Duration) error {
	return &Error{Kind: KindTimeout, Message: fmt.Sprintf("the script ran out of time: it may take %v", limit)}
}

// source is a loaded text and the number of lines before it.
type source struct {
	name   string
	before int
}

// explain turns what the engine says into an *Error.
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
		e.Source, e.Line = v.find(raw.LineNumber)
	} else {
		e.Source, e.Line = v.locate(raw.Stack)
	}
	return e
}

func kindOf(name, message string) Kind {
	if name == "InternalError" && message == "out of memory" {
		return KindMemory
	}
	return KindThrown
}

// scriptFile is what the engine calls every script.
const scriptFile = "<eval>"

var frame = regexp.MustCompile(scriptFile + `:(\d+)`)

// locate finds the innermost line of a stack that is in a named source.
func (v *VM) locate(stack string) (name string, line int) {
	for _, match := range frame.FindAllStringSubmatch(stack, -1) {
		number, _ := strconv.Atoi(match[1]) // the pattern has digits only
		if name, line := v.find(number); name != "" {
			return name, line
		}
	}
	return "", 0
}

// find gives the source that holds a line of the VM; lines of unnamed sources
// have none.
func (v *VM) find(number int) (name string, line int) {
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
