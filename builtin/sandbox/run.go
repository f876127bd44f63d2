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

// Run runs a job to its end and captures its output. A program that fails, is
// not found or exceeds its time limit yields an Outcome without an error.
//
// The error is *Unavailable when the system cannot isolate the job, and
// otherwise describes an invalid job. When ctx ends, the job is killed and the
// error is the cause of ctx; the Outcome then holds the output so far.
//
// The number of jobs that run at the same time is twice the number of
// processors, at least four: Limits bound one job, this bounds their sum.
// Further calls wait; the time limit starts when the job does.
func (l *Launcher) Run(ctx context.Context, j Job) (Outcome, error) {
	if err := l.acquire(ctx); err != nil {
		return Outcome{}, err
	}
	defer l.release()
	j.Limits = j.Limits.orDefault()
	limited, cancel := context.WithTimeoutCause(ctx, j.Limits.Time, errTimeLimit)
	defer cancel()
	stdout, stderr := newHeadTailBuffer(j.Limits.Output), newHeadTailBuffer(j.Limits.Output)
	p, err := l.start(limited, j, strings.NewReader(""), stdout, stderr)
	if err == nil {
		err = p.waitDone()
	}
	out := Outcome{Stdout: stdout.output(), Stderr: stderr.output(), OutOfMemory: p != nil && p.outOfMemory}
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case limited.Err() != nil:
		out.TimedOut = true
	}
	return out, out.setExit(err)
}

// acquire waits for a free slot to run a job in; release frees it.
func (l *Launcher) acquire(ctx context.Context) error {
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

func (l *Launcher) release() { <-l.running }

// errTimeLimit is the cause of a context that ended at the job's time limit.
var errTimeLimit = errors.New("job exceeded its time limit")

// setExit sets the exit code from the error of a job. It returns errors that do
// not describe how the program ended.
func (o *Outcome) setExit(err error) error {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		o.ExitCode = exitCode(e.ProcessState)
		return nil
	}
	if e, ok := errors.AsType[*execError](err); ok {
		o.ExitCode, o.Stderr = e.exit, Output{Head: []byte(e.text + "\n")}
		return nil
	}
	if o.TimedOut {
		return nil
	}
	return err
}

// execError reports that the program was not found or is not executable. exit is
// the code that a shell would return.
type execError struct {
	text string
	exit int
}

func (e *execError) Error() string { return e.text }

// Process is a running job that its caller exchanges data with. Only Close is
// safe for concurrent use.
type Process struct {
	io.Writer // its stdin
	io.Reader // its stdout

	files  []*os.File
	job    *jobProcess
	cancel context.CancelFunc
}

// Start starts a job whose stdin and stdout are pipes of the returned Process.
// Limits.Time and Limits.Output do not apply, and the job does not count
// against the slots of Run. It runs until it exits or is closed; the caller must
// call Close. The errors are those of Run.
func (l *Launcher) Start(j Job) (*Process, error) {
	j.Limits = j.Limits.orDefault()
	jobIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start sandbox job: %w", err)
	}
	stdout, jobOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start sandbox job: %w", err), jobIn.Close(), stdin.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := l.start(ctx, j, jobIn, jobOut, io.Discard)
	_, _ = jobIn.Close(), jobOut.Close() // the job has inherited them
	process := &Process{Writer: stdin, Reader: stdout, files: []*os.File{stdin, stdout}, job: p, cancel: cancel}
	if err != nil {
		process.Close()
		return nil, err
	}
	return process, nil
}

// Close kills the job if it runs and waits for its end. It unblocks concurrent
// reads and writes, and may be called twice.
func (p *Process) Close() {
	p.cancel()
	if p.job != nil {
		_ = p.job.waitDone() // the job was killed
	}
	for _, f := range p.files {
		_ = f.Close()
	}
}
