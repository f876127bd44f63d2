package mcpclient

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/textutil"
)

// stopTimeout is how long a program may take to end after its stdin was closed, and again
// after SIGTERM.
const stopTimeout = time.Second

// maxStderr is how many bytes of a program's stderr are kept for errors.
const maxStderr = 64 << 10

// process is a server that runs as a child process. It has its own process group, a clean
// environment and a temporary home directory. It ends when this process ends.
type process struct {
	cmd       *exec.Cmd
	group     *procgroup.Group
	home      string
	stderr    *textutil.TailBuffer
	secrets   *redact.Redactor
	transport *stdioTransport
	stdin     *os.File
	stdout    *os.File
}

// startProcess starts the program of a server. The caller closes p.transport. What the program
// sends is redacted.
func startProcess(c Command, secrets *redact.Redactor) (*process, error) {
	home, err := os.MkdirTemp("", "rolecall-mcp-")
	if err != nil {
		return nil, fmt.Errorf("create a home directory for %s: %w", c.Path, err)
	}
	p := &process{home: home, secrets: secrets, stderr: &textutil.TailBuffer{Size: maxStderr}}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir, p.cmd.Env = c.Dir, environment(c.Env, home)
	p.cmd.WaitDelay = stopTimeout // for its children that keep stderr open
	p.cmd.Stderr = p.stderr
	p.cmd.SysProcAttr = procgroup.Attributes()
	p.group = procgroup.New(p.cmd)
	if err := p.launch(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Path, err), os.RemoveAll(home))
	}
	p.transport = newStdioTransport(p.stdout, p.stdin, secrets, p.stop)
	return p, nil
}

// environment returns the environment of a server: PATH and LANG of ours, and what the
// operator has configured. The latter comes last, so it takes precedence.
func environment(more []string, home string) []string {
	env := []string{"HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	for _, name := range []string{"PATH", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, more...)
}

// launch starts the program with pipes for stdin and stdout.
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
	err = p.group.Start()
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		return errors.Join(err, stdin.Close(), stdout.Close())
	}
	return nil
}

// state returns how the program has ended.
func (p *process) state() string { return p.cmd.ProcessState.String() }

// lastStderr returns the end of what the program wrote to stderr, without
// characters that a terminal obeys and without secrets.
func (p *process) lastStderr() string {
	text := p.stderr.String()
	redacted := p.secrets.RedactText
	if len(text) == maxStderr {
		redacted = p.secrets.RedactTail
	}
	return strings.TrimSpace(redacted(textutil.RemoveInvisible(text)))
}

// stop ends the program: it closes stdin, then sends SIGTERM, then SIGKILL. It removes the
// home directory.
func (p *process) stop() error {
	err := p.stdin.Close()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if p.endsWithin(stopTimeout) {
			break
		}
		p.group.Signal(signal)
	}
	<-p.group.Ended()
	return errors.Join(err, p.stdout.Close(), os.RemoveAll(p.home))
}

// kill kills the program and its process group.
func (p *process) kill() { p.group.Signal(syscall.SIGKILL) }

// endsWithin reports whether the program ends within this time.
func (p *process) endsWithin(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.group.Ended():
		return true
	case <-timer.C:
		return false
	}
}

// fault returns why the connection ended, nil while it is open.
func (p *process) fault() error {
	err := p.transport.Fault()
	select {
	case <-p.group.Ended():
		if !errors.Is(err, errNotMessage) && !errors.Is(err, errMessageTooLong) {
			return errors.New("the server ended: " + p.state())
		}
	default:
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) && p.endsWithin(stopTimeout):
		return errors.New("the server ended: " + p.state())
	case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
		return errors.New("the server closed its output")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("the server does not read its input")
	default:
		return fmt.Errorf("the server sent %w", err)
	}
}
