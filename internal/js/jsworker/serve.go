package jsworker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js"
)

// request and answer are one line of JSON each.
type request struct {
	Number uint64
	Code   string
	Input  json.RawMessage `json:",omitempty"`
	Time   time.Duration
}

type response struct {
	Number  uint64
	Value   json.RawMessage `json:",omitempty"`
	Error   errcode.Code    `json:",omitempty"`
	Message string          `json:",omitempty"`
	Details map[string]any  `json:",omitempty"`
}

// Serve runs the scripts a Pool asks for until in ends. Each has an engine of
// its own.
func Serve(in io.Reader, out io.Writer) error {
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q request
		if err := from.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		value, err := js.Run(context.Background(), q.Code, q.Input, js.Limits{Time: q.Time})
		if err := to.Encode(answerOf(q.Number, value, err)); err != nil {
			return err
		}
	}
}

func answerOf(number uint64, value json.RawMessage, err error) response {
	if err == nil {
		return response{Number: number, Value: value}
	}
	a := response{Number: number, Error: errcode.Of(err), Message: errcode.Message(err)}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		a.Details = e.Details
	}
	return a
}

// result believes an answer as far as it can do no harm: a value is JSON, an
// error is one that a script may cause.
func (a response) result() (json.RawMessage, error) {
	if a.Error == "" && len(a.Value) > 0 {
		return a.Value, nil
	}
	may := []errcode.Code{errcode.ToolTimeout, errcode.NotSerializable, errcode.ResultTooLarge}
	if !slices.Contains(may, a.Error) {
		a.Error = errcode.ToolExecutionFailed
	}
	e := errcode.New(a.Error, "%s", a.Message)
	e.Details = a.Details
	return nil, e
}
