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

// Commands is what the operator says of run_command and run_javascript. The
// zero Commands run inside walls, with default limits.
type Commands struct {
	Unsandboxed bool     // no walls: programs have the rights of this process
	Readable    []string // further directories that programs can read
	Env         []string // further variables of programs, as NAME=value
	Limits      sandbox.Limits
}

// Programs is what a binary must be able to become for run_javascript: main
// begins with sandbox.Enter(builtin.Programs()).
func Programs() map[string]sandbox.Program {
	return map[string]sandbox.Program{jsworker.Program: jsworker.Serve}
}

// commands handles the calls of the command group.
type commands struct {
	workspaces Workspaces
	launcher   *sandbox.Launcher
	config     func() Commands
	scripts    *jsworker.Pool
}

// commandTools makes run_command and run_javascript.
func commandTools(w Workspaces, o Options) ([]tool.Tool, error) {
	h := commands{workspaces: w, launcher: o.Launcher, config: o.Commands}
	if h.config == nil {
		h.config = func() Commands { return Commands{} }
	}
	h.scripts = jsworker.New(h.startWorker)
	var s toolBuilder
	s.add(tool.New("run_command", runCommandText, guarded(h.run), options(tool.Mutating, runCommandInput)))
	s.add(tool.New("run_javascript", runJavaScriptText, guarded(h.evaluate), options(tool.ReadOnly, runJavaScriptInput)))
	return s.tools, s.err
}

const runCommandText = `Run a program in your workspace: compile, test, search, convert. ` +
	`Give either command (one line for sh) or argv (a program and its arguments, no shell), not both. ` +
	`It sees the workspace as its working directory, a scratch /tmp that is gone afterwards, and the system's programs; there is no network and nothing keeps running when it ends. ` +
	`Answers {stdout, stderr, exitCode}; an exit code other than 0 is not an error of the tool: read stderr. ` +
	`Limits: 60 seconds unless timeoutMs says otherwise (at most 240000); of long output the beginning and the end are kept. ` +
	`Example: {"command":"go test ./... 2>&1 | tail -20","timeoutMs":120000}`

// That exactly one of command and argv is given is checked by the handler:
// model services refuse oneOf at the top of a schema.
const runCommandInput = `{
	"type": "object",
	"properties": {
		"command": {
			"type": "string",
			"description": "One line for the shell. Not together with argv.",
			"minLength": 1,
			"maxLength": 32768
		},
		"argv": {
			"type": "array",
			"description": "The program and its arguments, each as it is. Not together with command.",
			"items": {"type": "string", "maxLength": 32768},
			"minItems": 1,
			"maxItems": 1000
		},
		"timeoutMs": {
			"type": "integer",
			"description": "After how many milliseconds the program is stopped.",
			"minimum": 1,
			"maximum": 240000,
			"default": 60000
		}
	},
	"additionalProperties": false
}`

type runCommand struct {
	Command   string   `json:"command,omitempty"`
	Argv      []string `json:"argv,omitempty"`
	TimeoutMs int      `json:"timeoutMs,omitempty"`
}

type commandOutput struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	ExitCode    int    `json:"exitCode"`
	OutOfMemory bool   `json:"outOfMemory,omitempty"`
}

func (h commands) run(ctx context.Context, in runCommand) (commandOutput, error) {
	argv, err := in.argv()
	if err != nil {
		return commandOutput{}, err
	}
	ws, err := open(ctx, h.workspaces)
	if err != nil {
		return commandOutput{}, err
	}
	defer ws.Root.Close()
	j := h.job(in.TimeoutMs)
	j.Argv, j.Workspace, j.ReadOnly = argv, ws.Root.Name(), ws.ReadOnly
	if j.WorkspaceInfo, err = ws.Root.Stat("."); err != nil {
		return commandOutput{}, fmt.Errorf("look at the workspace: %w", err)
	}
	roomy, done := withQuota(ctx, ws, &j.Limits)
	defer done()
	out, err := h.launcher.Run(roomy, j)
	switch {
	case errcode.Of(err) == errcode.QuotaExceeded:
		return commandOutput{}, withOutput(err, out)
	case err != nil:
		return commandOutput{}, unavailable(err)
	case out.TimedOut:
		return commandOutput{}, timedOut(out, j.Limits.Time)
	}
	return commandOutput{out.Stdout.String(), out.Stderr.String(), out.ExitCode, out.OutOfMemory}, nil
}

// argv gives the program and its arguments, or says what is wrong with them.
func (in runCommand) argv() ([]string, error) {
	if (in.Command == "") == (len(in.Argv) == 0) {
		return nil, errcode.New(errcode.InvalidArguments, "run_command takes exactly one of command and argv")
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

// job is a job as the operator wants them, with the time a call asks for.
func (h commands) job(timeoutMs int) sandbox.Job {
	said := h.config()
	j := sandbox.Job{Unsandboxed: said.Unsandboxed, Readable: said.Readable, Env: said.Env, Limits: said.Limits}
	if timeoutMs > 0 {
		asked := time.Duration(timeoutMs) * time.Millisecond
		if j.Limits.Time == 0 || asked < j.Limits.Time {
			j.Limits.Time = asked
		}
	}
	if j.Limits.Time == 0 {
		j.Limits.Time = sandbox.DefaultTime
	}
	return j
}

func timedOut(out sandbox.Outcome, limit time.Duration) error {
	return withOutput(errcode.New(errcode.CommandTimeout, "the program was stopped after %v; give it more time with timeoutMs, or less to do", limit).
		With("timedOut", true).With("timeoutMs", limit.Milliseconds()), out)
}

// withOutput adds to an error what the program had written until then.
func withOutput(err error, out sandbox.Outcome) error {
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		return e.With("stdout", out.Stdout.String()).With("stderr", out.Stderr.String())
	}
	return err
}

// unavailable says what the system lacks for a sandbox; there is no way on
// without it but the operator's word.
func unavailable(err error) error {
	missing, ok := errors.AsType[*sandbox.Unavailable](err)
	if !ok {
		return err
	}
	return errcode.Wrap(errcode.ToolUnavailable, err,
		"programs cannot be isolated on this system: missing is %s. Tell whoever gave you the task: the operator can mend that, or configure kind: command with sandbox: none. read_file, write_file and list_files work without", missing.Detail())
}
