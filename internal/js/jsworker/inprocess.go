package jsworker

import (
	"context"
	"io"
	"time"
)

// inProcess is a worker that is a goroutine of this process.
type inProcess struct {
	io.Reader // its responses
	io.Writer // its requests

	in, out *io.PipeReader
	cancel  context.CancelFunc
	ended   chan struct{}
}

// InProcessWarning says what it means that scripts run in this process.
const InProcessWarning = "agent scripts run in this process: one that cannot be interrupted occupies a processor for ever, and a fault of the engine ends the process"

// StartInProcess starts a worker that is a goroutine of this process. A script that cannot be
// interrupted goes on after Close, and a fault of the engine ends the process.
func StartInProcess() (Conn, error) {
	in, requests := io.Pipe()
	responses, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &inProcess{responses, requests, in, responses, cancel, make(chan struct{})}
	go func() {
		defer close(c.ended)
		s := newServer(in, out)
		s.machines.resident = nil // all parts of this process share its memory
		_ = s.run(ctx)            // it ends with its pipes
		s.working <- struct{}{}   // waits for the last script
		s.machines.closeAll()
	}()
	return c, nil
}

// Close ends the worker. It waits for a script that can be interrupted.
func (c *inProcess) Close() {
	c.cancel()
	_, _ = c.in.Close(), c.out.Close() // closing a pipe does not fail
	select {
	case <-c.ended:
	case <-time.After(interruptTimeout):
	}
}
