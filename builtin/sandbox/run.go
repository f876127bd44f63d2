package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Run runs a job to its end and keeps what it writes. A program that fails,
// is not found or runs out of time is an Outcome; the error is about the
// sandbox: *Unavailable when the system cannot give it, else what is wrong
// with the job. When ctx ends the job is ended and the error is ctx's cause.
//
// Only so many jobs run at once, twice as many as there are processors: what
// one may use up, all together must not. The others wait; their time has not
// begun.
func (l *Launcher) Run(ctx context.Context, j Job) (Outcome, error) {
	if err := l.enter(ctx); err != nil {
		return Outcome{}, err
	}
	defer l.leave()
	j.Limits = j.Limits.orDefault()
	limited, cancel := context.WithTimeoutCause(ctx, j.Limits.Time, errTime)
	defer cancel()
	stdout, stderr := newRecorder(j.Limits.Output), newRecorder(j.Limits.Output)
	p, err := l.start(limited, j, strings.NewReader(""), stdout, stderr)
	if err == nil {
		err = p.ended()
	}
	out := Outcome{Stdout: stdout.output(), Stderr: stderr.output(), OutOfMemory: p != nil && p.outOfMemory}
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case limited.Err() != nil:
		out.TimedOut = true
	}
	return out, out.exit(err)
}

// enter waits for a place to run in.
func (l *Launcher) enter(ctx context.Context) error {
	if l == nil || !l.entered {
		return errNotEntered()
	}
	select {
	case l.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Launcher) leave() { <-l.running }

// errTime is the cause of a context that a job's own limit ended.
var errTime = errors.New("the time of the job is over")

// exit reads from an error how the program ended; what it does not explain
// comes back.
func (o *Outcome) exit(err error) error {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		o.ExitCode = exitOf(e.ProcessState)
		return nil
	}
	if e, ok := errors.AsType[*notFound](err); ok {
		o.ExitCode, o.Stderr = e.exit, Output{Head: []byte(e.text + "\n")}
		return nil
	}
	if o.TimedOut {
		return nil
	}
	return err
}

// notFound is a program that is not there, or is none, inside.
type notFound struct {
	text string
	exit int
}

func (e *notFound) Error() string { return e.text }

// Process is a job one talks with. It is not safe for concurrent use, except
// for Close.
type Process struct {
	io.Writer // its stdin
	io.Reader // its stdout

	files  []*os.File
	p      *process
	cancel context.CancelFunc
}

// Start starts a job for a conversation over its stdin and stdout. Its
// Limits.Time and Limits.Output do not hold. It runs until it ends itself or
// is closed; the caller closes it. Errors as of Run.
func (l *Launcher) Start(j Job) (*Process, error) {
	j.Limits = j.Limits.orDefault()
	stdin, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a job: %w", err)
	}
	theirs, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a job: %w", err), stdin.Close(), ours.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := l.start(ctx, j, stdin, stdout, io.Discard)
	_, _ = stdin.Close(), stdout.Close() // the job has its own
	process := &Process{Writer: ours, Reader: theirs, files: []*os.File{ours, theirs}, p: p, cancel: cancel}
	if err != nil {
		process.Close()
		return nil, err
	}
	return process, nil
}

// Close ends the job, if it has not ended, and waits for it. It may be called
// twice, and unblocks who reads or writes.
func (p *Process) Close() {
	p.cancel()
	if p.p != nil {
		_ = p.p.ended() // it was ended
	}
	for _, f := range p.files {
		_ = f.Close()
	}
}
