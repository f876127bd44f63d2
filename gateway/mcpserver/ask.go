package mcpserver

import (
	"cmp"
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
// over MCP to callers whose role has tasks.as, or a tool of the group
// org_management. A registered tool of the same name is not offered.
const AskName = "ask_organization"

const askDescription = `Run a task on the organization and wait for its result. A root agent plans the task, creates roles and spawns agents; %s. It can take minutes; the first message of progress names the task's id. Cancelling the call cancels the task. With an idempotencyKey the task goes on if the connection is lost, and the same call again waits for its result.`

// What the description says about the tools of the task's agents.
const (
	askWithinCaller = "none of them may call a tool that you may not call"
	askWithinRole   = "they may call tools that you may not call yourself"
)

const askInput = `{"type":"object","properties":{` +
	`"task":{"type":"string","minLength":1,"maxLength":100000,"description":"what to do, and what the result should contain"},` +
	`"idempotencyKey":{"type":"string","minLength":1,"maxLength":200,"description":"a new text for each task; the same task with the same key is run once"},` +
	`"taskId":{"type":"string","minLength":1,"maxLength":200,"description":"instead of task: the id of a task that you have started, to wait for its result"}},"additionalProperties":false}`

// askArguments are the arguments of ask_organization.
type askArguments struct {
	Task   string `json:"task"`
	Key    string `json:"idempotencyKey"`
	TaskID string `json:"taskId"`
}

// detached reports whether the task goes on if the connection of the call is lost.
func (a *askArguments) detached() bool { return a.Key != "" || a.TaskID != "" }

// askDefinition returns the definition of ask_organization. It is built here
// and not registered, because the tool is only for clients of MCP, never for
// agents.
func askDefinition(tasks taskRight) tool.Definition {
	within := askWithinCaller
	if tasks.given {
		within = askWithinRole
	}
	return tool.Definition{Name: AskName, Description: fmt.Sprintf(askDescription, within), Input: json.RawMessage(askInput), Effect: tool.Mutating}
}

// mayAskOrganization reports whether the caller is offered ask_organization
// now.
func (s *Server) mayAskOrganization(sc *clientScope) bool { return s.toolListFor(sc).offersAsk }

// askOrganization runs a task on the organization and returns its result. It may also find a
// task that the caller has started. The permissions of the caller's role, or of the
// role in its tasks.as, bound the task's permissions. This also holds when they
// change later (org.TaskSpec). The task is cancelled with the call. When rolecall
// shuts down the task stays and can be resumed.
func (s *Server) askOrganization(ctx context.Context, sc *clientScope, args json.RawMessage, input tool.InputSource) outcome {
	if !s.mayAskOrganization(sc) {
		return outcome{}
	}
	in, err := s.parseAsk(args)
	if err != nil {
		return failedCall(AskName, err)
	}
	before := s.rt.JournalStore().LastSeq() // the events of a new task, and the end of a running one, come later
	id, err := s.findOrStartTask(ctx, sc, in)
	if err != nil {
		return failedCall(AskName, err)
	}
	if !s.mayAskOrganization(sc) { // the role changed before the task started
		if in.TaskID == "" {
			s.cancelTask(ctx, id, "the caller's role may no longer call ask_organization")
		}
		return outcome{}
	}
	tool.ReportProgress(ctx, tool.Progress{Done: 1, Message: fmt.Sprintf("task %s", id)})
	relay, wait := s.relayQuestions(ctx, sc, id, input)
	o := s.awaitTask(ctx, sc, id, before, relay)
	wait()
	if ctx.Err() != nil && !(in.detached() && s.leaveTask(ctx, sc, id)) {
		s.cancelTask(ctx, id, "the call that started the task was cancelled")
	}
	if !sc.stillAuthorized() {
		return failedCall(AskName, errcode.New(errcode.Unauthenticated, tokenInvalid))
	}
	return o
}

// findOrStartTask starts a task. If the caller has started a task with the same key, or if the arguments
// name a task, it returns that task.
func (s *Server) findOrStartTask(ctx context.Context, sc *clientScope, in askArguments) (identity.TaskID, error) {
	if in.TaskID == "" {
		return s.rt.StartTask(ctx, org.TaskSpec{Text: in.Task, Caller: sc.caller, Key: in.Key})
	}
	task, ok := s.rt.Org().TaskByID(identity.TaskID(in.TaskID))
	if !ok || !task.StartedBy(sc.caller) {
		return "", errcode.New(errcode.TaskNotFound, "you have started no task %.200q", in.TaskID)
	}
	return task.ID, nil
}

// parseAsk validates the arguments.
func (s *Server) parseAsk(args json.RawMessage) (in askArguments, err error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	valid, err := s.askSchema.Read(args)
	if err == nil && !valid {
		err = s.askSchema.Validate(args)
	}
	if err == nil {
		err = json.Unmarshal(args, &in)
	}
	if err == nil && (in.Task == "") == (in.TaskID == "") {
		err = errcode.New(errcode.InvalidArguments, "%s needs either task, the text of a new task, or taskId", AskName).With("field", "task")
	}
	if err == nil && in.TaskID != "" && in.Key != "" {
		err = errcode.New(errcode.InvalidArguments, "%s takes idempotencyKey with task, not with taskId", AskName).With("field", "idempotencyKey")
	}
	return in, err
}

// awaitTask waits until a task ends, reports its progress after an event, relays its questions and
// returns its result. It stops when the sender is not authenticated any more.
func (s *Server) awaitTask(ctx context.Context, sc *clientScope, id identity.TaskID, after uint64, relay *questionRelay) outcome {
	if t, ok := s.rt.Org().TaskByID(id); ok && t.Status != org.Running {
		return s.endedOutcome(ctx, id)
	}
	streamCtx, cancel := s.config.Streaming(ctx)
	defer cancel()
	defer context.AfterFunc(s.lifetime, cancel)()
	done := 1.0
	for e, err := range s.rt.WatchTask(streamCtx, id, after) {
		if err != nil || !sc.stillAuthorized() {
			break
		}
		relay.observe(e)
		if line := progressText(e); line != "" {
			done++
			tool.ReportProgress(ctx, tool.Progress{Done: done, Message: line})
		}
		if t, ok := s.rt.Org().TaskByID(id); ok && t.Status == org.Paused {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return outcome{err: ctx.Err()}
	case !sc.stillAuthorized():
		return failedCall(AskName, errcode.New(errcode.Unauthenticated, tokenInvalid))
	case streamCtx.Err() != nil:
		return failedCall(AskName, errcode.New(errcode.ToolUnavailable, "rolecall is shutting down; task %s continues when it is resumed", id).With("task", id))
	}
	return s.endedOutcome(ctx, id)
}

// endedOutcome returns the outcome of a task that has ended, with the pictures that it names.
func (s *Server) endedOutcome(ctx context.Context, id identity.TaskID) outcome {
	task, err := s.rt.WaitTask(ctx, id) // its end may be in memory and not on disk yet
	if err != nil {
		return failedCall(AskName, err)
	}
	o := taskOutcome(task)
	pictures, err := s.rt.TaskPictures(ctx, task)
	if err != nil {
		return failedCall(AskName, err)
	}
	o.result.Content = pictures
	return o
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
		switch {
		case task.Error != nil:
			err = errcode.New(task.Error.Code, "%s", task.Error.Message)
		case task.Pause != nil:
			err = errcode.New(task.Pause.Code, "task %s is paused until the operator retries it: %s; then call again with its taskId", task.ID, task.Pause.Message)
		}
		return askFailure(err.With("task", task.ID))
	}
	var r tool.Result
	if json.Unmarshal(task.Result, &r.Text) != nil {
		r.Structured = task.Result
	}
	if task.Incomplete != "" {
		r.Text = fmt.Sprintf("%s\n\n(This result is incomplete: %s.)", cmp.Or(r.Text, string(r.Structured)), task.Incomplete)
	}
	return outcome{result: &r}
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
	case journal.TaskPaused:
		return "paused: " + string(b.Code)
	case journal.TurnFailed:
		return fmt.Sprintf("%s failed: %s", e.Role, b.Code)
	}
	return ""
}
