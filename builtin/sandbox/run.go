package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

// Run runs a job to its end and captures its output. A program that fails, is
// not found or exceeds its time limit yields a JobOutcome without an error.
//
// The error is *UnavailableError when the system cannot isolate the job, and
// otherwise describes an invalid job. When ctx ends, the job is killed and the
// error is the cause of ctx; the JobOutcome then holds the output so far.
//
// j.Limits bounds one job. The caller bounds how many run at the same time.
func (l *Launcher) Run(ctx context.Context, j Job) (JobOutcome, error) {
	j.Limits = j.Limits.orDefault()
	limited, cancel := context.WithTimeoutCause(ctx, j.Limits.Time, errTimeLimit)
	defer cancel()
	stdout, stderr := newHeadTailBuffer(j.Limits.Output), newHeadTailBuffer(j.Limits.Output)
	p, err := l.start(limited, j, strings.NewReader(""), stdout, stderr)
	if err == nil {
		err = p.waitDone()
	}
	out := JobOutcome{Stdout: stdout.output(), Stderr: stderr.output(), OutOfMemory: p != nil && p.outOfMemory}
	switch {
	case p != nil && p.cmd.ProcessState.Exited() && errors.Is(limited.Err(), context.DeadlineExceeded):
		err = exitError(err) // it ended before the deadline was noticed: this process was stopped, or is slow
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case limited.Err() != nil:
		out.TimedOut = true
	}
	return out, out.setExit(err)
}

// exitError returns err if it describes how a program ended, else nil.
func exitError(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return err
	}
	return nil
}

// errTimeLimit is the cause of a context that ended at the job's time limit.
var errTimeLimit = errors.New("job exceeded its time limit")

// setExit sets the exit code from the error of a job. It returns errors that do
// not describe how the program ended.
func (o *JobOutcome) setExit(err error) error {
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

// Process is a running job that its caller exchanges data with. Only Close,
// Kill, Pause and Resume are safe for concurrent use.
type Process struct {
	io.WriteCloser // its stdin
	io.ReadCloser  // its stdout

	job    *jobProcess
	cancel context.CancelFunc
}

// StartProcess starts a job whose stdin and stdout are pipes of the returned Process.
// j.Limits.Time and j.Limits.Output do not apply. It runs until it exits or is closed; the
// caller must call Close. It returns the errors of Run.
func (l *Launcher) StartProcess(j Job) (*Process, error) {
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
	stderr := j.Stderr
	if stderr == nil {
		stderr = io.Discard
	}
	p, err := l.start(ctx, j, jobIn, jobOut, stderr)
	_, _ = jobIn.Close(), jobOut.Close() // the job has inherited them
	process := &Process{WriteCloser: stdin, ReadCloser: stdout, job: p, cancel: cancel}
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
	_, _ = p.WriteCloser.Close(), p.ReadCloser.Close()
	if l := p.Listener(); l != nil {
		_ = l.Close()
	}
}

// Pause stops all processes of the job until Resume. A paused job can be closed. It
// does nothing on systems without a sandbox.
func (p *Process) Pause() { p.job.pause() }

// Resume continues a paused job.
func (p *Process) Resume() { p.job.resume() }

// Kill kills the job. Its stdout ends then. The caller still calls Close.
func (p *Process) Kill() { p.cancel() }

// OutOfMemory reports, after Close, whether the kernel has killed one of the
// processes for lack of memory. It needs a control group to be known.
func (p *Process) OutOfMemory() bool { return p.job != nil && p.job.outOfMemory }

// ID returns the id of the first process of the job.
func (p *Process) ID() int { return p.job.cmd.Process.Pid }

// Listener returns the listener of a job with Listen set, nil without. Close closes
// it.
func (p *Process) Listener() net.Listener {
	if p.job == nil {
		return nil
	}
	return p.job.listener
}
