package jsworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js"
	"github.com/rolecall/rolecall/internal/textutil"
)

// request is one script to run. A request and its response are one line of JSON each.
type request struct {
	Number uint64
	Code   string
	Input  json.RawMessage `json:",omitempty"`
	Time   time.Duration
}

// response is the outcome of the request with the same number.
type response struct {
	Number  uint64
	Value   json.RawMessage `json:",omitempty"`
	Error   errcode.Code    `json:",omitempty"`
	Message string          `json:",omitempty"`
	Details map[string]any  `json:",omitempty"`
	Cause   string          `json:",omitempty"` // of an internal error, for the log
}

// Serve is the main function of a worker process: it reads requests from in until it ends and
// writes responses to out. Each script has a new virtual machine.
func Serve(in io.Reader, out io.Writer) error {
	requests, responses := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q request
		if err := requests.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		value, err := js.RunScript(context.Background(), q.Code, q.Input, js.Limits{Time: q.Time})
		if err := responses.Encode(newResponse(q.Number, value, err)); err != nil {
			return err
		}
	}
}

// newResponse returns the outcome of js.RunScript as a response.
func newResponse(number uint64, value json.RawMessage, err error) response {
	if err == nil {
		return response{Number: number, Value: value}
	}
	r := response{Number: number, Error: errcode.CodeOf(err), Message: errcode.Message(err)}
	if r.Error == errcode.Internal {
		r.Cause = err.Error()
	}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		r.Details = e.Details
	}
	return r
}

// maxCause is how many bytes of the cause of an internal error reach the log.
const maxCause = 1 << 10

// result returns the value or the error of a response. The worker is not trusted: an error
// code that a script cannot cause is replaced by ToolExecutionFailed. An internal error has
// no code, so that its cause is logged and not shown.
func (r response) result() (json.RawMessage, error) {
	if r.Error == "" && len(r.Value) > 0 {
		return r.Value, nil
	}
	allowed := []errcode.Code{errcode.ToolTimeout, errcode.NotSerializable, errcode.ResultTooLarge}
	switch {
	case r.Error == errcode.Internal:
		return nil, fmt.Errorf("run a script in a worker: %s", textutil.OneLine(textutil.Sanitize(r.Cause), maxCause))
	case !slices.Contains(allowed, r.Error):
		r.Error = errcode.ToolExecutionFailed
	}
	e := errcode.New(r.Error, "%s", r.Message)
	e.Details = r.Details
	return nil, e
}
