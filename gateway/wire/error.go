package wire

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// Error codes that occur only over HTTP.
const (
	RouteNotFound    errcode.Code = "route_not_found"    // no route has this path
	MethodNotAllowed errcode.Code = "method_not_allowed" // the route takes other methods
	BodyTooLarge     errcode.Code = "body_too_large"     // the body is over its limit

	HostRefused   errcode.Code = "host_not_allowed"   // the Host header is not a name of this gateway
	OriginRefused errcode.Code = "origin_not_allowed" // the request comes from a page of an origin that is not allowed
)

// statuses maps error codes to HTTP statuses. Other codes are answered with
// 500.
var statuses = map[errcode.Code]int{
	errcode.InvalidArguments: http.StatusBadRequest,
	errcode.InvalidRole:      http.StatusBadRequest,
	errcode.InvalidTaskBrief: http.StatusBadRequest,
	errcode.InvalidGroupDef:  http.StatusBadRequest,
	errcode.InvalidConfig:    http.StatusBadRequest,
	errcode.InvalidParent:    http.StatusBadRequest,
	errcode.InvalidReplies:   http.StatusBadRequest,
	errcode.InvalidSummary:   http.StatusBadRequest,
	errcode.TooManyReplies:   http.StatusBadRequest,
	errcode.BlankReply:       http.StatusBadRequest,
	errcode.MissingMessage:   http.StatusBadRequest,
	errcode.NotADirectory:    http.StatusBadRequest,
	errcode.PathTraversal:    http.StatusBadRequest,
	errcode.OnlyHTTPS:        http.StatusBadRequest,
	errcode.InvalidURL:       http.StatusBadRequest,

	errcode.Unauthenticated: http.StatusUnauthorized,

	errcode.InsufficientPermissions: http.StatusForbidden,
	errcode.ArgumentNotGranted:      http.StatusForbidden,
	errcode.AuthorizationRequired:   http.StatusForbidden,
	errcode.ApprovalRequired:        http.StatusForbidden,
	errcode.ApprovalDenied:          http.StatusForbidden,
	errcode.NotChildAgent:           http.StatusForbidden,
	errcode.CrossTask:               http.StatusForbidden,
	errcode.PermissionDenied:        http.StatusForbidden,
	errcode.WorkspaceReadOnly:       http.StatusForbidden,
	errcode.CommandTimeout:          http.StatusGatewayTimeout,
	errcode.CommandBlocked:          http.StatusForbidden,
	errcode.QuotaExceeded:           http.StatusForbidden,
	errcode.NoToolsAvailable:        http.StatusForbidden,
	errcode.HostBlocked:             http.StatusForbidden,
	errcode.AddressBlocked:          http.StatusForbidden,
	HostRefused:                     http.StatusForbidden,
	OriginRefused:                   http.StatusForbidden,

	RouteNotFound:            http.StatusNotFound,
	errcode.RoleNotFound:     http.StatusNotFound,
	errcode.AgentNotFound:    http.StatusNotFound,
	errcode.TaskNotFound:     http.StatusNotFound,
	errcode.ArtifactNotFound: http.StatusNotFound,
	errcode.QuestionNotFound: http.StatusNotFound,
	errcode.ApprovalNotFound: http.StatusNotFound,
	errcode.GroupNotFound:    http.StatusNotFound,
	errcode.FileNotFound:     http.StatusNotFound,
	errcode.UnknownRecipient: http.StatusNotFound,
	errcode.ItemNotFound:     http.StatusNotFound,
	errcode.UnknownTool:      http.StatusNotFound,
	errcode.ToolNotAvailable: http.StatusNotFound, // the same as unknown_tool

	MethodNotAllowed: http.StatusMethodNotAllowed,

	errcode.Conflict:                 http.StatusConflict,
	errcode.RoleExists:               http.StatusConflict,
	errcode.DuplicateGroupID:         http.StatusConflict,
	errcode.DuplicateToolName:        http.StatusConflict,
	errcode.ReservedGroupID:          http.StatusConflict,
	errcode.CannotUnregisterReserved: http.StatusConflict,
	errcode.SenderTerminated:         http.StatusConflict,
	errcode.WorkspaceNotBound:        http.StatusConflict,
	errcode.TaskCancelled:            http.StatusConflict,
	errcode.Paused:                   http.StatusConflict,
	errcode.TurnAborted:              http.StatusConflict,
	errcode.RequestAborted:           http.StatusConflict,

	BodyTooLarge: http.StatusRequestEntityTooLarge,

	errcode.ToolExecutionFailed: http.StatusUnprocessableEntity,
	errcode.ToolInterrupted:     http.StatusUnprocessableEntity,
	errcode.InputUnavailable:    http.StatusUnprocessableEntity,
	errcode.InputRequired:       http.StatusUnprocessableEntity,
	errcode.ResultTooLarge:      http.StatusUnprocessableEntity,
	errcode.NotSerializable:     http.StatusUnprocessableEntity,
	errcode.TaskStalled:         http.StatusUnprocessableEntity,
	errcode.InvalidResult:       http.StatusUnprocessableEntity,
	errcode.ScriptDiverged:      http.StatusUnprocessableEntity,
	errcode.MaxToolRounds:       http.StatusUnprocessableEntity,
	errcode.ContextExceeded:     http.StatusUnprocessableEntity,

	errcode.RateLimited:    http.StatusTooManyRequests,
	errcode.LimitExceeded:  http.StatusTooManyRequests,
	errcode.BudgetExceeded: http.StatusTooManyRequests,

	errcode.Internal:         http.StatusInternalServerError,
	errcode.LLMCallFailed:    http.StatusBadGateway,
	errcode.InvalidAnswer:    http.StatusBadGateway,
	errcode.IncompleteResult: http.StatusBadGateway,
	errcode.ToolUnavailable:  http.StatusServiceUnavailable,
	errcode.StorageLow:       http.StatusServiceUnavailable,
	NotReady:                 http.StatusServiceUnavailable,
	errcode.ToolTimeout:      http.StatusGatewayTimeout,
	errcode.RequestTimeout:   http.StatusGatewayTimeout,
}

// RetryAfter is the detail of an error that says after how many seconds the sender may try
// again. WriteError also writes it as the header Retry-After.
const RetryAfter = "retryAfter"

// RateLimited returns the error for a sender that has to wait.
func RateLimited(wait time.Duration, reason string) error {
	seconds := int(math.Ceil(wait.Seconds()))
	return errcode.New(errcode.RateLimited, "%s; try again in %d s", reason, seconds).With(RetryAfter, seconds)
}

// ErrorBody is the JSON body of every error response.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail describes an error: its code, a message for people, and details
// such as the field that is wrong.
type ErrorDetail struct {
	Code    errcode.Code   `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// DetailOf describes an error.
func DetailOf(err error) ErrorDetail {
	d := ErrorDetail{Code: errcode.CodeOf(err), Message: errcode.Message(err)}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		d.Details = e.Details
	}
	return d
}

// WriteError answers with an error: its status, and an ErrorBody.
func WriteError(w http.ResponseWriter, err error) {
	status, body := StatusOf(err), ErrorBody{DetailOf(err)}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge(err))
	}
	if seconds, ok := body.Error.Details[RetryAfter].(int); ok {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	if WriteJSON(w, status, body) != nil { // a detail cannot be encoded
		body.Error.Details = nil
		_ = WriteJSON(w, status, body) // strings can always be encoded
	}
}

// statusError is an error whose status differs from the status of its code.
type statusError struct {
	error
	status int
}

// Unwrap returns the error itself.
func (e statusError) Unwrap() error { return e.error }

// WithStatus returns err with an HTTP status of its own.
func WithStatus(err error, status int) error { return statusError{err, status} }

// StatusOf returns the HTTP status of an error, 500 for one without a known
// code.
func StatusOf(err error) int {
	if e, ok := errors.AsType[statusError](err); ok {
		return e.status
	}
	if status, ok := statuses[errcode.CodeOf(err)]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// WriteJSON answers with v as JSON. It returns an error, and has written
// nothing, if v cannot be encoded. Write errors are ignored: the client has
// disconnected.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	WriteEncoded(w, status, text)
	return nil
}

// WriteEncoded answers with JSON text. Write errors are ignored: the client has
// disconnected.
func WriteEncoded(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
