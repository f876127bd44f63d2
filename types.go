package rolecall

import (
	"context"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/embedding"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Types of other packages that programs use, so that they import only this one.
type (
	AgentID   = identity.AgentID
	RoleID    = identity.RoleID
	TaskID    = identity.TaskID
	GroupID   = toolgroups.GroupID
	Principal = identity.Principal // the sender of a task

	Module      = modules.Module   // adds tool groups; its optional methods are in package modules
	ToolGroup   = toolgroups.Group // tools that roles have together
	Tool        = tool.Tool        // a function that agents may call
	ToolOptions = tool.Options     // the effect and the flags of a tool, and when it is offered

	Model        = model.Model
	ModelRequest = model.Request
	ModelAnswer  = model.Answer
	ModelCall    = model.Call

	TaskStatus = org.TaskStatus
	Event      = journal.Event // what happened, as the journal has it

	ConfigFiles = embedding.ConfigFiles // YAML files; configured.Files returns them
)

// How an answer of a model ends.
const (
	FinishToolCalls = model.FinishToolCalls // its Calls are made, and the model is asked again
	FinishWait      = model.FinishWait      // the model is asked again when a message arrives
	FinishEnd       = model.FinishEnd       // the turn ends; Text or Value is its result
)

// The status of a task that has not ended (UnfinishedTask.Status).
const (
	TaskRunning     = org.Running
	TaskWaiting     = org.Waiting     // only delayed messages are left to do
	TaskPaused      = org.Paused      // Run with its key lets it go on
	TaskInterrupted = org.Interrupted // no process works on it
)

// Why an answer of a model ended early (ModelAnswer.Stop). A task that ends with such an
// answer has an incomplete result.
const (
	StopLength        = model.Length        // the answer reached its maximum length
	StopContentFilter = model.ContentFilter // the provider's filter ended the answer
	StopRefusal       = model.Refusal       // the model refused
)

// Effects of a tool. The zero effect is mutating: a call that was interrupted is not repeated.
const (
	Mutating   = tool.Mutating
	ReadOnly   = tool.ReadOnly
	Idempotent = tool.Idempotent
)

// Flags of a tool. ToolOptions have them as FlagsOf; flags that are not set count as all three.
const (
	Untrusted = tool.Untrusted // its results may contain text of people and systems that are not trusted
	Private   = tool.Private   // its results may contain private data
	Outside   = tool.Outside   // a call may send data out of the organization
)

// FlagsOf returns the flags of a tool: those of the list, and no others.
func FlagsOf(list ...tool.Flag) tool.Flags { return tool.FlagsOf(list...) }

// Operator returns the operator of the organization, who may use all tool groups.
func Operator(name string) Principal { return identity.ByOperator(identity.UserName(name)) }

// Caller returns a user in a role. Its tasks are limited to what the role may.
func Caller(user string, role RoleID) Principal {
	return identity.ByCaller(identity.UserName(user), role)
}

// NewTool returns a tool that calls a Go function, see tool.New.
func NewTool[In, Out any](name, description string, fn func(context.Context, In) (Out, error), o *ToolOptions) (Tool, error) {
	return tool.New(name, description, fn, o)
}
