package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/internal/js/jsworker"
	"github.com/rolecall/rolecall/tool"
)

const runJavaScriptText = `Run JavaScript and get the value that it returns. It has no files, no network and no modules.`

const runJavaScriptInput = `{
	"type": "object",
	"properties": {
		"code": {
			"type": "string",
			"description": "The body of an async function; end it with return.",
			"minLength": 1,
			"maxLength": 1000000
		},
		"input": {
			"type": ["string", "number", "boolean", "object", "array", "null"],
			"description": "Data for the code, in its variable input."
		}
	},
	"required": ["code"],
	"additionalProperties": false
}`

// javaScriptArgs holds the arguments of run_javascript.
type javaScriptArgs struct {
	Code  string          `json:"code"`
	Input json.RawMessage `json:"input,omitempty"`
}

// javaScriptTimeout is the time limit of one call. Models are not told of it.
const javaScriptTimeout = 30 * time.Second

// javaScriptLimits bound the worker process of scripts. The limits of the engine for
// one script are stricter. A FileSize of 1 byte in effect forbids files; 0 would mean the default limit.
var javaScriptLimits = sandbox.JobLimits{Memory: 512 << 20, Processes: 64, FileSize: 1, Scratch: 1 << 20}

// runJavaScript handles run_javascript: it runs a script in a worker of the caller.
// Agents do not share workers, so a script cannot affect the scripts of others.
func (h commands) runJavaScript(ctx context.Context, in javaScriptArgs) (tool.Result, error) {
	key := fairKey(currentCall(ctx))
	value, err := h.scripts.Run(ctx, jsworker.Request{
		Member: key.Member, Owner: key.Owner, Code: in.Code, Input: in.Input, Time: javaScriptTimeout,
	})
	return tool.Result{Structured: value}, sandboxError(err)
}

// startWorker starts a worker process in the sandbox.
func (h commands) startWorker() (jsworker.Conn, error) {
	return connection(h.launcher.StartProcess(sandbox.Job{Program: jsworker.Program, Unsandboxed: h.config().Unsandboxed, Limits: javaScriptLimits}))
}
