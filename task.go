package rolecall

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// TaskSpec specifies a task to start.
type TaskSpec struct {
	As         Principal       // the sender, the operator or a caller; its agents may do no more. Required
	Text       string          // what to do
	Role       string          // id or name of the role of the first agent; "" is root. Not of Begin
	Input      json.RawMessage // data for the first agent, a JSON object; nil for none
	ToolGroups []GroupID       // limits the agents of the task to these groups; nil is no limit
	Workspace  string          // a directory that the agents share; "" is Options.Workspace. Only of the operator
	Timeout    time.Duration   // after which the task is cancelled; 0 for no limit
	Key        string          // idempotency key, unique among the tasks of As; "" for none. Not of Begin
}

// check returns an error without a principal, which may do nothing.
func (s TaskSpec) check() error {
	if s.As != (Principal{}) {
		return nil
	}
	return errcode.New(errcode.Unauthenticated, "TaskSpec.As is missing: set the sender of the task, for example rolecall.Operator(\"me\")")
}

// spec returns the specification for the runtime.
func (o *Organization) spec(s TaskSpec, schema json.RawMessage) org.TaskSpec {
	spec := org.TaskSpec{Caller: s.As, Text: s.Text, Role: s.Role, Input: s.Input, Workspace: o.workspaceFor(s), Timeout: s.Timeout, Schema: schema, Key: s.Key}
	if s.ToolGroups != nil {
		groups := toolgroups.SetOf(s.ToolGroups...)
		spec.Groups = &groups
	}
	return spec
}

// Task is a task of which the program is the first agent. The agent is root: its tools are
// those of org_management, and it grants what the principal of the task may use.
//
// End or Close it. The methods are safe for concurrent use, and those that change something
// run one at a time. After the end they return an error with the code Conflict.
type Task struct {
	org    *Organization
	driver *runtime.Driver
}

// Begin starts a task of which the program is the first agent. Errors: Unauthenticated if
// TaskSpec.As is missing, and those of runtime.Runtime.DriveTask.
func (o *Organization) Begin(ctx context.Context, s TaskSpec) (*Task, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	driver, err := o.rt.DriveTask(ctx, o.spec(s, nil))
	if err != nil {
		return nil, err
	}
	return &Task{o, driver}, nil
}

// ResumeSpec names a task that Begin has started in an earlier process.
type ResumeSpec struct {
	As   Principal // the operator, or the caller that started the task
	Task TaskID
}

// Resume continues a task of Begin that an earlier process has left unfinished. A call that was
// running when that process ended is not repeated; it is recorded as interrupted. Errors: those
// of runtime.Runtime.ResumeDriver.
func (o *Organization) Resume(ctx context.Context, s ResumeSpec) (*Task, error) {
	driver, err := o.rt.ResumeDriver(ctx, s.As, s.Task)
	if err != nil {
		return nil, err
	}
	return &Task{o, driver}, nil
}

// ID returns the id of the task.
func (t *Task) ID() TaskID { return t.driver.TaskID() }

// AgentID returns the id of the agent that the program is.
func (t *Task) AgentID() AgentID { return t.driver.AgentID() }

// call calls a built-in tool as the agent that the program is. The call passes the gate. args and
// result are as for encoding/json; a nil result is not decoded.
func (t *Task) call(ctx context.Context, name string, args, result any) error {
	text, err := json.Marshal(args)
	if err != nil {
		return errcode.Wrap(errcode.InvalidArguments, err, "%s: the specification is not JSON", name)
	}
	out, err := t.driver.Call(ctx, name, text)
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(out, result)
}

// CreateRole creates a role for agents of this task and of tasks of the same principal.
// The groups must be within what the task may grant. Errors: InsufficientPermissions,
// GroupNotFound, RoleExists, InvalidArguments.
func (t *Task) CreateRole(ctx context.Context, s RoleSpec) (role Role, err error) {
	if err := s.checkTaskRole(); err != nil {
		return Role{}, err
	}
	args := struct {
		Name        string    `json:"name"`
		Description string    `json:"description,omitempty"`
		Prompt      string    `json:"rolePrompt"`
		ToolGroups  []GroupID `json:"toolGroups"`
		Grant       []GroupID `json:"grant"`
	}{s.Name, s.Description, s.Prompt, append([]GroupID{}, s.ToolGroups...), append([]GroupID{}, s.Grant...)}
	err = t.call(ctx, "create_role", args, &role)
	return role, err
}

// AgentSpec specifies an agent to hire.
type AgentSpec struct {
	Role    string // id or name. Required
	Brief   string // what the agent has to achieve. Required
	Message any    // first message: a text, or what marshals to a JSON object; nil lets the agent wait
}

// check names required fields that are missing, as a program knows them. The calls would name
// the arguments of tools.
func (s AgentSpec) check() error {
	if s.Role == "" {
		return errcode.New(errcode.InvalidArguments, "spawn an agent: AgentSpec.Role is missing: set the id or the name of a role")
	}
	if strings.TrimSpace(s.Brief) == "" {
		return errcode.New(errcode.InvalidTaskBrief, "spawn an agent of the role %q: AgentSpec.Brief is missing: say what the agent has to achieve", s.Role)
	}
	return nil
}

// Agent is an agent that was hired.
type Agent struct {
	ID       AgentID `json:"id"`
	Role     RoleID  `json:"roleId"`
	RoleName string  `json:"roleName"`
}

// Spawn hires an agent. Its answer, or its failure, arrives as a message (Receive). Errors:
// RoleNotFound, InsufficientPermissions, InvalidTaskBrief, LimitExceeded.
func (t *Task) Spawn(ctx context.Context, s AgentSpec) (agent Agent, err error) {
	if err := s.check(); err != nil {
		return Agent{}, err
	}
	args := map[string]any{"roleId": s.Role, "taskBrief": s.Brief}
	if s.Message == nil {
		err = t.call(ctx, "spawn_agent", args, &agent)
		return agent, err
	}
	args["initialMessage"] = s.Message
	err = t.call(ctx, "spawn_agent_with_task", args, &agent)
	return agent, err
}

// MessageSpec specifies a message to send.
type MessageSpec struct {
	To      AgentID
	Payload any           // a text, or anything that marshals to JSON
	Delay   time.Duration // until it is delivered; 0 is at once
}

// Send writes to an agent of the task. Errors: UnknownRecipient, LimitExceeded.
func (t *Task) Send(ctx context.Context, s MessageSpec) error {
	if s.To == "" {
		return errcode.New(errcode.InvalidArguments, "send a message: MessageSpec.To is missing: set the id of an agent, from Spawn or Message.From")
	}
	args := map[string]any{"to": s.To, "payload": s.Payload}
	if s.Delay > 0 {
		args["delayMs"] = s.Delay.Milliseconds()
	}
	return t.call(ctx, "send_message", args, nil)
}

// Receive waits for messages to the program and returns them, oldest first. It returns an
// error with the code TaskStalled when none can come: no agent is at work, and no delayed
// message is left. The task goes on, and the program can spawn, send and receive again.
func (t *Task) Receive(ctx context.Context) ([]Message, error) {
	received, err := t.driver.Receive(ctx)
	list := make([]Message, len(received))
	for i, m := range received {
		list[i] = Message{m.From, m.FromRole, m.Payload, m.CreatedAt}
	}
	return list, err
}

// TerminateSpec specifies an agent to stop.
type TerminateSpec struct {
	Agent  AgentID
	Reason string
}

// Terminate stops an agent that the program has hired, and those below it. Errors:
// NotChildAgent, AgentNotFound.
func (t *Task) Terminate(ctx context.Context, s TerminateSpec) error {
	if s.Agent == "" {
		return errcode.New(errcode.InvalidArguments, "terminate an agent: TerminateSpec.Agent is missing: set its id, from Spawn")
	}
	args := map[string]any{"agentId": s.Agent}
	if s.Reason != "" {
		args["reason"] = s.Reason
	}
	return t.call(ctx, "terminate_agent", args, nil)
}

// Events yields the events of the task after a sequence number, 0 for all, until its end or
// until ctx ends.
func (t *Task) Events(ctx context.Context, after uint64) iter.Seq2[Event, error] {
	return t.org.rt.WatchTask(ctx, t.ID(), after)
}

// Wait waits until the task has ended or is paused. It returns nil if the task has succeeded with
// a complete result, else an error whose errcode.Code says why it has not.
func (t *Task) Wait(ctx context.Context) error {
	task, err := t.org.rt.WaitTask(ctx, t.ID())
	if err != nil {
		return err
	}
	return outcomeError(task)
}

// End ends the task successfully. result becomes its result, as encoding/json writes it. Agents of
// the task that are still at work are terminated.
func (t *Task) End(ctx context.Context, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return errcode.Wrap(errcode.InvalidArguments, err, "end task %s: the result is not JSON", t.ID())
	}
	return t.driver.End(ctx, text)
}

// Close cancels the task unless End or something else has ended it. It may be called more than
// once.
func (t *Task) Close() error { return t.driver.Close() }
