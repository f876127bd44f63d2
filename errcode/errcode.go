// Package errcode owns the words for what can go wrong: stable codes that
// every wire carries, and the error type that binds one to a message.
//
// Return errcode.New or errcode.Wrap where a peer will read the outcome; ask
// with Of, never by comparing text. The package decides nothing and knows no
// wire: each wire has its own table from codes to statuses.
package errcode

import (
	"errors"
	"fmt"
)

// Code is one of the stable error codes. The zero Code means "no error".
type Code string

// Tool groups and their registration.
const (
	ReservedGroupID          Code = "reserved_group_id"          // a group id that belongs to the runtime
	DuplicateGroupID         Code = "duplicate_group_id"         // an id taken by another owner; a warning for the same owner
	InvalidGroupDef          Code = "invalid_group_def"          // a group whose id, description or tools are malformed
	CannotUnregisterReserved Code = "cannot_unregister_reserved" // built-in groups stay
	GroupNotFound            Code = "group_not_found"            // no group has this id
	DuplicateToolName        Code = "duplicate_tool_name"        // another owner has a tool of this name
)

// Calls of tools.
const (
	ToolNotAvailable    Code = "tool_not_available"    // known, but not the caller's
	UnknownTool         Code = "unknown_tool"          // known nowhere
	ToolUnavailable     Code = "tool_unavailable"      // the caller's, but its machinery is missing
	InvalidArguments    Code = "invalid_arguments"     // arguments the tool's schema refuses
	ToolExecutionFailed Code = "tool_execution_failed" // the tool tried and failed
	ToolTimeout         Code = "tool_timeout"          // a ReadOnly or Idempotent tool ran out of time
	ToolInterrupted     Code = "tool_interrupted"      // a Mutating tool ended without an answer: outcome unknown
	ResultTooLarge      Code = "result_too_large"      // the result is over its cap
	NoToolsAvailable    Code = "no_tools_available"    // a tool-gated role without a visible tool
)

// Rights, limits and approvals.
const (
	InsufficientPermissions Code = "insufficient_permissions" // asked for more than the caller may give or have
	Unauthenticated         Code = "unauthenticated"          // who calls is not known
	ApprovalRequired        Code = "approval_required"        // a person has to agree first
	ApprovalDenied          Code = "approval_denied"          // a person said no
	BudgetExceeded          Code = "budget_exceeded"          // calls, tokens, money, depth or fan-out are used up
	RateLimited             Code = "rate_limited"             // too many at once
	QuotaExceeded           Code = "quota_exceeded"           // the workspace has no room for it
)

// The organization: roles, agents, tasks, messages.
const (
	RoleNotFound      Code = "role_not_found"
	RoleExists        Code = "role_exists"
	InvalidRole       Code = "invalid_role"
	AgentNotFound     Code = "agent_not_found"
	TaskNotFound      Code = "task_not_found"
	ArtifactNotFound  Code = "artifact_not_found"
	InvalidTaskBrief  Code = "invalid_task_brief"
	NotChildAgent     Code = "not_child_agent"
	UnknownRecipient  Code = "unknown_recipient"
	CrossTask         Code = "cross_task_communication_denied"
	SenderTerminated  Code = "sender_terminated"
	TooManyReplies    Code = "quickReplies_too_many"
	InvalidReplies    Code = "quickReplies_invalid_type"
	BlankReply        Code = "quickReplies_empty_string"
	MissingMessage    Code = "missing_initial_message"
	InvalidParent     Code = "invalid_parentAgentId"
	TaskStalled       Code = "task_stalled"
	TaskCancelled     Code = "task_cancelled"
	ScriptDiverged    Code = "script_diverged"
	LLMCallFailed     Code = "llm_call_failed"
	MaxToolRounds     Code = "max_tool_rounds_exceeded"
	ContextExceeded   Code = "context_limit_exceeded"
	TurnAborted       Code = "turn_aborted"
	InvalidSummary    Code = "invalid_summary"
	WorkspaceNotBound Code = "workspace_not_bound"
	PathTraversal     Code = "path_traversal_blocked"
	FileNotFound      Code = "file_not_found"
	PermissionDenied  Code = "permission_denied"
	NotADirectory     Code = "not_a_directory"
	NotSerializable   Code = "non_json_serializable_return"
	WorkspaceReadOnly Code = "workspace_read_only"
	CommandTimeout    Code = "command_timeout"
	CommandBlocked    Code = "command_blocked"
)

// Requests to other hosts.
const (
	OnlyHTTPS      Code = "only_https_allowed" // a scheme that is not https, or not configured
	InvalidURL     Code = "invalid_url"        // no URL a request can be sent to
	HostBlocked    Code = "host_blocked"       // a host that the caller's rules do not allow
	AddressBlocked Code = "address_blocked"    // a host that leads to an address which is not public
	RequestTimeout Code = "request_timeout"    // the answer was not complete in time
	RequestAborted Code = "request_aborted"    // the call was ended before the answer was complete
)

// Everything else.
const (
	InvalidConfig Code = "invalid_config" // a configuration that is refused at load
	Conflict      Code = "conflict"       // the thing changed meanwhile, or is in use
	Internal      Code = "internal"       // the machinery's own fault; details stay in the log
)

// Error is an outcome with a code. Peers may see Code, Message and Details;
// Err is the cause, for the log only.
type Error struct {
	Code    Code
	Message string
	Details map[string]any
	Err     error
}

// New makes an Error; the message says what was attempted, on what, and what to do.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error with a cause that never leaves the process.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// With adds one detail for the peer and returns e.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = make(map[string]any, 1)
	}
	e.Details[key] = value
	return e
}

// Error implements error: code, message and, for the log, the cause.
func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Of gives the code err carries: "" for nil, Internal for an error without one.
func Of(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Message gives what a peer may read of err; an error without a code says
// only that something internal went wrong.
func Message(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "something inside rolecall went wrong; its log has the cause"
}
