package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/internal/procgroup"
)

// jobProcess is the first process of a job. When it ends, the whole job has
// ended.
type jobProcess struct {
	cmd         *exec.Cmd
	processes   *procgroup.Group
	sender      *os.File     // over which the job sends its listener; nil unless Job.Listen is set
	listener    net.Listener // nil unless Job.Listen is set
	memory      int64        // limit in bytes
	group       *controlGroup
	done        chan struct{}
	err         error // of wait; valid after done is closed
	outOfMemory bool  // valid after done is closed
}

// start starts a job and returns once the program itself runs. stdin, stdout and
// stderr must not be nil. Otherwise exec.Cmd would open the host's /dev/null
// instead, and a job of root could change its mode for the whole host.
func (l *Launcher) start(ctx context.Context, j Job, stdin io.Reader, stdout, stderr io.Writer) (*jobProcess, error) {
	if l == nil || !l.entered {
		return nil, errNotEntered()
	}
	if err := checkPlatform(); err != nil && !j.Unsandboxed {
		return nil, err
	}
	s, err := resolveSpec(j)
	if err != nil {
		return nil, err
	}
	pipes, err := openPipes()
	defer closeAll(pipes[:]...)
	if err != nil {
		return nil, err
	}
	p := &jobProcess{memory: j.Limits.Memory, done: make(chan struct{})}
	p.cmd, p.processes = reexecCommand(ctx, j.Unsandboxed)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
	p.cmd.ExtraFiles = []*os.File{pipes[0], pipes[3]}
	receiver, err := p.openListener(j.Listen)
	if err != nil {
		return nil, err
	}
	defer closeAll(receiver)
	var trees []*os.File
	defer func() { closeAll(trees...) }()
	if !j.Unsandboxed {
		p.group = l.newControlGroup(s.Limits)
		if trees, s.TreesPassed = l.treesForJobUser(s); s.TreesPassed {
			runAsJobUser(p.cmd, trees)
		}
	}
	if err := p.startCommand(); err != nil {
		closeAll(p.sender)
		p.group.close()
		return nil, cloneError(err)
	}
	closeAll(pipes[0], pipes[3], p.sender) // the job has inherited them
	p.group.addProcess(p.cmd.Process.Pid)
	s.PidsLimited = p.group != nil && p.group.pids
	err = sendSpec(s, pipes[1], pipes[2])
	if err == nil && j.Listen {
		p.listener, err = receiveListener(receiver)
	}
	if err != nil {
		return nil, p.abort(err)
	}
	return p, nil
}

// openPipes opens the pipe of a job's spec and the pipe of its report. It returns the read
// end and the write end of each; the caller closes them also on an error.
func openPipes() (pipes [4]*os.File, err error) {
	for i := 0; i < len(pipes); i += 2 {
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			return pipes, fmt.Errorf("start sandbox job: %w", err)
		}
	}
	return pipes, nil
}

// treesForJobUser returns the mounts for a job that need not be root. It reports false for
// a job that runs as the user of this process. This is an ordinary user, or root
// where mounts cannot be id-mapped.
func (l *Launcher) treesForJobUser(s *spec) (trees []*os.File, ok bool) {
	if os.Getuid() != 0 {
		return nil, false
	}
	trees, err := l.openMappedTrees(s)
	return trees, err == nil
}

// abort kills a process that did not become its job. It returns err, or that
// memory was exhausted if it was.
func (p *jobProcess) abort(err error) error {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
	if p.outOfMemory {
		return &UnavailableError{Missing: fmt.Sprintf("memory: a limit of %d bytes is too small to start a program", p.memory)}
	}
	return err
}

func closeAll(list ...*os.File) {
	for _, f := range list {
		_ = f.Close() // nothing is buffered; Close of a nil or closed file only returns an error
	}
}

// startCommand starts the process. The kernel kills a job (PR_SET_PDEATHSIG) when the thread that
// started it ends, so that no job outlives this process.
func (p *jobProcess) startCommand() error {
	if err := p.processes.Start(); err != nil {
		return err
	}
	go func() {
		if p.err = p.processes.Wait(); errors.Is(p.err, exec.ErrWaitDelay) {
			p.err = nil // a process that left the group of an unsandboxed job still holds its pipes
		}
		p.outOfMemory = p.group.close()
		close(p.done)
	}()
	return nil
}

// sendSpec sends the spec to the process of a job and waits for its report.
func sendSpec(s *spec, to, from *os.File) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("start sandbox job: %w", err)
	}
	if _, err := io.Copy(to, bytes.NewReader(text)); err != nil {
		return &UnavailableError{Missing: "the sandbox process was killed before it read its job", cause: err}
	}
	_ = to.Close() // ends the spec
	return readReport(from)
}

// boundsMemory reports whether a control group bounds the memory of the job.
func (p *jobProcess) boundsMemory() bool { return p.group != nil && p.group.memory }

// waitDone waits for the end of the job and returns the error of wait.
func (p *jobProcess) waitDone() error {
	<-p.done
	return p.err
}

func (p *jobProcess) pause()  { p.processes.Signal(unix.SIGSTOP) }
func (p *jobProcess) resume() { p.processes.Signal(unix.SIGCONT) }

// reexecCommand returns a command that starts this binary again as a job, and its
// process group. The whole group is killed. An unsandboxed job has no pid namespace. The
// processes of another job would run on until its first process has ended.
func reexecCommand(ctx context.Context, unsandboxed bool) (*exec.Cmd, *procgroup.Group) {
	cmd := exec.CommandContext(ctx, selfExe)
	cmd.Args = []string{argIsolate}
	cmd.Env = reexecEnv
	cmd.WaitDelay = 200 * time.Millisecond // children of an unsandboxed job may hold its pipes open
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	g := procgroup.New(cmd)
	cmd.Cancel = func() error { g.Signal(unix.SIGKILL); return nil }
	if unsandboxed {
		return cmd, g
	}
	cmd.SysProcAttr.Cloneflags = namespaces
	cmd.SysProcAttr.UidMappings = mapToItself(os.Getuid())
	cmd.SysProcAttr.GidMappings = mapToItself(os.Getgid())
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	return cmd, g
}

// namespaces are the clone flags for the namespaces of a job.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// mapToItself maps one id to itself, so that the job writes files as the user
// who started it.
func mapToItself(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
}

// exitCode returns the exit code that a shell would report.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(unix.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// cloneError explains an error of starting a process in new namespaces.
func cloneError(err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("start sandbox job: %w", err)
	}
	return &UnavailableError{Missing: "user, mount, pid, network, ipc and uts namespaces" + sysctlHints(), layer: layerNamespaces, cause: err}
}
