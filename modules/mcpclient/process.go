package mcpclient

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/textutil"
)

// grace is how long a server has to end by itself, after its input ended and
// again after it was asked to.
const grace = time.Second

// maxStderr is how many bytes of what a server wrote to stderr are kept for errors.
const maxStderr = 64 << 10

// process is a server that runs as a child of this process: in a process group
// of its own, with an environment and a home of its own. It ends when this
// process ends.
type process struct {
	cmd    *exec.Cmd
	group  *procgroup.Group // that it leads; set when it was started
	home   string
	stderr *textutil.TailBuffer
	pipe   *stdioTransport
	stdin  *os.File
	stdout *os.File
	exited chan struct{} // closed after state is set
	state  string
}

// start starts the program of a server.
func start(c Command) (*process, error) {
	home, err := os.MkdirTemp("", "rolecall-mcp-")
	if err != nil {
		return nil, fmt.Errorf("make a home for %s: %w", c.Path, err)
	}
	p := &process{home: home, stderr: &textutil.TailBuffer{Size: maxStderr}, exited: make(chan struct{})}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir, p.cmd.Env = c.Dir, environment(c.Env, home)
	p.cmd.WaitDelay = grace // for children of its own that hold its stderr
	p.cmd.Stderr = p.stderr
	p.cmd.SysProcAttr = ownGroup()
	if err := p.launch(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Path, pathless(err)), os.RemoveAll(home))
	}
	p.pipe = newPipe(p.stdout, p.stdin, p.stop)
	return p, nil
}

// pathless gives what is wrong with a program that does not start, without its
// path.
func pathless(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok && e.Op == "fork/exec" {
		return e.Err
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

// environment is all that a server sees of ours: where programs are, and which
// language to speak. What the operator says comes last and so holds.
func environment(more []string, home string) []string {
	env := []string{"HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	for _, name := range []string{"PATH", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, more...)
}

// launch starts the program between two pipes and waits for its end on a
// thread that lives as long: its death is the signal to the child.
func (p *process) launch() error {
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		return errors.Join(err, childIn.Close(), stdin.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout, p.stdin, p.stdout = childIn, childOut, stdin, stdout
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		p.group = procgroup.Of(p.cmd)
		_, _ = childIn.Close(), childOut.Close()
		started <- err
		if err == nil {
			p.await()
		}
	}()
	if err := <-started; err != nil {
		return errors.Join(err, stdin.Close(), stdout.Close())
	}
	return nil
}

func (p *process) await() {
	_ = p.group.Wait() // ProcessState says how it ended
	p.state = p.cmd.ProcessState.String()
	close(p.exited)
}

// lastStderr returns the end of what the program wrote to stderr, without
// characters that a terminal obeys.
func (p *process) lastStderr() string { return strings.TrimSpace(visible(p.stderr.String())) }

// stop ends the program: the end of its input says it, then a signal, then
// another one that it cannot refuse.
func (p *process) stop() error {
	err := p.stdin.Close()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if p.ended(grace) {
			break
		}
		p.group.Signal(signal)
	}
	<-p.exited
	return errors.Join(err, p.stdout.Close(), os.RemoveAll(p.home))
}

// kill ends the program at once.
func (p *process) kill() { p.group.Signal(syscall.SIGKILL) }

func (p *process) ended(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// fault says what ended the conversation; nil while it goes on.
func (p *process) fault() error {
	select {
	case <-p.exited:
		return errors.New("the server ended: " + p.state)
	default:
	}
	switch err := p.pipe.Fault(); {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) && p.ended(grace):
		return errors.New("the server ended: " + p.state)
	case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
		return errors.New("the server closed its output")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("the server does not read")
	default:
		return fmt.Errorf("the server sent %w", err)
	}
}
