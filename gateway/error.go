package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/rolecall/rolecall/errcode"
)

// Codes that only HTTP knows.
const (
	RouteNotFound    errcode.Code = "route_not_found"    // no route has this path
	MethodNotAllowed errcode.Code = "method_not_allowed" // the route takes other methods
	BodyTooLarge     errcode.Code = "body_too_large"     // the body is over its cap

	HostRefused   errcode.Code = "host_not_allowed"   // the Host header names another gateway
	OriginRefused errcode.Code = "origin_not_allowed" // a page of another origin asks
)

// statuses is the one table from codes to HTTP statuses. A code that is not
// in it is 500.
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
	errcode.GroupNotFound:    http.StatusNotFound,
	errcode.FileNotFound:     http.StatusNotFound,
	errcode.UnknownRecipient: http.StatusNotFound,
	errcode.UnknownTool:      http.StatusNotFound,
	errcode.ToolNotAvailable: http.StatusNotFound, // not to be told from unknown_tool

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
	errcode.TurnAborted:              http.StatusConflict,
	errcode.RequestAborted:           http.StatusConflict,

	BodyTooLarge: http.StatusRequestEntityTooLarge,

	errcode.ToolExecutionFailed: http.StatusUnprocessableEntity,
	errcode.ToolInterrupted:     http.StatusUnprocessableEntity,
	errcode.ResultTooLarge:      http.StatusUnprocessableEntity,
	errcode.NotSerializable:     http.StatusUnprocessableEntity,
	errcode.TaskStalled:         http.StatusUnprocessableEntity,
	errcode.ScriptDiverged:      http.StatusUnprocessableEntity,
	errcode.MaxToolRounds:       http.StatusUnprocessableEntity,
	errcode.ContextExceeded:     http.StatusUnprocessableEntity,

	errcode.RateLimited:    http.StatusTooManyRequests,
	errcode.BudgetExceeded: http.StatusTooManyRequests,

	errcode.Internal:        http.StatusInternalServerError,
	errcode.LLMCallFailed:   http.StatusBadGateway,
	errcode.ToolUnavailable: http.StatusServiceUnavailable,
	errcode.ToolTimeout:     http.StatusGatewayTimeout,
	errcode.RequestTimeout:  http.StatusGatewayTimeout,
}

// refusal is the body of every answer that is not a success.
type refusal struct {
	Error refusalError `json:"error"`
}

type refusalError struct {
	Code    errcode.Code   `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// refuse answers with an error. What the process alone should know is logged,
// and only there.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch status := statusOf(err); {
	case r.Context().Err() != nil:
	case status >= http.StatusInternalServerError:
		a.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	case status == http.StatusUnauthorized:
		a.log.Debug("request of nobody", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	refuseWith(w, err)
}

// refuseWith answers with an error, in the shape of contract §3.
func refuseWith(w http.ResponseWriter, err error) {
	status, body := statusOf(err), refusal{refusalError{Code: errcode.Of(err), Message: errcode.Message(err)}}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		body.Error.Details = e.Details
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge(err))
	}
	if writeJSON(w, status, body) != nil { // a detail that is no JSON: the bare facts remain
		body.Error.Details = nil
		_ = writeJSON(w, status, body) // two strings always marshal
	}
}

func statusOf(err error) int {
	if status, ok := statuses[errcode.Of(err)]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// recovered is deferred: it answers for a handler that panicked.
func (a *api) recovered(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { // a stream that is to end visibly cut off
		panic(p)
	}
	a.log.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	_ = writeJSON(w, http.StatusInternalServerError, refusal{refusalError{Code: errcode.Internal, Message: errcode.Message(errors.New(""))}})
}

// status is an answer with another status than 200.
type status struct {
	code int
	body any
}

// answer makes an endpoint of a function that gives what to answer, as JSON.
func answer(fn func(*http.Request) (any, error)) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, err := fn(r)
		if err != nil {
			return err
		}
		if s, ok := v.(status); ok {
			return writeJSON(w, s.code, s.body)
		}
		return writeJSON(w, http.StatusOK, v)
	}
}

// writeJSON answers with a document. Its error says that v is no JSON, and
// then nothing is written: a peer that has gone is nobody's error.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
	return nil
}
