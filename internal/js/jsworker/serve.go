package jsworker

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/rolecall/rolecall/internal/js"
)

// Serve is the main function of a worker process: it reads requests from in until it ends and
// writes responses to out. It returns when in ends, even if a script that cannot be
// interrupted is still running: the process is to exit then.
func Serve(in io.Reader, out io.Writer) error {
	return newServer(in, out).run(context.Background())
}

// server performs one request at a time.
type server struct {
	requests  *json.Decoder
	responses *json.Encoder
	machines  *machines

	reading chan struct{} // has a token while a goroutine reads a request
	working chan struct{} // has a token while a goroutine performs one
}

// newServer returns a server that uses in and out.
func newServer(in io.Reader, out io.Writer) *server {
	s := &server{
		requests: json.NewDecoder(in), responses: json.NewEncoder(out), machines: newMachines(residentMemory()),
		reading: make(chan struct{}, 1), working: make(chan struct{}, 1),
	}
	s.responses.SetEscapeHTML(false)
	return s
}

// run performs requests until the input ends. One goroutine reads the next request while the
// other performs one, so that the end of the input is noticed during a script.
func (s *server) run(ctx context.Context) error {
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- s.loop(ctx) }()
	}
	if err := <-errs; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// loop reads a request, performs it and responds, until an error.
func (s *server) loop(ctx context.Context) error {
	for {
		q, err := s.next()
		if err != nil {
			return err
		}
		a := s.perform(ctx, q)
		a.Number = q.Number
		err = s.responses.Encode(a)
		<-s.working
		if err != nil {
			return err
		}
	}
}

// next reads a request. The caller has the token of working then. No other request is read
// before, so requests are performed in their order.
func (s *server) next() (q request, err error) {
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	if err := s.requests.Decode(&q); err != nil {
		return q, err
	}
	s.working <- struct{}{}
	return q, nil
}

// perform performs a request. Each script of opRun has a new virtual machine.
func (s *server) perform(ctx context.Context, q request) response {
	if q.Op == opRun {
		return newResponse(js.RunScript(ctx, q.Code, q.Input, js.Limits{Time: q.Time}))
	}
	lost := s.machines.makeRoom(q)
	a := s.machines.perform(ctx, q)
	a.Lost, a.Memory = lost, s.machines.memory()
	return a
}
