package builtin

import (
	"context"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// commandTools makes run_command.
func commandTools() ([]tool.Tool, error) {
	var s set
	s.add(tool.New("run_command", runCommandText, refuseCommand, options(tool.Mutating, runCommandInput)))
	return s.tools, s.err
}

const runCommandText = `Run a program in your workspace. NOT AVAILABLE in this version: every call is refused, because programs cannot be isolated yet. ` +
	`Use run_javascript to compute and the workspace tools for files. ` +
	`Give either argv (a program and its arguments, no shell) or command (one shell line), not both. ` +
	`Will answer {stdout, stderr, exitCode}; an exit code other than 0 is not an error. ` +
	`Example: {"argv":["ls","-l"],"timeoutMs":10000}`

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
			"maximum": 600000,
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
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	ExitCode int    `json:"exitCode"`
}

func refuseCommand(_ context.Context, in runCommand) (commandOutput, error) {
	if (in.Command == "") == (len(in.Argv) == 0) {
		return commandOutput{}, errcode.New(errcode.InvalidArguments, "run_command takes exactly one of command and argv")
	}
	return commandOutput{}, errcode.New(errcode.ToolUnavailable,
		"run_command is not available: programs would run without isolation, which arrives with a later version, and there is no unsafe default; "+
			"compute with run_javascript, and handle files with read_file, write_file and list_files")
}
