package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/internal/procgroup"
)

// process is a job's first process. When it is gone all of the job is gone.
type process struct {
	cmd         *exec.Cmd
	wait        func() error // exec.Cmd.Wait, or for an open job that of its process group
	memory      int64        // its limit
	group       *group
	done        chan struct{}
	err         error // how it ended; read after done
	outOfMemory bool  // read after done
}

// start starts a job and returns when the program itself runs. None of the
// three is nil: in place of it the job had /dev/null as it is outside, and root
// could change its mode for everybody.
func (l *Launcher) start(ctx context.Context, j Job, stdin io.Reader, stdout, stderr io.Writer) (*process, error) {
	if l == nil || !l.entered {
		return nil, errNotEntered()
	}
	s, err := resolveSpec(j)
	if err != nil {
		return nil, err
	}
	var pipes [4]*os.File // spec: read, write; report: read, write
	defer func() { closeAll(pipes[:]...) }()
	for i := 0; i < len(pipes); i += 2 {
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			return nil, fmt.Errorf("start a job: %w", err)
		}
	}
	p := &process{memory: j.Limits.Memory, done: make(chan struct{})}
	p.cmd, p.wait = command(ctx, j.Unsandboxed)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
	p.cmd.ExtraFiles = []*os.File{pipes[0], pipes[3]}
	if !j.Unsandboxed {
		p.group = l.newGroup(s.Limits)
	}
	if err := p.run(); err != nil {
		p.group.close()
		return nil, cannotClone(err)
	}
	closeAll(pipes[0], pipes[3]) // the job has its own
	s.Pids = p.group.add(p.cmd.Process.Pid)
	if err := brief(s, pipes[1], pipes[2]); err != nil {
		return nil, p.abort(err)
	}
	return p, nil
}

// abort ends a process that did not become its job.
func (p *process) abort(why error) error {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
	if p.outOfMemory {
		return &Unavailable{Missing: fmt.Sprintf("memory: a limit of %d bytes is too little to start a program in", p.memory)}
	}
	return why
}

func closeAll(list ...*os.File) {
	for _, f := range list {
		_ = f.Close() // nothing is buffered; nil and closed ones only say so
	}
}

// run starts the process, and waits for it, on one thread that does nothing
// else: the kernel ends a job when the thread that started it ends, which is
// how no job outlives this process.
func (p *process) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if p.err = p.wait(); errors.Is(p.err, exec.ErrWaitDelay) {
			p.err = nil // somebody who left an open job's group holds its pipes
		}
		p.outOfMemory = p.group.close()
		close(p.done)
	}()
	return <-started
}

// brief tells a process what to become and listens until it has become it.
func brief(s *spec, to, from *os.File) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("start a job: %w", err)
	}
	if _, err := io.Copy(to, bytes.NewReader(text)); err != nil {
		return &Unavailable{Missing: "its process was ended before it was told what to do", cause: err}
	}
	_ = to.Close() // the end of the spec
	return readReport(from)
}

// ended waits for the job.
func (p *process) ended() error {
	<-p.done
	return p.err
}

// command is this binary again, to become a job. An open one ends with all of
// its process group.
func command(ctx context.Context, open bool) (cmd *exec.Cmd, wait func() error) {
	cmd = exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{argIsolate}
	cmd.Env = ownEnvironment
	cmd.WaitDelay = 200 * time.Millisecond // for who holds the pipes of an open job
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	if open {
		g := procgroup.Of(cmd)
		cmd.Cancel = func() error { g.Signal(unix.SIGKILL); return nil }
		return cmd, g.Wait
	}
	cmd.SysProcAttr.Cloneflags = namespaces
	cmd.SysProcAttr.UidMappings = identity(os.Getuid())
	cmd.SysProcAttr.GidMappings = identity(os.Getgid())
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	return cmd, cmd.Wait
}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// identity maps one id to itself: the job writes files as who started it.
func identity(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
}

// exitOf gives what a shell would say of how a process ended.
func exitOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(unix.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// cannotClone says why the kernel refused namespaces.
func cannotClone(err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("start a job: %w", err)
	}
	return &Unavailable{Missing: "user, mount, pid, network, ipc and uts namespaces" + sysctlHints(), cause: err}
}
