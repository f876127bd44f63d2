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

// AskName is the tool by which a whole organization is one tool. It is offered
// over MCP to those whose role may use a tool of org_management: who may make
// others work. A tool that somebody registers under this name is not offered.
const AskName = "ask_organization"

const askDescription = `Give a task to the organization and wait for its result. Its root agent plans, makes roles and has agents work on it; none of them may call a tool that you may not. It can take minutes. Cancelling the call cancels the task.`

const askInput = `{"type":"object","properties":{"task":{"type":"string","minLength":1,"maxLength":100000,"description":"what is to be done, and what the result should be"}},"required":["task"],"additionalProperties":false}`

func askDefinition() tool.Definition {
	return tool.Definition{Name: AskName, Description: askDescription, Input: json.RawMessage(askInput), Effect: tool.Mutating}
}

// mayAsk says whether a caller is offered the tool now.
func (s *Server) mayAsk(d *clientScope) bool { return s.toolListFor(d).asks }

// ask gives a task to the organization and answers with its result. The
// task's ceiling is what the caller's role is worth, now and later
// (org.TaskSpec). It is cancelled with the call; when rolecall closes it stays,
// to be resumed.
func (s *Server) ask(ctx context.Context, d *clientScope, args json.RawMessage) outcome {
	if !s.mayAsk(d) {
		return outcome{}
	}
	text, err := s.task(args)
	if err != nil {
		return failed(AskName, err)
	}
	id, err := s.rt.Start(ctx, org.TaskSpec{Text: text, Caller: d.by})
	if err != nil {
		return failed(AskName, err)
	}
	if !s.mayAsk(d) { // it was revoked before the task began
		s.cancelTask(ctx, id, "the role of the caller may not ask any more")
		return outcome{}
	}
	return s.await(ctx, id)
}

// task reads the arguments.
func (s *Server) task(args json.RawMessage) (string, error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	fits, err := s.asking.Read(args)
	if err == nil && !fits {
		err = s.asking.Validate(args)
	}
	var in struct {
		Task string `json:"task"`
	}
	if err == nil {
		err = json.Unmarshal(args, &in)
	}
	return in.Task, err
}

// await follows a task to its end, and tells how it goes.
func (s *Server) await(ctx context.Context, id identity.TaskID) outcome {
	following, cancel := s.config.Streaming(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	done := 0.0
	for e, err := range s.rt.Watch(following, id, 0) {
		if err != nil {
			break
		}
		if line := progressText(e); line != "" {
			done++
			tool.Report(ctx, tool.Progress{Done: done, Message: line})
		}
	}
	switch {
	case ctx.Err() != nil:
		s.cancelTask(ctx, id, "the call that asked for it was cancelled")
		return outcome{fault: ctx.Err()}
	case following.Err() != nil:
		return failed(AskName, errcode.New(errcode.ToolUnavailable, "rolecall is closing; task %s goes on when it is resumed", id).With("task", id))
	}
	task, err := s.rt.TaskRecord(ctx, id)
	if err != nil {
		return failed(AskName, err)
	}
	return result(task)
}

// cancelTask gives up a task.
func (s *Server) cancelTask(ctx context.Context, id identity.TaskID, why string) {
	if err := s.rt.Cancel(context.WithoutCancel(ctx), id, why); err != nil {
		s.log.Error("task not cancelled", "task", id, "error", err)
	}
}

// result is what a task that has ended came to.
func result(task org.Task) outcome {
	if task.Status != org.Done {
		err := errcode.New(errcode.ToolUnavailable, "task %s has not ended: it is %s", task.ID, task.Status)
		if task.Error != nil {
			err = errcode.New(task.Error.Code, "%s", task.Error.Message)
		}
		return failedAs(err.With("task", task.ID))
	}
	var text string
	if json.Unmarshal(task.Result, &text) == nil {
		return outcome{result: &tool.Result{Text: text}}
	}
	return outcome{result: &tool.Result{Structured: task.Result}}
}

// failedAs is failed for an error whose code is for the model, whatever it is.
func failedAs(err error) outcome {
	r := tool.Failure(AskName, err)
	return outcome{result: &r}
}

// progressText words an event of a task in a line; "" when it is not worth one. What
// agents write, call with and answer is not in it.
func progressText(e journal.Event) string {
	switch b := e.Body.(type) {
	case journal.TaskStarted:
		return fmt.Sprintf("task %s begins", e.Task)
	case journal.AgentSpawned:
		return e.Role + " begins to work"
	case journal.AgentTerminated:
		return e.Role + " has ended"
	case journal.ToolCall:
		if b.Decision == journal.Denied {
			return fmt.Sprintf("%s may not call %s: %s", e.Role, b.Tool, b.Code)
		}
		return fmt.Sprintf("%s calls %s", e.Role, b.Tool)
	case journal.ToolError:
		return fmt.Sprintf("%s: %s failed: %s", e.Role, b.Tool, b.Code)
	case journal.Failed:
		return fmt.Sprintf("%s failed: %s", e.Role, b.Code)
	}
	return ""
}
