// Package errcode defines the error codes of rolecall, and an error type that combines a
// code with a message. Codes are part of the API: models, HTTP clients and MCP clients
// read them, and they do not change.
//
// Return New or Wrap if a peer may read the error, and test for codes with CodeOf:
//
//	err := errcode.Wrap(errcode.FileNotFound, cause, "read_file: no file %q", name)
//	if errcode.CodeOf(err) == errcode.FileNotFound { ... }
//
// The cause is for the log only; Message returns what a peer may read. The package does
// not know protocols: each protocol has its own table from codes to statuses. Most of its
// exported names are the codes.
package errcode

import (
	"errors"
	"fmt"
	"strings"
)

// Code is a stable error code. The zero Code means that there is no error.
type Code string

// Tool groups and their registration.
const (
	ReservedGroupID          Code = "reserved_group_id"          // the id is reserved for a built-in group
	DuplicateGroupID         Code = "duplicate_group_id"         // the id belongs to another owner; a warning if it belongs to the same one
	InvalidGroupDef          Code = "invalid_group_def"          // the id, the description or a tool of the group is invalid
	CannotUnregisterReserved Code = "cannot_unregister_reserved" // the group is built in
	GroupNotFound            Code = "group_not_found"            // no group has this id
	DuplicateToolName        Code = "duplicate_tool_name"        // another group has a tool of this name
)

// Tool calls.
const (
	ToolNotAvailable    Code = "tool_not_available"    // the tool exists, but not for this caller
	UnknownTool         Code = "unknown_tool"          // no tool has this name
	ToolUnavailable     Code = "tool_unavailable"      // the caller may use the tool, but its backend is not available
	InvalidArguments    Code = "invalid_arguments"     // the arguments do not match the schema of the tool
	ArgumentNotGranted  Code = "argument_not_granted"  // the caller may use the tool, but not with these arguments
	ToolExecutionFailed Code = "tool_execution_failed" // the tool failed
	ToolTimeout         Code = "tool_timeout"          // a ReadOnly or Idempotent tool timed out; a retry is safe
	ToolInterrupted     Code = "tool_interrupted"      // a Mutating tool ended without a result; its outcome is unknown
	ResultTooLarge      Code = "result_too_large"      // the result exceeds the size limit
	NoToolsAvailable    Code = "no_tools_available"    // a tool-gated role has no visible tool
	InputUnavailable    Code = "input_unavailable"     // the tool asks for input, and there is no person or client that can be asked
	InputRequired       Code = "input_required"        // the call ended with questions; the client repeats it with the answers
)

// Permissions, limits and approvals.
const (
	InsufficientPermissions Code = "insufficient_permissions" // the request exceeds what the caller may grant or use
	Unauthenticated         Code = "unauthenticated"          // the caller is unknown
	AuthorizationRequired   Code = "authorization_required"   // a person must log in to the tool's server first
	ApprovalRequired        Code = "approval_required"        // a person must approve first
	ApprovalDenied          Code = "approval_denied"          // a person has refused
	BudgetExceeded          Code = "budget_exceeded"          // the budget of calls, tokens, money, depth or fan-out is used up
	RateLimited             Code = "rate_limited"             // too many requests at once
	LimitExceeded           Code = "limit_exceeded"           // a task or the organization has as much as it may
	QuotaExceeded           Code = "quota_exceeded"           // no space left in the workspace or on the disk
	StorageLow              Code = "storage_low"              // the free space of the disk is below its reserve; nothing begins until there is room
)

// The organization: roles, agents, tasks, messages.
const (
	RoleNotFound      Code = "role_not_found"
	RoleExists        Code = "role_exists"
	InvalidRole       Code = "invalid_role"
	AgentNotFound     Code = "agent_not_found"
	TaskNotFound      Code = "task_not_found"
	ArtifactNotFound  Code = "artifact_not_found"
	QuestionNotFound  Code = "question_not_found" // the task waits for no answer to this question
	ApprovalNotFound  Code = "approval_not_found" // no request with this id waits for the approval of the sender
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
	Paused            Code = "paused"            // a person has paused the work; it goes on when it is resumed
	InvalidResult     Code = "invalid_result"    // the result of a task does not fit its schema
	IncompleteResult  Code = "incomplete_result" // the answer with the result was cut, filtered or refused
	InvalidAnswer     Code = "invalid_answer"    // the model's answers are empty, or calls written as text
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
	OnlyHTTPS      Code = "only_https_allowed" // the scheme is neither https nor configured
	InvalidURL     Code = "invalid_url"        // no request can be sent to this URL
	HostBlocked    Code = "host_blocked"       // the host rules of the caller do not allow the host
	AddressBlocked Code = "address_blocked"    // the host resolves to an address that is not public
	RequestTimeout Code = "request_timeout"    // the response was not complete in time
	RequestAborted Code = "request_aborted"    // the call was canceled before the response was complete
)

// Others.
const (
	InvalidConfig Code = "invalid_config" // the configuration is invalid
	ItemNotFound  Code = "item_not_found" // no configuration item is applied under this kind and name
	Conflict      Code = "conflict"       // the object has changed in the meantime, or is in use
	Internal      Code = "internal"       // an internal error; the details are in the log only
)

// Error is an error with a code. Peers may read Code, Message and Details.
type Error struct {
	Code    Code
	Message string         // what was attempted, on what, and what to do
	Details map[string]any // for programs; nil if there are none
	Err     error          // the cause, for the log only; may be nil
}

// New returns an Error without a cause. The format works as in fmt.Sprintf.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error with a cause, which is not shown to peers.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// With sets a detail of e and returns e.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = make(map[string]any, 1)
	}
	e.Details[key] = value
	return e
}

// Error returns the code, the message and the cause. It is for the log, not for peers. It
// leaves out what the message already says of the cause.
func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Message
	if cause := e.causeText(); cause != "" {
		text += ": " + cause
	}
	return text
}

// causeText returns the text of the cause as far as the message does not have it.
func (e *Error) causeText() string {
	if e.Err == nil {
		return ""
	}
	text := e.Err.Error()
	if strings.Contains(e.Message, text) {
		return ""
	}
	if inner, ok := errors.AsType[*Error](e.Err); ok && inner.Message != "" && strings.Contains(e.Message, inner.Message) {
		return inner.causeText()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first Error in the tree of err. It returns "" for nil, and
// Internal if there is no Error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Message returns the message of the first Error in the tree of err, without its cause. If
// there is no Error, it returns a general text that reveals nothing.
func Message(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "internal error; see the log of rolecall"
}
