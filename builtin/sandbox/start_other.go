//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is a job's process, on systems without a sandbox:
// only jobs that ask for none run, without the limits of a process.
type process struct {
	cmd         *exec.Cmd
	outOfMemory bool
}

func (l *Launcher) start(ctx context.Context, j Job, stdin io.Reader, stdout, stderr io.Writer) (*process, error) {
	switch {
	case l == nil || !l.entered:
		return nil, errNotEntered()
	case !j.Unsandboxed:
		return nil, &Unavailable{Missing: "sandbox not supported on " + runtime.GOOS}
	case (len(j.Argv) == 0) == (j.Program == ""):
		return nil, errArgvOrProgram
	}
	cmd, err := openCommand(ctx, j)
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Env, cmd.WaitDelay = j.Workspace, append(openEnvironment(), j.Env...), 200*time.Millisecond
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	if err := cmd.Start(); err != nil {
		return nil, &notFound{err.Error(), 127}
	}
	return &process{cmd: cmd}, nil
}

func openCommand(ctx context.Context, j Job) (*exec.Cmd, error) {
	if j.Program == "" {
		return exec.CommandContext(ctx, j.Argv[0], j.Argv[1:]...), nil
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a job: find this binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, binary)
	cmd.Args = []string{argProgram, j.Program}
	return cmd, nil
}

func (p *process) ended() error {
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

func exitOf(state *os.ProcessState) int { return state.ExitCode() }

func runAsJob() error { return errors.New("sandbox not supported on " + runtime.GOOS) }
