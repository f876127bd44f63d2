package builtin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js/jsworker"
	"github.com/rolecall/rolecall/tool"
)

// CommandConfig configures run_command and run_javascript. The zero CommandConfig runs
// programs in the sandbox with default limits.
type CommandConfig struct {
	Unsandboxed bool     // no sandbox: programs have the rights of this process
	Readable    []string // additional directories that programs can read
	Env         []string // additional environment variables, as NAME=value
	Limits      sandbox.JobLimits
}

// SandboxPrograms returns the sandbox programs that run_javascript and agent scripts need. A
// binary that offers them begins main with sandbox.Enter(builtin.SandboxPrograms()).
func SandboxPrograms() map[string]sandbox.Program {
	return map[string]sandbox.Program{jsworker.Program: jsworker.Serve}
}

// commands handles the calls of the command group.
type commands struct {
	workspaces WorkspaceOpener
	launcher   *sandbox.Launcher
	config     func() CommandConfig
	scripts    *jsworker.Pool
	queue      *commandQueue
}

// commandTools returns run_command and run_javascript.
func commandTools(w WorkspaceOpener, o Options) ([]tool.Tool, error) {
	h := commands{workspaces: w, launcher: o.Launcher, config: o.Commands, queue: newCommandQueue()}
	if h.config == nil {
		h.config = func() CommandConfig { return CommandConfig{} }
	}
	h.scripts = jsworker.New(h.startWorker)
	var s toolBuilder
	s.add(tool.New("run_command", runCommandText, withErrorCode(h.run), toolOptions(tool.Mutating, tool.FlagsOf(tool.Untrusted, tool.Private), runCommandInput)))
	s.add(tool.New("run_javascript", runJavaScriptText, withErrorCode(h.runJavaScript), toolOptions(tool.ReadOnly, tool.FlagsOf(), runJavaScriptInput)))
	return s.tools, s.err
}

const runCommandText = `Run a program in the workspace, without network. Returns stdout, stderr and exitCode.`

// The handler checks that exactly one of command and argv is given: model
// providers reject oneOf at the top of a schema.
const runCommandInput = `{
	"type": "object",
	"properties": {
		"command": {
			"type": "string",
			"description": "A line for the shell.",
			"minLength": 1,
			"maxLength": 32768
		},
		"argv": {
			"type": "array",
			"description": "A program and its arguments, instead of command.",
			"items": {"type": "string", "maxLength": 32768},
			"minItems": 1,
			"maxItems": 1000
		},
		"timeoutMs": {
			"type": "integer",
			"description": "Stop it after so many milliseconds.",
			"minimum": 1,
			"maximum": 240000,
			"default": 60000
		}
	},
	"additionalProperties": false
}`

// runCommand holds the arguments of run_command. Exactly one of Command and
// Argv is set.
type runCommand struct {
	Command   string   `json:"command,omitempty"`
	Argv      []string `json:"argv,omitempty"`
	TimeoutMs int      `json:"timeoutMs,omitempty"`
}

// commandOutput is the result of run_command.
type commandOutput struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	ExitCode    int    `json:"exitCode"`
	OutOfMemory bool   `json:"outOfMemory,omitempty"`
	Truncated   bool   `json:"truncated,omitempty"` // stdout or stderr lacks its middle, which is lost
}

// run handles run_command.
func (h commands) run(ctx context.Context, in runCommand) (commandOutput, error) {
	argv, err := in.argv()
	if err != nil {
		return commandOutput{}, err
	}
	ws, err := openWorkspace(ctx, h.workspaces)
	if err != nil {
		return commandOutput{}, err
	}
	defer ws.Root.Close()
	release, err := h.queue.acquire(ctx, fairKey(currentCall(ctx)), ws)
	if err != nil {
		return commandOutput{}, err
	}
	defer release()
	j := h.newJob(in.TimeoutMs)
	j.Argv, j.Workspace, j.ReadOnly = argv, ws.Root.Name(), ws.ReadOnly
	if j.WorkspaceInfo, err = ws.Root.Stat("."); err != nil {
		return commandOutput{}, fmt.Errorf("stat workspace: %w", err)
	}
	limited, done := enforceQuota(ctx, ws, &j.Limits)
	defer done()
	out, err := h.launcher.Run(limited, j)
	switch {
	case errcode.CodeOf(err) == errcode.QuotaExceeded, errcode.CodeOf(err) == errcode.StorageLow:
		return commandOutput{}, withOutput(err, out)
	case err != nil:
		return commandOutput{}, sandboxError(err)
	case out.TimedOut:
		return commandOutput{}, timeoutError(out, j.Limits.Time)
	}
	return commandOutput{out.Stdout.String(), out.Stderr.String(), out.ExitCode, out.OutOfMemory, out.Truncated()}, nil
}

// argv returns the program and its arguments. It rejects blocked commands.
func (in runCommand) argv() ([]string, error) {
	if (in.Command == "") == (len(in.Argv) == 0) {
		return nil, errcode.New(errcode.InvalidArguments, "run_command: set exactly one of command and argv")
	}
	argv := in.Argv
	if in.Command != "" {
		argv = []string{"sh", "-c", in.Command}
	}
	if err := checkBlocked(argv); err != nil {
		return nil, err
	}
	return argv, nil
}

// newJob returns a job with the configured settings. A call can shorten the
// configured time limit but not extend it.
func (h commands) newJob(timeoutMs int) sandbox.Job {
	cfg := h.config()
	j := sandbox.Job{Unsandboxed: cfg.Unsandboxed, Readable: cfg.Readable, Env: cfg.Env, Limits: cfg.Limits}
	if timeoutMs > 0 {
		requested := time.Duration(timeoutMs) * time.Millisecond
		if j.Limits.Time == 0 || requested < j.Limits.Time {
			j.Limits.Time = requested
		}
	}
	if j.Limits.Time == 0 {
		j.Limits.Time = sandbox.DefaultTime
	}
	return j
}

// timeoutError returns the command_timeout error with the output so far.
func timeoutError(out sandbox.JobOutcome, limit time.Duration) error {
	return withOutput(errcode.New(errcode.CommandTimeout, "the program was stopped after %v; set a larger timeoutMs, or do less in one call", limit).
		With("timedOut", true).With("timeoutMs", limit.Milliseconds()), out)
}

// withOutput adds the output of the program so far to an error.
func withOutput(err error, out sandbox.JobOutcome) error {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok {
		return err
	}
	e = e.With("stdout", out.Stdout.String()).With("stderr", out.Stderr.String())
	if out.Truncated() {
		e = e.With("truncated", true)
	}
	return e
}

// sandboxError names what the system lacks for a sandbox. Only the operator
// can allow programs to run without one.
func sandboxError(err error) error {
	missing, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok {
		return err
	}
	return errcode.Wrap(errcode.ToolUnavailable, err,
		"programs cannot be isolated on this system; missing: %s. Report this to the user: the operator can fix it, or configure kind: command with sandbox: none. read_file, write_file and list_files work without a sandbox", missing.Detail())
}
