//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// jobProcess is the process of a job on systems without a sandbox. Only
// unsandboxed jobs run there, without the per-process limits.
type jobProcess struct {
	cmd         *exec.Cmd
	outOfMemory bool
	listener    net.Listener // always nil
}

// start starts an unsandboxed job and rejects all others.
func (l *Launcher) start(ctx context.Context, j Job, stdin io.Reader, stdout, stderr io.Writer) (*jobProcess, error) {
	switch {
	case l == nil || !l.entered:
		return nil, errNotEntered()
	case !j.Unsandboxed:
		return nil, checkPlatform()
	case (len(j.Argv) == 0) == (j.Program == ""):
		return nil, errArgvOrProgram
	case j.Listen:
		return nil, errListenUnsandboxed
	}
	cmd, err := unsandboxedCommand(ctx, j)
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Env, cmd.WaitDelay = j.Workspace, append(unsandboxedEnv(), j.Env...), 200*time.Millisecond
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	if err := cmd.Start(); err != nil {
		return nil, &execError{err.Error(), 127}
	}
	return &jobProcess{cmd: cmd}, nil
}

// jobUserNamespace is not needed: there is no sandbox.
type jobUserNamespace struct{}

// CheckJobUser reports nothing: there is no sandbox.
func (l *Launcher) CheckJobUser(string) error { return nil }

// kernelLayers returns nothing: the layers exist on Linux only.
func kernelLayers() map[string]string { return nil }

// offersGroups returns false: control groups exist on Linux only.
func (l *Launcher) offersGroups() bool { return false }

// holdNamespace is never reached.
func holdNamespace() error { return errors.New("sandbox not supported on " + runtime.GOOS) }

// unsandboxedCommand returns the command of a job.
func unsandboxedCommand(ctx context.Context, j Job) (*exec.Cmd, error) {
	if j.Program == "" {
		return exec.CommandContext(ctx, j.Argv[0], j.Argv[1:]...), nil
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start sandbox job: find path of this binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, binary)
	cmd.Args = []string{argProgram, j.Program}
	return cmd, nil
}

// waitDone waits for the end of the job.
func (p *jobProcess) waitDone() error {
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

func (p *jobProcess) pause()  {}
func (p *jobProcess) resume() {}

// exitCode returns the exit code of an ended process.
func exitCode(state *os.ProcessState) int { return state.ExitCode() }

// boundsMemory returns false: control groups exist on Linux only.
func (p *jobProcess) boundsMemory() bool { return false }

// runAsJob is never reached: without a sandbox no process is started as a job.
func runAsJob() error { return checkPlatform() }
