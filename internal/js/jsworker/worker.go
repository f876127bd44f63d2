package jsworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// worker is one process or goroutine that serves requests. It performs one at a time.
type worker struct {
	conn   Conn
	limit  *io.LimitedReader // of a response
	decode *json.Decoder
	encode *json.Encoder
	count  uint64 // requests so far
}

// newWorker returns a fresh worker.
func newWorker(conn Conn) *worker {
	limit := &io.LimitedReader{R: conn}
	w := &worker{conn: conn, limit: limit, decode: json.NewDecoder(limit), encode: json.NewEncoder(conn)}
	w.encode.SetEscapeHTML(false)
	return w
}

// interruptTimeout is the time that a worker has to interrupt a script and to respond.
const interruptTimeout = time.Second

// errNotSent is the cause of an error if the worker had ended before the request.
var errNotSent = errors.New("the worker had ended before")

// run performs one request, whose response has at most maxResponse bytes. When ctx ends, or
// when the worker has not responded a second after the time limit, it is killed. After an error the
// worker must not be used again.
func (w *worker) run(ctx context.Context, q request, maxResponse int64) (response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, q.Time+interruptTimeout, errcode.New(errcode.ToolTimeout,
		"the script ran out of time: it may take %v", q.Time))
	defer cancel()
	stop := context.AfterFunc(ctx, w.conn.Close) // ends Decode below
	defer stop()
	w.count++
	q.Number = w.count
	w.limit.N = maxResponse
	var a response
	err := w.encode.Encode(q)
	if err != nil {
		err = errors.Join(errNotSent, err)
	} else {
		err = w.decode.Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return a, context.Cause(ctx)
	case w.limit.N <= 0:
		return a, errUnexpected(fmt.Errorf("response of more than %d bytes", maxResponse))
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errNotSent):
		return a, errUnexpected(err)
	case err != nil:
		return a, errcode.Wrap(errcode.ToolExecutionFailed, err, "the script's process ended before it responded: it used too much memory or crashed")
	case a.Number != w.count:
		return a, errUnexpected(errors.New("response to another request"))
	}
	return a, nil
}

// errUnexpected returns the error for a worker that sent what no worker sends.
func errUnexpected(cause error) error {
	return errcode.Wrap(errcode.ToolExecutionFailed, cause, "the script's process sent an unexpected response and was ended")
}
