package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// AskName is the tool that runs a task on the whole organization. It is offered
// over MCP to callers whose role has a tool of the group org_management. A
// registered tool of the same name is not offered.
const AskName = "ask_organization"

const askDescription = `Run a task on the organization and wait for its result. A root agent plans the task, creates roles and spawns agents; none of them may call a tool that you may not call. It can take minutes. Cancelling the call cancels the task.`

const askInput = `{"type":"object","properties":{"task":{"type":"string","minLength":1,"maxLength":100000,"description":"what to do, and what the result should contain"}},"required":["task"],"additionalProperties":false}`

// askDefinition returns the definition of ask_organization. It is built here
// and not registered, because the tool is only for clients of MCP, never for
// agents.
func askDefinition() tool.Definition {
	return tool.Definition{Name: AskName, Description: askDescription, Input: json.RawMessage(askInput), Effect: tool.Mutating}
}

// mayAskOrganization reports whether the caller is offered ask_organization
// now.
func (s *Server) mayAskOrganization(sc *clientScope) bool { return s.toolListFor(sc).offersAsk }

// ask runs a task on the organization and returns its result. The task's
// permissions are bounded by those of the caller's role, also when the role
// changes later (org.TaskSpec). The task is cancelled with the call. When
// rolecall shuts down the task stays and can be resumed.
func (s *Server) ask(ctx context.Context, sc *clientScope, args json.RawMessage) outcome {
	if !s.mayAskOrganization(sc) {
		return outcome{}
	}
	text, err := s.parseTask(args)
	if err != nil {
		return failedCall(AskName, err)
	}
	id, err := s.rt.StartTask(ctx, org.TaskSpec{Text: text, Caller: sc.caller})
	if err != nil {
		return failedCall(AskName, err)
	}
	if !s.mayAskOrganization(sc) { // the role changed before the task started
		s.cancelTask(ctx, id, "the caller's role may no longer call ask_organization")
		return outcome{}
	}
	return s.awaitTask(ctx, id)
}

// parseTask validates the arguments and returns the task's text.
func (s *Server) parseTask(args json.RawMessage) (string, error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	valid, err := s.askSchema.Read(args)
	if err == nil && !valid {
		err = s.askSchema.Validate(args)
	}
	var in struct {
		Task string `json:"task"`
	}
	if err == nil {
		err = json.Unmarshal(args, &in)
	}
	return in.Task, err
}

// awaitTask waits until a task ends, reports its progress and returns its
// result.
func (s *Server) awaitTask(ctx context.Context, id identity.TaskID) outcome {
	streamCtx, cancel := s.config.Streaming(ctx)
	defer cancel()
	defer context.AfterFunc(s.lifetime, cancel)()
	done := 0.0
	for e, err := range s.rt.WatchTask(streamCtx, id, 0) {
		if err != nil {
			break
		}
		if line := progressText(e); line != "" {
			done++
			tool.ReportProgress(ctx, tool.Progress{Done: done, Message: line})
		}
	}
	switch {
	case ctx.Err() != nil:
		s.cancelTask(ctx, id, "the call that started the task was cancelled")
		return outcome{err: ctx.Err()}
	case streamCtx.Err() != nil:
		return failedCall(AskName, errcode.New(errcode.ToolUnavailable, "rolecall is shutting down; task %s continues when it is resumed", id).With("task", id))
	}
	task, err := s.rt.TaskRecord(ctx, id)
	if err != nil {
		return failedCall(AskName, err)
	}
	return taskOutcome(task)
}

// cancelTask cancels a task, also when ctx has ended.
func (s *Server) cancelTask(ctx context.Context, id identity.TaskID, why string) {
	if err := s.rt.CancelTask(context.WithoutCancel(ctx), id, why); err != nil {
		s.log.Error("task not cancelled", "task", id, "error", err)
	}
}

// taskOutcome returns the outcome of a task that has ended.
func taskOutcome(task org.Task) outcome {
	if task.Status != org.Done {
		err := errcode.New(errcode.ToolUnavailable, "task %s has not ended; its status is %s", task.ID, task.Status)
		if task.Error != nil {
			err = errcode.New(task.Error.Code, "%s", task.Error.Message)
		}
		return askFailure(err.With("task", task.ID))
	}
	var text string
	if json.Unmarshal(task.Result, &text) == nil {
		return outcome{result: &tool.Result{Text: text}}
	}
	return outcome{result: &tool.Result{Structured: task.Result}}
}

// askFailure returns a failure for the model to read. Unlike failedCall it also
// shows internal errors, because err carries the task's own code and message.
func askFailure(err error) outcome {
	r := tool.Failure(AskName, err)
	return outcome{result: &r}
}

// progressText returns one line of progress for an event of a task, or "" for
// an event that is not reported. The line never contains message texts,
// arguments or results.
func progressText(e journal.Event) string {
	switch b := e.Body.(type) {
	case journal.TaskStarted:
		return fmt.Sprintf("task %s started", e.Task)
	case journal.AgentSpawned:
		return e.Role + " started"
	case journal.AgentTerminated:
		return e.Role + " terminated"
	case journal.ToolCall:
		if b.Decision == journal.Denied {
			return fmt.Sprintf("%s: call of %s denied: %s", e.Role, b.Tool, b.Code)
		}
		return fmt.Sprintf("%s calls %s", e.Role, b.Tool)
	case journal.ToolError:
		return fmt.Sprintf("%s: %s failed: %s", e.Role, b.Tool, b.Code)
	case journal.Failed:
		return fmt.Sprintf("%s failed: %s", e.Role, b.Code)
	}
	return ""
}
