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

// startInProcess starts a worker in this process. A script that cannot be interrupted goes on
// after Close, and a fault of the engine ends the process.
func startInProcess() (Conn, error) {
	in, requests := io.Pipe()
	responses, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &inProcess{responses, requests, in, responses, cancel, make(chan struct{})}
	go func() {
		defer close(c.ended)
		s := newServer(in, out)
		s.machines.resident = nil // the memory of this process is that of all its parts
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
