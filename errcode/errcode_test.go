package errcode_test

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
)

func Example() {
	err := fmt.Errorf("run: %w", errcode.Wrap(errcode.FileNotFound, fs.ErrNotExist, "read_file: there is no %q", "notes.txt").With("path", "notes.txt"))
	fmt.Println(errcode.CodeOf(err), errors.Is(err, fs.ErrNotExist))
	fmt.Println(errcode.Message(err))
	fmt.Println(err)
	// Output:
	// file_not_found true
	// read_file: there is no "notes.txt"
	// run: file_not_found: read_file: there is no "notes.txt": file does not exist
}

func TestError_CodeMessageAndText(t *testing.T) {
	const internal = "internal error; see the log of rolecall"
	inner := errcode.New(errcode.RoleNotFound, "there is no role")
	tests := []struct {
		name    string
		err     error
		code    errcode.Code
		message string // for a peer
		text    string // for the log
	}{
		{"error with a code", inner, errcode.RoleNotFound, "there is no role", "role_not_found: there is no role"},
		{"wrapped", fmt.Errorf("spawn: %w", inner), errcode.RoleNotFound, "there is no role", "spawn: role_not_found: there is no role"},
		{"joined", errors.Join(errors.New("x"), inner), errcode.RoleNotFound, "there is no role", "x\nrole_not_found: there is no role"},
		{"code around a code", errcode.Wrap(errcode.Conflict, inner, "in use"), errcode.Conflict, "in use", "conflict: in use: role_not_found: there is no role"},
		{"error without a code", errors.New("secret path /x"), errcode.Internal, internal, "secret path /x"},
		{"cause in the log only", errcode.Wrap(errcode.Internal, errors.New("secret"), "broken"), errcode.Internal, "broken", "internal: broken: secret"},
		{"cause in the message", errcode.Wrap(errcode.Conflict, inner, "spawn: %s", errcode.Message(inner)), errcode.Conflict, "spawn: there is no role", "conflict: spawn: there is no role"},
		{"cause with its own cause in the message", errcode.Wrap(errcode.Conflict, errcode.Wrap(errcode.RoleNotFound, errors.New("why"), "there is no role"), "spawn: there is no role"), errcode.Conflict, "spawn: there is no role", "conflict: spawn: there is no role: why"},
		{"plain cause in the message", errcode.Wrap(errcode.Internal, errors.New("bad id"), "read: bad id"), errcode.Internal, "read: bad id", "internal: read: bad id"},
		{"format", errcode.New(errcode.InvalidRole, "%d of %s", 1, "x"), errcode.InvalidRole, "1 of x", "invalid_role: 1 of x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := []string{string(errcode.CodeOf(tt.err)), errcode.Message(tt.err), tt.err.Error()}
			if diff := cmp.Diff(got, []string{string(tt.code), tt.message, tt.text}); diff != "" {
				t.Errorf("got before want:\n%s", diff)
			}
		})
	}
	if got := errcode.CodeOf(nil); got != "" {
		t.Errorf("nil has the code %q", got)
	}
}

func TestError_With(t *testing.T) {
	err := errcode.New(errcode.UnknownRecipient, "send").With("to", "x").With("from", "y").With("to", "z")
	if diff := cmp.Diff(err.Details, map[string]any{"to": "z", "from": "y"}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if errcode.New(errcode.Conflict, "x").Details != nil || err.Unwrap() != nil {
		t.Error("got details or a cause that were not set")
	}
}

// The codes are part of the API and do not change.
func TestCodes_Stable(t *testing.T) {
	codes := []errcode.Code{
		errcode.ReservedGroupID, errcode.DuplicateGroupID, errcode.InvalidGroupDef, errcode.CannotUnregisterReserved, errcode.GroupNotFound, errcode.DuplicateToolName,
		errcode.ToolNotAvailable, errcode.UnknownTool, errcode.ToolUnavailable, errcode.InvalidArguments, errcode.ToolExecutionFailed, errcode.ToolTimeout,
		errcode.ToolInterrupted, errcode.ResultTooLarge, errcode.NoToolsAvailable, errcode.InsufficientPermissions, errcode.Unauthenticated, errcode.ApprovalRequired,
		errcode.ApprovalDenied, errcode.BudgetExceeded, errcode.RateLimited, errcode.RoleNotFound, errcode.RoleExists, errcode.AgentNotFound, errcode.InvalidTaskBrief,
		errcode.NotChildAgent, errcode.UnknownRecipient, errcode.TaskStalled, errcode.ScriptDiverged, errcode.InvalidConfig, errcode.Conflict, errcode.Internal,
	}
	const contract = "reserved_group_id duplicate_group_id invalid_group_def cannot_unregister_reserved group_not_found duplicate_tool_name " +
		"tool_not_available unknown_tool tool_unavailable invalid_arguments tool_execution_failed tool_timeout " +
		"tool_interrupted result_too_large no_tools_available insufficient_permissions unauthenticated approval_required " +
		"approval_denied budget_exceeded rate_limited role_not_found role_exists agent_not_found invalid_task_brief " +
		"not_child_agent unknown_recipient task_stalled script_diverged invalid_config conflict internal"
	var got []string
	for _, c := range codes {
		got = append(got, string(c))
		if !regexp.MustCompile(`^[a-z_]+$`).MatchString(string(c)) {
			t.Errorf("%q is not a valid code", c)
		}
	}
	if diff := cmp.Diff(got, strings.Fields(contract)); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}
