package jsworker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js"
	"github.com/rolecall/rolecall/internal/textutil"
)

// operation is what a request asks a worker to do.
type operation string

// The operations. The first needs no virtual machine. The others share the virtual machines of the
// worker.
const (
	opRun  operation = "run"  // run Code in a virtual machine of its own
	opLoad operation = "load" // make the virtual machine VM and load the scripts of the worker
	opCall operation = "call" // call Function of VM with Input
	opTrim operation = "trim" // do nothing but what Closed and Memory ask for
)

// request is one step of a worker. A request and its response are one line of JSON each.
type request struct {
	Number uint64
	Op     operation
	Time   time.Duration // the time limit of the step

	Code  string          `json:",omitempty"` // of opRun
	Input json.RawMessage `json:",omitempty"` // of opRun and opCall

	VM       uint64     `json:",omitempty"` // of opLoad and opCall
	Scripts  []Script   `json:",omitempty"` // of the first opLoad; the worker keeps them
	Limits   *js.Limits `json:",omitempty"` // of opLoad
	Function string     `json:",omitempty"` // of opCall

	Closed []uint64 `json:",omitempty"` // virtual machines that are not needed any more
	Memory int64    `json:",omitempty"` // the worker closes others than VM until it has so many bytes; 0 is no limit
}

// Script is a source that every virtual machine of a VMGroup loads. Errors never point into one
// with the name "".
type Script struct{ Name, Source string }

// response is the outcome of the request with the same number.
type response struct {
	Number uint64
	Value  json.RawMessage `json:",omitempty"` // of opRun and opCall

	Error   errcode.Code   `json:",omitempty"`
	Message string         `json:",omitempty"`
	Details map[string]any `json:",omitempty"`
	Cause   string         `json:",omitempty"` // of an internal error, for the log

	Failure *js.Error `json:",omitempty"` // of opLoad and opCall: the script's failure
	Lost    []uint64  `json:",omitempty"` // virtual machines that were closed to save memory
	Memory  int64     `json:",omitempty"` // bytes that the worker has; 0 if unknown
}

// newResponse returns the outcome of js.RunScript as a response.
func newResponse(value json.RawMessage, err error) response {
	if err == nil {
		return response{Value: value}
	}
	r := response{Error: errcode.CodeOf(err), Message: errcode.Message(err)}
	if r.Error == errcode.Internal {
		r.Cause = err.Error()
	}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		r.Details = e.Details
	}
	return r
}

// newStepResponse returns the outcome of a step of a virtual machine as a response.
func newStepResponse(value json.RawMessage, err error) response {
	if failure, ok := errors.AsType[*js.Error](err); ok {
		shortened := *failure
		shortened.Message = textutil.Truncate(failure.Message, maxMessage)
		return response{Failure: &shortened}
	}
	return newResponse(value, err)
}

// maxMessage is how many bytes of a script's error reach the caller.
const maxMessage = 16 << 10

// maxCause is how many bytes of the cause of an internal error reach the log.
const maxCause = 1 << 10

// result returns the value or the error of a response to opRun. The worker is not trusted: an
// error code that a script cannot cause is replaced by ToolExecutionFailed. An internal error
// has no code, so that its cause is logged and not shown.
func (r response) result() (json.RawMessage, error) {
	if r.Error == "" && len(r.Value) > 0 {
		return r.Value, nil
	}
	allowed := []errcode.Code{errcode.ToolTimeout, errcode.NotSerializable, errcode.ResultTooLarge}
	switch {
	case r.Error == errcode.Internal:
		return nil, r.internalError()
	case !slices.Contains(allowed, r.Error):
		r.Error = errcode.ToolExecutionFailed
	}
	e := errcode.New(r.Error, "%s", r.Message)
	e.Details = r.Details
	return nil, e
}

// stepError returns the error of a response to opLoad or opCall, nil if there is none. valid
// is false if a worker that works does not respond so.
func (r response) stepError() (err error, valid bool) {
	switch {
	case r.Failure != nil:
		return r.Failure, slices.Contains([]js.ErrorKind{js.KindThrown, js.KindTimeout, js.KindMemory}, r.Failure.Kind)
	case r.Error != "":
		return r.internalError(), r.Error == errcode.Internal
	}
	return nil, true
}

// internalError returns the error of a worker that failed itself.
func (r response) internalError() error {
	return fmt.Errorf("run a script in a worker: %s", textutil.OneLine(textutil.Sanitize(r.Cause), maxCause))
}
